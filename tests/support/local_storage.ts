/** Local storage in a temporary folder, for one test. */

import { sqliteAt } from "../../lib/database/place.ts";
import { DENO_RUNTIME } from "../../lib/database/sqlite/deno_runtime.ts";
import { FolderContent } from "../../lib/storage/content/folder/content.ts";
import type { Engine } from "../../lib/storage/engines/engine.ts";
import { type OpenStorage, storageOn } from "../../lib/storage/engines/open_storage.ts";
import { openEngine } from "../../lib/storage/engines/sqlite.ts";
import { ledgerPlaceOf, type OpenLedger, openLedger } from "../../lib/usage/record/open_ledger.ts";
import { type MediaSubject, subjectOn } from "./media_subject.ts";

/** Opens the storage that a server keeps in a folder. */
export async function openIn(
  folder: string,
  database: Promise<Engine> = openEngine(sqliteAt(`${folder}/catalogue.sqlite`)),
): Promise<OpenStorage> {
  const engine = await database;
  return storageOn(engine, new FolderContent(`${folder}/files`, engine.catalogue));
}

/** Opens the ledger that a server keeps in a folder. */
export async function openLedgerIn(
  folder: string,
  open: typeof openLedger = openLedger,
): Promise<OpenLedger & AsyncDisposable> {
  const place = ledgerPlaceOf(sqliteAt(`${folder}/catalogue.sqlite`));
  const opened = await open(place, { runtime: () => DENO_RUNTIME });
  return { ...opened, [Symbol.asyncDispose]: opened.close };
}

/** Counts the calls in a folder's ledger. */
export async function callsIn(folder: string): Promise<number> {
  await using opened = await openLedgerIn(folder);
  const rows = await Array.fromAsync(opened.ledger.usage(""));
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
