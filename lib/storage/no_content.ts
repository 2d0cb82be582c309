/**
 * The content store for `CONTENT=none`: every item is at a public URL, and no content can be
 * stored.
 */

import type { ContentStore } from "./content.ts";
import { StorageError } from "./storage.ts";

const refusal = () =>
  new StorageError("content", 'CONTENT is "none": only public URLs are published and served');

function refuse(): never {
  throw refusal();
}

/** A content store that stores nothing. */
export const NO_CONTENT: ContentStore = {
  id: () => Promise.resolve().then(refuse),
  create: () => Promise.resolve().then(refuse),
  check: () => Promise.resolve().then(refuse),
  requireContent: refuse,
  open: () => Promise.resolve().then(refuse),
  stage: () => Promise.resolve().then(refuse),
  change: () => Promise.resolve().then(refuse),
  compare: () => Promise.resolve().then(refuse),
  async *list() {},
  isUnused: () => Promise.resolve(false),
  hold: (_digests, action) => action(),
  faultsIn: (contents) => Promise.resolve(contents.map(refusal)),
};
