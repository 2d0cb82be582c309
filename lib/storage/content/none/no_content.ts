/**
 * The content store for `CONTENT=none`: every item is at a public URL, and no content can be
 * stored.
 */

import { StorageError } from "../../../errors/storage_error.ts";
import type { ContentStore } from "../content_store.ts";

function refuse(): Promise<never> {
  const fault = 'CONTENT is "none": only public URLs are published and served';
  return Promise.reject(new StorageError("content", fault));
}

export const NO_CONTENT: ContentStore = {
  kind: "none",
  id: refuse,
  create: refuse,
  check: refuse,
  compare: refuse,
  open: refuse,
  change: refuse,
  deleteLeftovers: refuse,
  withoutRemovals: (action) => action(),
  async *list() {},
  async close() {},
};
