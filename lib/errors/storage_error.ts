interface StorageErrorOptions extends ErrorOptions {
  /** What failed, without the values in the fault, such as a digest. Default: the fault itself. */
  readonly kind?: string | undefined;
  /** Whether waiting does not mend it, as a wrong password. */
  readonly isLasting?: boolean | undefined;
}

/** A fault of storage or a database. The message contains no secret that a client sent. */
export class StorageError extends Error {
  override readonly name: string = "StorageError";
  /** Faults of one kind are logged, or counted, as one. */
  readonly kind: string;
  readonly isLasting: boolean;

  /** @param driver The part of storage that failed, e.g. `sqlite`. */
  constructor(
    driver: string,
    readonly fault: string,
    { kind = fault, isLasting = false, ...options }: StorageErrorOptions = {},
  ) {
    super(`${driver}: ${fault}`, options);
    this.kind = kind;
    this.isLasting = isLasting;
  }
}

/** Returns whether waiting does not mend what was thrown. A bug is not mended by waiting, either. */
export function isLasting(error: unknown): boolean {
  return error !== undefined && !(error instanceof StorageError && !error.isLasting);
}

/** The cause of the fault of a database that must exist, but does not. */
export class NotCreatedError extends Error {
  override readonly name = "NotCreatedError";

  /** @param setting The setting or option that names the database. */
  constructor(setting: string) {
    super(`It does not exist yet; start the server to create it, or name yours with ${setting}`);
  }
}
