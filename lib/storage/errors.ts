/** The errors of storage that only storage, publishing and `main.ts` tell apart. */

import { StorageError } from "../errors/storage_error.ts";

/** Thrown when content is not in storage. */
export class MissingError extends StorageError {
  override readonly name = "MissingError";
}

/** Thrown when the content was replaced by other content. */
export class ReplacedError extends StorageError {
  override readonly name = "ReplacedError";
}

/** Thrown when a read failed, although the content is not at fault. */
export class SingleReadError extends StorageError {
  override readonly name = "SingleReadError";
}

/** Thrown when an item was unpublished after its lookup. */
export class UnpublishedError extends Error {
  override readonly name = "UnpublishedError";
}
