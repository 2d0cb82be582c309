interface RefusedErrorOptions extends ErrorOptions {
  /**
   * What is wrong, without the values in the message. Refusals of one kind are counted together,
   * e.g. in an import. Default: "other".
   */
  readonly kind?: string;
}

/** Thrown when a request of a user cannot be fulfilled. The message is for that user. */
export class RefusedError extends Error {
  override readonly name: string = "RefusedError";
  readonly kind: string;

  constructor(message: string, { kind = "other", ...options }: RefusedErrorOptions = {}) {
    super(message, options);
    this.kind = kind;
  }
}

/** Thrown when a command line or setting is wrong. The message says how. */
export class WrongUsageError extends RefusedError {
  override readonly name: string = "WrongUsageError";
}
