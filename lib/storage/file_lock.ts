/** Locks on files (flock), which the system releases if their holder dies. */

import { type Patience, waitFor } from "../async/abort.ts";
import { StorageError } from "./errors.ts";

/**
 * Milliseconds between two heartbeats of a holder, and without any until it counts as suspended.
 */
const [BEAT_MS, SILENCE_MS] = [5_000, 60_000];

/**
 * Runs an action while holding the lock on a file. A note beside the file says who holds the lock.
 * Other programs, like a backup, leave no note, and may hold the lock for as long as they want.
 *
 * @param lock How to open the file, its name in messages, and the driver that uses it.
 * @throws {StorageError} When the file cannot be opened, or the holder is suspended.
 */
export async function withFileLock<T>(
  path: string,
  { open, name, driver }: { open: Deno.OpenOptions; name: string; driver: string },
  patience: Patience,
  action: () => Promise<T>,
): Promise<T> {
  using file = await Deno.open(path, open).catch((cause) => {
    throw new StorageError(driver, `${name} cannot be opened`, { cause });
  });
  const note = `${path}-holder`;
  const since = Date.now();
  const held = async () => {
    const holder = await Deno.readTextFile(note).catch(() => "another process");
    return `${name}, which ${holder} holds`;
  };
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const looking = setInterval(async () => {
    const { mtime } = await Deno.stat(note).catch(() => ({ mtime: null }));
    if (mtime === null || Date.now() - Math.max(since, mtime.getTime()) < SILENCE_MS) return;
    reject(new StorageError(driver, `${await held()}, is stuck: that process is suspended`));
  }, BEAT_MS);
  const locking = waitFor(held, Promise.race([file.lock(true), stopped]), patience);
  await locking.finally(() => clearInterval(looking));
  await Deno.remove(note).catch(() => {}); // that of a killed process, perhaps of another user
  // Without the permission to write there, nobody learns who holds it.
  const beat = () => Deno.writeTextFile(note, `process ${Deno.pid}`).catch(() => {});
  let beating = beat();
  const timer = setInterval(() => void (beating = beat()), BEAT_MS);
  try {
    return await action();
  } finally {
    clearInterval(timer);
    await beating;
    await Deno.remove(note).catch(() => {});
  }
}
