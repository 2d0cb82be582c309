/**
 * What the commands share: opening storage, reading tokens, reporting errors and printing.
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
  /** Reads the settings. Commands call it only when they need them, so help works without any. */
  readonly settings: () => Config;
}

/** Ends a command with an exit status of its own, after it has printed everything. */
export class ExitError extends Error {
  override readonly name = "ExitError";

  constructor(readonly status: number) {
    super(`Exit status ${status}`);
  }
}

/** Runs an action on the configured storage, which is closed afterwards even on errors. */
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
 * Resolves a path given as an argument against the user's working directory. `deno task` runs in
 * the project's folder, and sets INIT_CWD to the directory it was called from.
 */
export function fromUser(path: string): string {
  const folder = Deno.cwd();
  const isTask = resolve(import.meta.dirname ?? "", "../..") === folder;
  return resolve(isTask && Deno.env.get("INIT_CWD") || folder, path);
}

/** Prints a message to standard error, with unprintable characters escaped. */
export function printError(text: string): void {
  console.error(printableLines(text));
}

/** Returns an error's message, followed by its cause if it has one. */
export function messageOf({ message, cause }: Error): string {
  return cause instanceof Error ? `${message} (${printable(cause.message)})` : message;
}

/** Parses a token given as an argument. */
export function tokenArgument(text: string): Token {
  const token = parseToken(text);
  if (token === undefined) throw new InvalidArgumentError(`"${text}" is not a version 4 UUID.`);
  return token;
}

/** Returns the public origin of a server with these settings, or else that for this machine. */
export function originOf({ publicUrl, host, port }: Config): string {
  if (publicUrl !== undefined) return publicUrl;
  const name = host === "0.0.0.0" || host === "::" ? "localhost" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/**
 * Prints one or more lines to standard output, with unprintable characters escaped.
 *
 * @throws {Deno.errors.BrokenPipe} When the reader has closed the pipe.
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
