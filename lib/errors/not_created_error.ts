/** The cause of the fault of a database that must exist, but does not. */
export class NotCreatedError extends Error {
  override readonly name = "NotCreatedError";

  constructor() {
    super("It does not exist yet; start the server to create it");
  }
}
