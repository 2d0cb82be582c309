/** Thrown when a request of a user cannot be fulfilled. The message is for that user. */
export class RefusedError extends Error {
  override readonly name: string = "RefusedError";
}

/** Thrown when a command line or setting is wrong. The message says how. */
export class WrongUsageError extends RefusedError {
  override readonly name: string = "WrongUsageError";
}
