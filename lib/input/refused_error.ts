/** Thrown when a request of a user cannot be fulfilled. The message is for that user. */
export class RefusedError extends Error {
  override readonly name: string = "RefusedError";

  /** @param field The member at fault, if a record is refused for one. */
  constructor(message: string, options?: ErrorOptions, readonly field?: string) {
    super(message, options);
  }
}
