/** The errors of storage. */

import { StorageError } from "../database/errors.ts";

export { StorageError };

/** Thrown when content is not in storage. */
export class MissingError extends StorageError {
  override readonly name = "MissingError";
}

/** Thrown when the content was replaced by other content. */
export class ReplacedError extends StorageError {
  override readonly name = "ReplacedError";
}

/** Thrown when an item was unpublished after its lookup. */
export class UnpublishedError extends Error {
  override readonly name = "UnpublishedError";
}
