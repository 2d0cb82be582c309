/** Who may change the folder with the content. */

import { StorageError } from "../../../errors/storage_error.ts";
import { ifPresent } from "./own_entries.ts";

/** Thrown when root would change the folder of another user. */
export class OwnerError extends StorageError {
  override readonly name = "OwnerError";

  /** @param uid The id of the user to whom the folder belongs. */
  constructor(folder: string, readonly uid: number) {
    const owner = `belongs to the user with the id ${uid}, so root must not change it`;
    super("files", `${JSON.stringify(folder)} (CONTENT) ${owner}; run this as that user`);
  }
}

/**
 * Refuses root in a folder of another user, who could put a link in the place of a file, and so
 * have any file of the system changed.
 *
 * @throws {OwnerError}
 */
export async function requireOwner(folder: string): Promise<void> {
  if (Deno.uid() !== 0) return;
  const uid = (await ifPresent(Deno.stat(folder)))?.uid ?? 0;
  if (uid !== 0) throw new OwnerError(folder, uid);
}
