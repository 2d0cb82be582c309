/** Opens the configured storage. Each driver is loaded only if it is used. */

import type { OpenOptions } from "../../database/open_options.ts";
import type { DatabasePlace } from "../../database/place.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { ContentPlace } from "../content/content_place.ts";
import type { ContentStore } from "../content/content_store.ts";
import { MediaStorage } from "../media/media_storage.ts";
import type { Engine } from "./engine.ts";

interface StoragePlaces {
  readonly database: DatabasePlace;
  readonly content: ContentPlace;
}

/** The media, and what closes their storage. */
export interface OpenStorage {
  readonly media: MediaStorage;
  close(): Promise<void>;
}

/**
 * Opens the catalogue and the content.
 *
 * @throws {StorageError} When the database cannot be opened, or belongs to another release.
 */
export async function openStorage(
  { database, content: place }: StoragePlaces,
  options: OpenOptions,
): Promise<OpenStorage> {
  const opened = await engineAt(database, options);
  return storageOn(opened, await contentIn(place, opened.catalogue, options));
}

async function engineAt(place: DatabasePlace, options: OpenOptions): Promise<Engine> {
  if (place.kind === "sqlite") {
    return await (await import("./sqlite.ts")).openEngine(place, options);
  }
  return await (await import("./postgres.ts")).openEngine(place, options);
}

/** Puts a content store beside an engine. */
export function storageOn(
  { catalogue, close }: Engine,
  content: ContentStore,
): OpenStorage {
  return {
    media: new MediaStorage(catalogue, content),
    async close() {
      await close();
      await content.close();
    },
  };
}

async function contentIn(
  place: ContentPlace,
  catalogue: Catalogue,
  options: OpenOptions,
): Promise<ContentStore> {
  if (place.kind === "none") {
    const { NO_CONTENT } = await import("../content/none/no_content.ts");
    return NO_CONTENT;
  }
  if (place.kind === "folder") {
    const { FolderContent } = await import("../content/folder/content.ts");
    return new FolderContent(place.path, catalogue, options);
  }
  const { BucketContent } = await import("../content/bucket/content.ts");
  return new BucketContent(place, options);
}
