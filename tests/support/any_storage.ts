/**
 * Storage on a database of either engine, with content in a folder.
 */

import type { Engine } from "../../lib/storage/engine.ts";
import type { MediaStorage } from "../../lib/storage/media_storage.ts";
import { openIn } from "./local_storage.ts";

/** Whether a URL is that of a PostgreSQL database. */
export function isPostgres(url: string): boolean {
  return url.startsWith("postgres");
}

/** Opens storage as a server does. */
export function openStorage(url: string, folder: string): Promise<MediaStorage> {
  return openIn(folder, openDatabase(url));
}

/** Opens a database with the engine that its URL names. */
export async function openDatabase(url: string): Promise<Engine> {
  const { openEngine } =
    await (isPostgres(url)
      ? import("../../lib/storage/postgres/engine.ts")
      : import("../../lib/storage/sqlite/engine.ts"));
  return await openEngine(url);
}
