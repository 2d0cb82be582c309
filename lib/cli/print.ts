/** What commands print, in place of the line that shows their progress. */

import * as output from "../input/print.ts";
import { clearProgress } from "./progress.ts";

/**
 * Prints one or more lines to standard output, with unprintable characters escaped.
 *
 * @throws {RefusedError} If they cannot be written, e.g. because the reader has closed the pipe.
 */
export async function print(text: string): Promise<void> {
  clearProgress();
  await output.print(text);
}

/**
 * Writes bytes to standard output, as they are.
 *
 * @throws {RefusedError} As {@linkcode print}.
 */
export async function printBytes(bytes: Uint8Array): Promise<void> {
  clearProgress();
  await output.printBytes(bytes);
}

/** Prints a message to standard error, with unprintable characters escaped. */
export function printError(text: string): void {
  clearProgress();
  output.printError(text);
}

const reported = new Set<string>();

/** Prints the name of an operation that the command waits for, but only once. */
export function reportWait(what: string): void {
  if (!reported.has(what)) printError(`media: waiting for ${what}`);
  reported.add(what);
}
