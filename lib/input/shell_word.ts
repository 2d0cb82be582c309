/** Quotes an argument for a shell, where that is needed. */
export function shellWord(argument: string): string {
  return /^[\w./,=:@%+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
