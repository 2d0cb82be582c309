/** Running programs to their ends. */

import { within } from "./within.ts";

/** How a program ended, and what it printed. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Returns how a process ends, whose output is piped. One that takes ten minutes is killed. */
export async function resultOf(process: Deno.ChildProcess): Promise<CommandResult> {
  const output = within("the end of a program", process.output(), { timeout: 600_000, process });
  const { code, stdout, stderr } = await output;
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: decode(stdout), stderr: decode(stderr) };
}

/** Runs a program to its end, without input. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: Omit<Deno.CommandOptions, "args"> = {},
): Promise<CommandResult> {
  const piped = { stdin: "null", stdout: "piped", stderr: "piped" } as const;
  return resultOf(new Deno.Command(program, { ...piped, ...options, args: [...args] }).spawn());
}

/** Runs a program that must succeed, and returns its standard output. */
export async function mustRun(...words: Parameters<typeof runProgram>): Promise<string> {
  const { code, stdout, stderr } = await runProgram(...words);
  if (code !== 0) throw new Error(`${words[0]} ended with ${code}:\n${stdout}${stderr}`);
  return stdout;
}
