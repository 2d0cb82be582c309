/** The draft of a file that a command writes, which then replaces the file as a whole. */

import fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import { atExit } from "./at_exit.ts";
import { writable } from "./user_file.ts";
import { writeAll } from "./write_all.ts";

/** A file to write. */
export interface Draft {
  readonly write: (bytes: Uint8Array) => Promise<void>;
  /** Replaces any file that is there, unless writing has failed. */
  readonly close: () => Promise<void>;
  /** Closes it, and leaves any file that is there as it was. */
  readonly discard: () => Promise<void>;
}

/**
 * Opens a file to write. A draft is written beside its place and then moved there. Pipes and devices
 * are written directly.
 *
 * @param name The path as the user gave it.
 * @param place The same path in the folder in which the user is.
 * @throws {RefusedError} If it cannot be written. All methods throw this, too.
 */
export async function openDraft(name: string, place = resolve(name)): Promise<Draft> {
  const { open, realpath, rename, rm, stat } = fs.promises; // their own module takes 15 ms in Deno
  const path = await realpath(place).catch(() => place); // a link stays a link
  const found = await stat(path).catch(() => undefined);
  const isMoved = found?.isFile() ?? true;
  // A process that is killed leaves the draft behind, so its name says so.
  const draft = isMoved ? join(dirname(path), `.unfinished-${crypto.randomUUID()}`) : path;
  const forget = isMoved ? atExit(() => fs.rmSync(draft, { force: true })) : () => {};
  const file = await writable(name, async () => {
    if (!isMoved) return await open(draft, "w");
    if (found === undefined) return await open(draft, "wx");
    await (await open(path, "r+")).close(); // throws if protected
    const opened = await open(draft, "wx", found.mode & 0o777);
    await opened.chmod(found.mode & 0o777); // whatever the umask is
    return opened;
  });
  const bytesTo = {
    write: async (bytes: Uint8Array) => (await file.write(bytes)).bytesWritten,
  };
  let isWhole = true;
  const close = () =>
    writable(name, async () => {
      if (isMoved && isWhole) await file.sync();
      await file.close();
      if (isMoved) await (isWhole ? rename(draft, path) : rm(draft));
      forget();
    });
  return {
    write: (bytes) =>
      writable(name, async () => {
        isWhole = false;
        await writeAll(bytesTo, bytes);
        isWhole = true;
      }),
    close,
    discard() {
      isWhole = false;
      return close();
    },
  };
}
