/** The error of storage and databases. */

/** A fault of storage. Its message contains no secret that a client sent. */
export class StorageError extends Error {
  override readonly name: string = "StorageError";

  /** @param driver The part of storage that failed, e.g. `sqlite`. */
  constructor(readonly driver: string, readonly fault: string, options?: ErrorOptions) {
    super(`${driver}: ${fault}`, options);
  }
}
