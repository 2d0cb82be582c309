/** The errors of storage. */

/** What to do about a database of an earlier release. */
export const HOW_TO_UPGRADE = "export it with the earlier one, and import that into a new database";

/** A storage fault. The message names content by digest, and never contains a token. */
export class StorageError extends Error {
  override readonly name: string = "StorageError";

  /** @param driver The part of storage that failed, e.g. `sqlite`. */
  constructor(readonly driver: string, readonly fault: string, options?: ErrorOptions) {
    super(`${driver}: ${fault}`, options);
  }
}

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
