/** Files that commands write. */

import { dirname } from "node:path";
import { quoted } from "../input/printable.ts";
import { RefusedError } from "../input/refused_error.ts";
import { isWithin, refusalOfOwn } from "../publishing/sources.ts";
import { fromUser } from "./command.ts";

/** A file to write. Once writing has failed, nothing is left of it, and no more is written. */
export interface Output {
  readonly write: (bytes: Uint8Array) => Promise<void>;
  /** Replaces the file that is there, if there is one. */
  readonly close: () => Promise<void>;
}

/**
 * Opens a file to write. It is written beside its place and then moved there, so that a file is
 * replaced as a whole; a pipe or a device is written where it is.
 *
 * @param name The path, as the user gave it.
 * @param own The files and folders of storage, which are refused.
 * @throws {RefusedError} When it cannot be written, as `write` and `close` do.
 */
export async function openOutput(name: string, own: readonly string[]): Promise<Output> {
  const given = fromUser(name);
  if (await isWithin(given, own)) throw refusalOfOwn(name);
  const path = await Deno.realPath(given).catch(() => given); // a link remains one
  const found = await Deno.stat(path).catch(() => undefined);
  const isMoved = found?.isFile ?? true;
  const draft = isMoved ? `${dirname(path)}/.${crypto.randomUUID()}` : path;
  const file = await written(name, async () => {
    if (found?.isFile) (await Deno.open(path, { write: true })).close(); // unless it is protected
    const mode = (found?.mode ?? 0o666) & 0o777;
    return await Deno.open(draft, { write: true, createNew: isMoved, mode });
  });
  let hasFailed = false;
  const step = async (operation: () => Promise<void>) => {
    if (hasFailed) return;
    try {
      await written(name, operation);
    } catch (error) {
      hasFailed = true;
      file[Symbol.dispose]();
      if (isMoved) await Deno.remove(draft).catch(() => {});
      throw error;
    }
  };
  return {
    write: (bytes) =>
      step(async () => {
        for (let done = 0; done < bytes.length;) done += await file.write(bytes.subarray(done));
      }),
    close: () =>
      step(async () => {
        if (isMoved) await file.sync();
        file.close();
        if (isMoved) await Deno.rename(draft, path);
      }),
  };
}

/** Runs an operation on a file to write, and refuses the file if it fails. */
async function written<T>(name: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    throw new RefusedError(`${quoted(name)} cannot be written`, { cause });
  }
}
