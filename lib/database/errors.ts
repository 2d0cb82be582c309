/** The error of storage and databases. */

/** A storage fault. The message names content by digest, and never contains a token. */
export class StorageError extends Error {
  override readonly name: string = "StorageError";

  /** @param driver The part of storage that failed, e.g. `sqlite`. */
  constructor(readonly driver: string, readonly fault: string, options?: ErrorOptions) {
    super(`${driver}: ${fault}`, options);
  }
}
