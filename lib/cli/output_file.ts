/** Files that commands write. */

import { dirname } from "node:path";
import { atExit } from "../input/at_exit.ts";
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
  // A process that is killed leaves the draft behind, so its name says so.
  const draft = isMoved ? `${dirname(path)}/.unfinished-media-${crypto.randomUUID()}` : path;
  const forget = isMoved ? atExit(() => removeIfThere(draft)) : () => {};
  const file = await writable(name, async () => {
    if (found?.isFile) (await Deno.open(path, { write: true })).close(); // throws if protected
    const mode = (found?.mode ?? 0o666) & 0o777;
    const opened = await Deno.open(draft, { write: true, createNew: isMoved, mode });
    if (found?.isFile && Deno.build.os !== "windows") await Deno.chmod(draft, mode); // umask or not
    return opened;
  }).catch((error) => {
    forget();
    throw error;
  });
  let isWhole = true;
  const close = () =>
    writable(name, async () => {
      if (isMoved && isWhole) await file.sync();
      file.close();
      if (isMoved) await (isWhole ? Deno.rename(draft, path) : Deno.remove(draft));
      forget();
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

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
