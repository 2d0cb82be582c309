/** Reading and writing files that a user names. */

import { RefusedError } from "../errors/refused_error.ts";
import { quoted } from "./printable.ts";

/** Runs an operation that reads a file; refuses the file if that fails. */
export async function readable<T>(path: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    throw refusalOfReading(path, cause);
  }
}

/** Returns the refusal of a file or folder that cannot be read. */
export function refusalOfReading(path: string, cause: unknown): RefusedError {
  if (!isNamed(cause, "NotFound")) {
    return new RefusedError(`${quoted(path)} cannot be read`, {
      kind: "unreadable",
      cause: reasonOf(cause),
    });
  }
  // Deno 2.9.6 replaces bytes that are not UTF-8 wherever it gets a name, and cannot open such a file.
  const isReplaced = path.includes("\ufffd");
  return new RefusedError(
    isReplaced
      ? `The name of ${quoted(path)} is not UTF-8; rename it`
      : `There is no file ${quoted(path)}`,
    { kind: isReplaced ? "name that is not UTF-8" : "no such file" },
  );
}

const SYSTEM_FILE_REASON =
  "Deno opens no devices or files of the kernel, as in /dev, /proc and /sys; name a file " +
  "elsewhere";

/** Explains why Deno 2.9.6 requires all permissions for some paths: no narrower flag opens them. */
function reasonOf(cause: unknown): unknown {
  return isNamed(cause, "NotCapable") && cause.message.startsWith("Requires all access")
    ? new Error(SYSTEM_FILE_REASON)
    : cause;
}

/** Returns whether a value is one of Deno's errors. Node, which writes pages, too, has none. */
function isNamed(cause: unknown, name: string): cause is Error {
  return cause instanceof Error && cause.name === name;
}

/** Runs an operation that writes a file; refuses the file if that fails. */
export function writable<T>(path: string, operation: () => Promise<T>): Promise<T> {
  return operation().catch((cause) => {
    throw new RefusedError(`${quoted(path)} cannot be written`, { cause: reasonOf(cause) });
  });
}
