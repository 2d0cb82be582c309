/** What the server prints instead of starting. A start does not wait for what printing imports. */

import { messageOf } from "../input/printable.ts";
import { print, printError } from "../input/print.ts";

/** Prints lines to standard output. Returns the exit status: 1 if they cannot be written. */
export async function printLines(lines: readonly string[]): Promise<number> {
  try {
    if (lines.length > 0) await print(lines.join("\n"));
    return 0;
  } catch (error) {
    printError(`media-head: ${messageOf(error as Error)}`);
    return 1;
  }
}
