/** A fault of storage or a database. The message contains no secret that a client sent. */
export class StorageError extends Error {
  override readonly name: string = "StorageError";

  /** @param driver The part of storage that failed, e.g. `sqlite`. */
  constructor(driver: string, readonly fault: string, options?: ErrorOptions) {
    super(`${driver}: ${fault}`, options);
  }
}
