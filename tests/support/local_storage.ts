/** Local storage in a temporary folder, for one test. */

import { sqliteAt } from "../../lib/database/place.ts";
import { FolderContent } from "../../lib/storage/content/folder/content.ts";
import type { Engine } from "../../lib/storage/engines/engine.ts";
import { type OpenStorage, storageOn } from "../../lib/storage/engines/open_storage.ts";
import { openEngine } from "../../lib/storage/engines/sqlite.ts";
import { type MediaSubject, subjectOn } from "./media_subject.ts";

/** Opens the storage that a server keeps in a folder. */
export async function openIn(
  folder: string,
  database: Promise<Engine> = openEngine(sqliteAt(`${folder}/catalogue.sqlite`)),
): Promise<OpenStorage> {
  const engine = await database;
  return storageOn(engine, new FolderContent(`${folder}/files`, engine.catalogue));
}

/** Counts the calls in a folder's ledger. */
export async function callsIn(folder: string): Promise<number> {
  const { ledger, close } = await openEngine(sqliteAt(`${folder}/catalogue.sqlite`));
  const rows = await Array.fromAsync(ledger.usage(""));
  await close();
  return rows.reduce((sum, { calls }) => sum + calls, 0);
}

/**
 * Opens empty storage; disposing of it removes everything.
 *
 * @param database An empty database to use instead of one in the folder.
 */
export async function openLocal(
  database?: Promise<Engine>,
): Promise<MediaSubject & { readonly folder: string }> {
  const folder = await Deno.makeTempDir({ prefix: "media-head-" });
  const storage = await openIn(folder, database);
  await storage.media.prepare();
  const subject = subjectOn(storage, {
    async damage({ digest }, content) {
      const path = `${folder}/files/${digest.slice(0, 2)}/${digest}`;
      if (content === undefined) await Deno.remove(path);
      else await Deno.writeFile(path, content);
    },
    async digests() {
      const digests: string[] = [];
      for await (const shard of Deno.readDir(`${folder}/files`)) {
        if (shard.name.length !== 2) continue;
        for await (const { name } of Deno.readDir(`${folder}/files/${shard.name}`)) {
          digests.push(name);
        }
      }
      return digests;
    },
    remove: () => Deno.remove(folder, { recursive: true }),
  });
  return { ...subject, folder };
}
