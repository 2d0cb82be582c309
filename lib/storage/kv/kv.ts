/**
 * Deno KV, opened and guarded. The same code runs on an embedded SQLite file, on a platform's KV,
 * and on any KV Connect URL.
 */

import { StorageError } from "../storage.ts";

/**
 * Opens a database, and makes an empty one where there is none.
 *
 * @param location A path, `:memory:`, or a KV Connect URL; the platform's own KV without one.
 * @throws {StorageError} When it cannot be opened.
 */
export function openKv(location: string | undefined): Promise<Deno.Kv> {
  const place = location === undefined ? "of the platform" : `${JSON.stringify(location)}`;
  return guarded(`cannot open the catalogue ${place} (STORAGE_KV)`, async () => {
    if (location !== undefined && location !== ":memory:" && !URL.canParse(location)) {
      const folder = /^(.*)[/\\]/.exec(location)?.[1]; // a path library looks at `process`, for which Deno starts all of Node
      if (folder) await Deno.mkdir(folder, { recursive: true });
    }
    return await openUnlocked(location);
  });
}

/** How long an embedded database may be locked while it is opened, in milliseconds. */
const MAX_LOCKED = 10_000;

/**
 * Opens a database that others may be opening too, such as processes on one port that start together:
 * SQLite refuses at once, without waiting, while another turns a new file to its write-ahead log.
 */
async function openUnlocked(location: string | undefined): Promise<Deno.Kv> {
  const end = performance.now() + MAX_LOCKED;
  for (;;) {
    try {
      return await Deno.openKv(location);
    } catch (error) {
      const isLocked = error instanceof Error && error.message.includes("database is locked");
      if (!isLocked || performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10 + Math.random() * 40));
    }
  }
}

/**
 * Runs an operation of KV.
 *
 * @throws {StorageError} With the message and the cause, when it fails.
 */
export async function guarded<T>(message: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    throw new StorageError("kv", message, { cause });
  }
}

/** Lists what a selector selects, bit by bit, with faults guarded as well. */
export async function* listKv(
  kv: Deno.Kv,
  selector: Deno.KvListSelector,
  options?: Deno.KvListOptions,
): AsyncGenerator<Deno.KvEntry<unknown>> {
  const entries = kv.list(selector, options);
  for (;;) {
    const next = await guarded("cannot list the catalogue", () => entries.next());
    if (next.done) return;
    yield next.value;
  }
}
