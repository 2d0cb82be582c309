/** The cause of the fault of a database that must exist, but does not. */
export class NotCreatedError extends Error {
  override readonly name = "NotCreatedError";

  /** @param setting The setting or option that names the database. */
  constructor(setting: string) {
    super(`It does not exist yet; start the server to create it, or name yours with ${setting}`);
  }
}
