/** Reading and writing files that a user names. */

import { quoted } from "./printable.ts";
import { RefusedError } from "./refused_error.ts";

/** Runs an operation that reads a file; refuses the file if that fails. */
export async function readable<T>(path: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    throw cause instanceof Deno.errors.NotFound
      ? new RefusedError(`There is no file ${quoted(path)}`)
      : new RefusedError(`${quoted(path)} cannot be read`, { cause });
  }
}

/** Runs an operation that writes a file; refuses the file if that fails. */
export function writable<T>(path: string, operation: () => Promise<T>): Promise<T> {
  return operation().catch((cause) => {
    throw new RefusedError(`${quoted(path)} cannot be written`, { cause });
  });
}
