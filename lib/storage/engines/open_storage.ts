/** Opening the configured storage. Each driver is loaded only if it is used. */

import type { ContentPlace } from "../content/content_place.ts";
import type { OpenOptions } from "../../database/open_options.ts";
import { MediaStorage } from "../media/media_storage.ts";

interface StoragePlaces {
  readonly engine: "sqlite" | "postgres";
  readonly databaseUrl: string;
  readonly content: ContentPlace;
}

/** Opens the catalogue and the content. */
export async function openStorage(
  { engine, databaseUrl, content }: StoragePlaces,
  options: OpenOptions,
): Promise<MediaStorage> {
  const { openEngine } = engine === "postgres"
    ? await import("./postgres.ts")
    : await import("./sqlite.ts");
  const opened = await openEngine(databaseUrl, options);
  if (content.kind === "none") {
    const { NO_CONTENT } = await import("../content/none/no_content.ts");
    return new MediaStorage(opened, NO_CONTENT);
  }
  if (content.kind === "folder") {
    const { FolderContent } = await import("../content/folder/content.ts");
    return new MediaStorage(opened, new FolderContent(content.path, opened.catalogue, options));
  }
  const { BucketContent } = await import("../content/bucket/content.ts");
  return new MediaStorage(opened, new BucketContent(content, options));
}
