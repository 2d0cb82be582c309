/** What the program `lifecycle` prints. */

import process from "node:process";
import { RefusedError } from "../errors/refused_error.ts";
import { printableLines } from "../input/printable.ts";

/**
 * Prints lines to standard output.
 *
 * @throws {RefusedError} If they cannot be written, e.g. because the reader has closed the pipe.
 */
export function print(text: string): Promise<void> {
  const { stdout } = process;
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) =>
      reject(new RefusedError("The output cannot be written", { cause }));
    stdout.once("error", fail);
    try {
      stdout.write(`${printableLines(text)}\n`, (cause) => {
        if (cause) return; // it is also an event
        stdout.off("error", fail);
        resolve();
      });
    } catch (cause) { // Deno throws if a file cannot be written
      fail(cause);
    }
  });
}

/** Prints a message to standard error, with unprintable characters escaped. */
export function printError(text: string): void {
  console.error(printableLines(text));
}
