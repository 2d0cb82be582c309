/** Thrown when a request of a user cannot be fulfilled. The message is for that user. */
export class RefusedError extends Error {
  override readonly name: string = "RefusedError";
}
