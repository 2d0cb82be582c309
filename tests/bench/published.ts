/**
 * Storage filled for a measurement, which the contenders serve.
 */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Engine } from "../../lib/storage/engine.ts";
import { Files } from "../../lib/storage/files.ts";
import { MediaStorage } from "../../lib/storage/media_storage.ts";
import type { Token } from "../../lib/storage/token.ts";
import { ITEM_COLUMNS } from "../../lib/storage/sql/catalogue.ts";
import { openIn } from "../support/local_storage.ts";
import type { PublishedItem } from "../../lib/storage/storage.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { storageIn } from "../support/server.ts";

/** How much to publish. */
export interface Extent {
  readonly hot: number;
  readonly cold: number;
  /** The same, for a second catalogue. */
  readonly few: number;
  /** Bytes of an item that is sent whole. */
  readonly medium: number;
  /** Bytes of the largest item. */
  readonly large: number;
}

/** What was published. */
export interface Published {
  /** Items requested repeatedly. */
  readonly hot: readonly PublishedItem[];
  /** Items of 1 MB, 100 MB and the largest, by their length. */
  readonly sized: readonly PublishedItem[];
}

/** Returns the token of a cold item, numbered from 0. */
export function coldToken(index: number): Token {
  return `${index.toString(16).padStart(8, "0")}-c01d-4c01-8c01-c01dc01dc01d` as Token;
}

/** Publishes everything into a folder. */
export async function publishAll(folder: string, extent: Extent): Promise<Published> {
  const storage = await openIn(folder);
  const publish = async (name: string, content: AsyncIterable<Uint8Array>) => {
    await using staged = await storage.stage({ read: () => content });
    return await storage.publish({ ...newMetadata(), name }, staged);
  };
  const hot = [];
  for (let index = 0; index < extent.hot; index++) {
    hot.push(await publish(`item ${index}.mp3`, zeros(4_096, index)));
  }
  const sized = [];
  for (const length of [1_048_576, extent.medium, extent.large]) {
    sized.push(await publish(`${length}.mp3`, zeros(length)));
  }
  await storage.close();
  await Deno.copyFile(`${folder}/catalogue.sqlite`, fewIn(folder));
  copyRecords(fewIn(folder), hot, extent.few);
  copyRecords(`${folder}/catalogue.sqlite`, hot, extent.cold);
  return { hot, sized };
}

/** Publishes items in another database, too, which shares the content. */
export async function publishIn(
  engine: Engine,
  folder: string,
  items: readonly PublishedItem[],
): Promise<void> {
  const storage = new MediaStorage(engine, new Files(storageIn(folder).CONTENT));
  await storage.prepare();
  for (const item of items) await engine.catalogue.add(item);
  await storage.close();
}

/** The smaller catalogue; it shares the content with the other. */
export function fewIn(folder: string): string {
  return `${folder}/few.sqlite`;
}

/** Publishes copies of items, with their content, in other storage. */
export async function publishCopies(
  storage: MediaStorage,
  folder: string,
  items: readonly PublishedItem[],
): Promise<void> {
  await storage.prepare();
  for (const item of items) {
    const read = () => Deno.openSync(contentPath(folder, item)).readable;
    await using staged = await storage.stage({ read });
    await storage.publish(item, staged);
  }
}

/** Returns the path of an item's content. */
export function contentPath(folder: string, { digest }: PublishedItem): string {
  return join(storageIn(folder).CONTENT, digest.slice(0, 2), digest);
}

/** Makes content of zeros after a distinguishing number. */
async function* zeros(length: number, number = 0): AsyncGenerator<Uint8Array> {
  const block = new Uint8Array(1_048_576);
  new DataView(block.buffer).setUint32(0, number);
  for (let left = length; left > 0; left -= block.length) {
    yield await Promise.resolve(block.subarray(0, Math.min(left, block.length)));
  }
}

/** Copies the records of items to many more tokens; publishing them one by one would take hours. */
function copyRecords(path: string, items: readonly PublishedItem[], count: number): void {
  using database = new DatabaseSync(path);
  database.exec("BEGIN IMMEDIATE");
  const copy = database.prepare(
    `INSERT INTO item (token, ${ITEM_COLUMNS}) SELECT ?, ${ITEM_COLUMNS} FROM item WHERE token = ?`,
  );
  for (let index = 0; index < count; index++) {
    copy.run(coldToken(index), (items[index % items.length] as PublishedItem).token);
  }
  database.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
}
