/** Files that a user names: one that cannot be used is refused. */

import { quoted } from "./printable.ts";
import { RefusedError } from "./refused_error.ts";

/** Runs an operation that reads a file. */
export async function readable<T>(path: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) {
      throw new RefusedError(`${quoted(path)} cannot be read`, { cause });
    }
    // Deno replaces bytes that are not UTF-8 before the program sees them.
    const hint = path.includes("\ufffd")
      ? "; names must be UTF-8: rename the file, or pass a link to it"
      : "";
    throw new RefusedError(`There is no file ${quoted(path)}${hint}`);
  }
}

/** Runs an operation that writes a file. */
export function writable<T>(path: string, operation: () => Promise<T>): Promise<T> {
  return operation().catch((cause) => {
    throw new RefusedError(`${quoted(path)} cannot be written`, { cause });
  });
}
