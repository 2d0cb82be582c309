/**
 * Refusing what a user asks for.
 */

/** Thrown when what a user asks for cannot be done. The message is for that user. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
}
