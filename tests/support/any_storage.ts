/** Storage on a database of either engine, with content in a folder. */

import type { Engine } from "../../lib/storage/database/engine.ts";
import type { MediaStorage } from "../../lib/storage/media/media_storage.ts";
import { openIn } from "./local_storage.ts";

/** Whether a URL is that of a PostgreSQL database. */
export function isPostgres(url: string): boolean {
  return url.startsWith("postgres");
}

/** Opens storage as a server does. */
export function openStorage(url: string, folder: string): Promise<MediaStorage> {
  return openIn(folder, openDatabase(url));
}

async function openDatabase(url: string): Promise<Engine> {
  const { openEngine } =
    await (isPostgres(url)
      ? import("../../lib/storage/database/postgres/engine.ts")
      : import("../../lib/storage/database/sqlite/engine.ts"));
  return await openEngine(url);
}
