/** The errors of storage. */

import { StorageError } from "../database/errors.ts";

export { StorageError };

/** Thrown when the content was replaced by other content. */
export class ReplacedError extends StorageError {
  override readonly name = "ReplacedError";
}

/** Thrown when an item was unpublished after its lookup. */
export class UnpublishedError extends Error {
  override readonly name = "UnpublishedError";
}
