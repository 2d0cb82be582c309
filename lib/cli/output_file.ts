/** Files that commands write. */

import { dirname } from "node:path";
import { writable } from "../input/user_file.ts";
import { writeAll } from "../input/write_all.ts";
import { isWithin, refusalOfStoragePath } from "../publishing/storage_paths.ts";
import { fromUser } from "./context.ts";

/** A file to write. */
interface Output {
  readonly write: (bytes: Uint8Array) => Promise<void>;
  /** Replaces any file that is there, unless writing has failed. */
  readonly close: () => Promise<void>;
  /** Closes it, and leaves any file that is there as it was. */
  readonly discard: () => Promise<void>;
}

/**
 * Opens a file to write. A draft is written beside its place and then moved there, so that a file
 * is replaced as a whole. Pipes and devices are written directly.
 *
 * @param name The path as the user gave it.
 * @param storagePaths The files and folders of storage, to be refused.
 * @throws {RefusedError} When it cannot be written. `write` and `close` throw this, too.
 */
export async function openOutput(name: string, storagePaths: readonly string[]): Promise<Output> {
  const given = fromUser(name);
  if (await isWithin(given, storagePaths)) throw refusalOfStoragePath(name);
  const path = await Deno.realPath(given).catch(() => given); // a link stays a link
  const found = await Deno.stat(path).catch(() => undefined);
  const isMoved = found?.isFile ?? true;
  // A killed process leaves the draft behind, so its name says so.
  const draft = isMoved ? `${dirname(path)}/.unfinished-media-${crypto.randomUUID()}` : path;
  const file = await writable(name, async () => {
    if (found?.isFile) (await Deno.open(path, { write: true })).close(); // throws if protected
    const mode = (found?.mode ?? 0o666) & 0o777;
    return await Deno.open(draft, { write: true, createNew: isMoved, mode });
  });
  let isWhole = true;
  const close = () =>
    writable(name, async () => {
      if (isMoved && isWhole) await file.sync();
      file.close();
      if (isMoved) await (isWhole ? Deno.rename(draft, path) : Deno.remove(draft));
    });
  return {
    write: (bytes) =>
      writable(name, async () => {
        isWhole = false;
        await writeAll(file, bytes);
        isWhole = true;
      }),
    close,
    discard() {
      isWhole = false;
      return close();
    },
  };
}
