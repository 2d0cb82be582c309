/** What commands print. */

import { RefusedError } from "../errors/refused_error.ts";
import { printableLines } from "../input/printable.ts";
import { writeAll } from "../input/write_all.ts";
import { clearProgress } from "./progress.ts";

/**
 * Prints one or more lines to standard output, with unprintable characters escaped.
 *
 * @throws {RefusedError} When the output cannot be written, or its reader has closed the pipe.
 */
export async function print(line: string): Promise<void> {
  clearProgress();
  const bytes = new TextEncoder().encode(`${printableLines(line)}\n`);
  try {
    await writeAll(Deno.stdout, bytes);
  } catch (cause) {
    throw new RefusedError("The output cannot be written", { cause });
  }
}

/** Prints a message to standard error, with unprintable characters escaped. */
export function printError(text: string): void {
  clearProgress();
  try {
    console.error(printableLines(text));
  } catch { // a full disk must not change the exit status
  }
}

const reported = new Set<string>();

/** Prints the name of an operation that the command waits for, but only once. */
export function reportWait(what: string): void {
  if (!reported.has(what)) printError(`media: waiting for ${what}`);
  reported.add(what);
}
