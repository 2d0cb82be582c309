/** Arguments of commands. */

import { InvalidArgumentError } from "commander";

/** Returns a parser that refuses an argument if `parse` returns `undefined`. */
export function argument<T>(expected: string, parse: (text: string) => T | undefined) {
  return (text: string): T => {
    const value = parse(text);
    if (value === undefined) throw new InvalidArgumentError(`Expected ${expected}.`);
    return value;
  };
}

/** Returns a parser for a whole number from 1 on. */
export function numberArgument(what: string, max: number) {
  return argument(
    `${what} from 1 to ${max}`,
    (text) => /^[1-9]\d*$/.test(text) && Number(text) <= max ? Number(text) : undefined,
  );
}
