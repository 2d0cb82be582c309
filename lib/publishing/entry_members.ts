/** The members of entries in JSON, as commands print them and `import` reads them. */

import type { CatalogueEntry, LinkedItem, PublishedItem } from "../storage/item.ts";
import type { Token } from "../storage/token.ts";

/**
 * Returns the members of an entry, with times in ISO 8601. An item at a URL has the state
 * `published`, and a location.
 */
export function membersOf(token: Token, entry: CatalogueEntry) {
  const { kind } = entry;
  if (entry.state === "unpublished") {
    const unpublishedAt = new Date(entry.unpublishedAt).toISOString();
    return { token, state: entry.state, kind, unpublishedAt };
  }
  const { digest: sha256, publishedAt, ...facts }: Partial<PublishedItem & LinkedItem> = entry.item;
  return {
    state: "published" as const,
    ...facts,
    token,
    kind,
    ...(sha256 === undefined ? undefined : { sha256 }),
    publishedAt: new Date(publishedAt).toISOString(),
  };
}
