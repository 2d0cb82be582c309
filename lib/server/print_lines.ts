/** Printing what `main.ts` was asked for. */

import { messageOf } from "../input/printable.ts";
import { writeAll } from "../input/write_all.ts";

/** Prints lines to standard output. Returns the exit status: 1 if they cannot be written. */
export async function printLines(lines: readonly string[]): Promise<number> {
  try {
    await writeAll(
      Deno.stdout,
      new TextEncoder().encode(lines.map((line) => `${line}\n`).join("")),
    );
    return 0;
  } catch (cause) {
    console.error(`media-head: ${messageOf({ message: "The output cannot be written", cause })}`);
    return 1;
  }
}
