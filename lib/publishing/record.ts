/**
 * Records, as commands print them and `import` reads them.
 */

import type { CatalogueEntry, LinkedItem, PublishedItem } from "../storage/storage.ts";
import type { Token } from "../storage/token.ts";

/**
 * Converts an entry to a record, with times in ISO 8601. An item at a URL has the state
 * `published`, and a location.
 */
export function toRecord(token: Token, entry: CatalogueEntry) {
  const { kind } = entry;
  if (entry.state === "unpublished") {
    const unpublishedAt = new Date(entry.unpublishedAt).toISOString();
    return { token, state: entry.state, kind, unpublishedAt };
  }
  const { type, length, digest: sha256, name, language, location, validator, publishedAt }: Partial<
    PublishedItem & LinkedItem
  > = entry.item;
  return {
    state: "published" as const,
    token,
    kind,
    ...(type === undefined ? undefined : { type }),
    ...(length === undefined ? undefined : { length }),
    ...(sha256 === undefined ? undefined : { sha256 }),
    ...(name === undefined ? undefined : { name }),
    ...(language === undefined ? undefined : { language }),
    ...(location === undefined ? undefined : { location }),
    ...(validator === undefined ? undefined : { validator }),
    publishedAt: new Date(publishedAt as number).toISOString(),
  };
}
