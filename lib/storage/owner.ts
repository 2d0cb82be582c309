/**
 * Whose storage is. Whoever may write in a folder can put a link in the place of a file or folder
 * there. If root follows it, any file of the system is created or changed. SQLite even gives the
 * files beside a database to its owner. So root keeps out of the storage of others.
 */

import { dirname, join, parse, resolve, sep } from "node:path";
import { StorageError } from "../errors/storage_error.ts";

/** Thrown when root would use the storage of another user. */
export class OwnerError extends StorageError {
  override readonly name = "OwnerError";

  constructor(path: string, setting: string, readonly owner: Owner) {
    const fault = `belongs to the user with the id ${owner.uid}, so root must not use it`;
    super("files", `${JSON.stringify(path)} (${setting}) ${fault}; run this as that user`);
  }
}

/** The ids of a user and a group. */
interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The setting that names storage, for messages. */
type Setting = "DATABASE_URL" | "CONTENT" | "--also";

/** The number of links to follow, as in Linux. */
const MAX_LINKS = 40;

/**
 * Refuses root a file or folder that somebody else may replace: it, a link, or a folder on the way
 * belongs to another user, or others may write in such a folder. In one like `/tmp`, which is
 * sticky, others may only add to what is there.
 *
 * @param path It need not exist.
 * @throws {OwnerError} If it belongs to another user.
 * @throws {StorageError} If others may write in a folder on the way.
 */
export async function requireOwner(path: string, setting: Setting): Promise<void> {
  if (Deno.uid() !== 0) return;
  let shared: string | undefined;
  let { root: at } = parse(resolve(path));
  let rest = partsOf(resolve(path));
  for (let links = 0; links < MAX_LINKS;) {
    const info = await infoOf(at);
    if (info === undefined) break; // root creates the rest
    const { uid, gid, mode } = info;
    if (uid) throw new OwnerError(at, setting, { uid, gid: gid ?? 0 });
    if (info.isSymlink) {
      links++;
      const target = resolve(dirname(at), await Deno.readLink(at));
      rest = [...partsOf(target), ...rest];
      at = parse(target).root;
      continue;
    }
    const isShared = info.isDirectory && ((mode ?? 0) & 0o022) !== 0 &&
      ((mode ?? 0) & 0o1000) === 0;
    if (isShared) shared ??= at;
    const [next, ...others] = rest;
    if (next === undefined) break;
    [at, rest] = [join(at, next), others];
  }
  if (shared === undefined) return;
  const fault = `leads through ${JSON.stringify(shared)}, in which others than root may write`;
  const remedy = "let only root write there, or run this as the user of the server";
  throw new StorageError("files", `${JSON.stringify(path)} (${setting}) ${fault}; ${remedy}`);
}

function partsOf(path: string): string[] {
  return path.slice(parse(path).root.length).split(sep).filter((part) => part !== "");
}

/** The facts of a folder that Deno's permissions hide, and through which nothing else can lead. */
const HIDDEN = { uid: 0, gid: 0, mode: 0o755, isSymlink: false, isDirectory: true };

/** Returns the facts of what is at a path, and not those of what it links to. */
async function infoOf(
  path: string,
): Promise<Pick<Deno.FileInfo, keyof typeof HIDDEN> | undefined> {
  try {
    return await Deno.lstat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    if (error instanceof Deno.errors.NotCapable) return HIDDEN;
    throw error;
  }
}
