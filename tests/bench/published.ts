/** Storage filled for a measurement, which the contenders serve. */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { hashOf } from "../../lib/publishing/publish.ts";
import { ITEM_COLUMNS } from "../../lib/storage/catalogue/catalogue.ts";
import type { PublishedItem } from "../../lib/storage/item.ts";
import type { Token } from "../../lib/storage/token.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openIn } from "../support/local_storage.ts";

/** How much to publish. */
interface Extent {
  readonly hot: number;
  readonly cold: number;
  /** Bytes of an item that is sent whole. */
  readonly medium: number;
  /** Bytes of the largest item. */
  readonly large: number;
}

/** What was published. */
export interface Published {
  /** Items requested repeatedly. */
  readonly hot: readonly PublishedItem[];
  readonly megabyte: PublishedItem;
  readonly medium: PublishedItem;
  readonly large: PublishedItem;
}

/** Returns the token of a cold item, numbered from 0. It sorts before those of hot items. */
export function coldToken(index: number): Token {
  return `00000000-c01d-4c01-8c01-${index.toString(16).padStart(12, "0")}` as Token;
}

/** Publishes everything into a folder. */
export async function publishAll(folder: string, extent: Extent): Promise<Published> {
  const { media: storage, close } = await openIn(folder);
  const publish = async (name: string, length: number, number = 0) => {
    const read = () => zeros(length, number);
    const item = { ...newMetadata(), name, ...await hashOf(read()) };
    return await storage.publish(item, { read });
  };
  const hot = [];
  for (let index = 0; index < extent.hot; index++) {
    hot.push(await publish(`item ${index}.mp3`, 4_096, index));
  }
  const [megabyte, medium, large] = [
    await publish("megabyte.mp3", 1_048_576),
    await publish("medium.mp3", extent.medium),
    await publish("large.mp3", extent.large),
  ];
  await close();
  copyRows(`${folder}/catalogue.sqlite`, hot, extent.cold);
  return { hot, megabyte, medium, large };
}

/** Returns the path of an item's content. */
export function contentPath(folder: string, { digest }: PublishedItem): string {
  return join(`${folder}/files`, digest.slice(0, 2), digest);
}

/** Makes content of zeros after a distinguishing number. */
async function* zeros(length: number, number: number): AsyncGenerator<Uint8Array> {
  const block = new Uint8Array(1_048_576);
  new DataView(block.buffer).setUint32(0, number);
  for (let left = length; left > 0; left -= block.length) {
    yield await Promise.resolve(block.subarray(0, Math.min(left, block.length)));
  }
}

/** Copies the rows of items to many more tokens; publishing them one by one would take hours. */
function copyRows(path: string, items: readonly PublishedItem[], count: number): void {
  using database = new DatabaseSync(path);
  database.exec("BEGIN IMMEDIATE");
  const copy = database.prepare(
    `INSERT INTO media_head_item (token, ${ITEM_COLUMNS}) SELECT ?, ${ITEM_COLUMNS} FROM media_head_item WHERE token = ?`,
  );
  for (let index = 0; index < count; index++) {
    copy.run(coldToken(index), (items[index % items.length] as PublishedItem).token);
  }
  database.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
}
