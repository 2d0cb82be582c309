/**
 * What the commands share: how they open storage, read a token, refuse, and print.
 */

import { InvalidArgumentError } from "commander";
import { resolve } from "node:path";
import type { Config } from "../server/config.ts";
import { parseToken, type Token } from "../storage/token.ts";
import { printable, printableLines } from "../publishing/printable.ts";
import { RefusedError } from "../publishing/publish.ts";
import type { Program } from "../server/assembly.ts";
import type { MediaStorage } from "../storage/media_storage.ts";

/** What a command works with. */
export interface Context extends Program {
  /** Gives the settings, read when a command needs them, so that help never depends on them. */
  readonly settings: () => Config;
}

/** The end of a command that has said what there is to say, with an exit status of its own. */
export class ExitError extends Error {
  override readonly name = "ExitError";

  constructor(readonly status: number) {
    super(`Exit status ${status}`);
  }
}

/** Runs an action on the storage that the environment names, and closes it in any case. */
export async function withStorage<T>(
  { openStorage }: Context,
  config: Config,
  action: (storage: MediaStorage) => Promise<T>,
): Promise<T> {
  const storage = await openStorage(config);
  try {
    return await action(storage);
  } finally {
    await storage.close();
  }
}

/**
 * A path given as an argument, from where the user stands. `deno task` runs in the project's folder,
 * and keeps in INIT_CWD the one it was first called from.
 */
export function fromUser(path: string): string {
  const folder = Deno.cwd();
  const isTask = resolve(import.meta.dirname ?? "", "../..") === folder;
  return resolve(isTask && Deno.env.get("INIT_CWD") || folder, path);
}

/** Says something to the operator, on standard error; what of it cannot be shown is escaped. */
export function printError(text: string): void {
  console.error(printableLines(text));
}

/** What was wrong, with the cause where there is one. */
export function messageOf({ message, cause }: Error): string {
  return cause instanceof Error ? `${message} (${printable(cause.message)})` : message;
}

/** Reads a token given as an argument. */
export function tokenArgument(text: string): Token {
  const token = parseToken(text);
  if (token === undefined) throw new InvalidArgumentError(`"${text}" is not a version 4 UUID.`);
  return token;
}

/** Where a server with these settings is reached from this machine. */
export function originOf({ host, port }: Config): string {
  const name = host === "0.0.0.0" || host === "::" ? "localhost" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/**
 * Prints a line, or several; what of it cannot be shown is escaped.
 *
 * @throws {Deno.errors.BrokenPipe} When nobody reads any more.
 * @throws {RefusedError} When the output cannot be written.
 */
export async function print(line: string): Promise<void> {
  const bytes = new TextEncoder().encode(`${printableLines(line)}\n`);
  try {
    for (let done = 0; done < bytes.length;) done += await Deno.stdout.write(bytes.subarray(done));
  } catch (cause) {
    if (cause instanceof Deno.errors.BrokenPipe) throw cause;
    throw new RefusedError("The output cannot be written", { cause });
  }
}
