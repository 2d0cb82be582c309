/** Thrown when what a user asks for cannot be done. The message is for that user. */
export class RefusedError extends Error {
  override readonly name: string = "RefusedError";

  /** @param field The member of a record that is at fault, if it is one. */
  constructor(message: string, options?: ErrorOptions, readonly field?: string) {
    super(message, options);
  }
}
