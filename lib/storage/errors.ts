/** The errors of storage. */

import { StorageError } from "../database/errors.ts";

export { StorageError };

/** Thrown when storage works, but an object cannot be published in place. */
export class ObjectError extends StorageError {
  override readonly name = "ObjectError";
}

/** Thrown when the content was replaced by other content. */
export class ReplacedError extends StorageError {
  override readonly name = "ReplacedError";
}

/** Thrown when an item was unpublished after its lookup. */
export class UnpublishedError extends Error {
  override readonly name = "UnpublishedError";
}
