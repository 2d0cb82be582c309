/**
 * The files and folders in the folder with the content. Whoever may write there can put links or
 * pipes in their places. So nothing is opened through a link, a file is used only if its handle is
 * that of the file at its path, and a mode is set through a handle. (O_NOFOLLOW does not help,
 * because Deno resolves paths before it opens them.)
 */

import { StorageError } from "../../../errors/storage_error.ts";

type Kind = "file" | "folder";

/**
 * Returns the facts of a file or folder; `undefined` if there is nothing at its path.
 *
 * @throws {StorageError} When there is something else, such as a link.
 */
export async function statOwn(path: string, kind: Kind): Promise<Deno.FileInfo | undefined> {
  const info = await ifPresent(Deno.lstat(path));
  return info && requireKind(path, info, kind);
}

/**
 * Opens a file.
 *
 * @throws {StorageError} When there is something else, such as a link.
 */
export async function openOwn(path: string, options: Deno.OpenOptions): Promise<Deno.FsFile> {
  return await openSame(path, requireKind(path, await Deno.lstat(path), "file"), options);
}

/**
 * Creates a file, and opens it to write.
 *
 * @param mode Its mode, whatever the umask.
 * @returns `undefined` if there is anything at its path.
 */
export async function createOwn(path: string, mode: number): Promise<Deno.FsFile | undefined> {
  const creator = await create(path, mode);
  if (creator === undefined) return undefined;
  try {
    const file = await openSame(path, await creator.stat(), { write: true }); // can be locked
    await creator.chmod(mode); // which Deno's own handles cannot
    return file;
  } finally {
    await creator.close();
  }
}

async function create(path: string, mode: number) {
  const { open } = await nodeFiles();
  try {
    return await open(path, "wx", mode | 0o600);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return undefined;
    throw error;
  }
}

/**
 * Creates a folder, unless it is there.
 *
 * @param mode Its mode, whatever the umask.
 * @throws {StorageError} When there is something else, such as a link.
 */
export async function makeOwnFolder(path: string, mode: number): Promise<void> {
  if (await statOwn(path, "folder") !== undefined) return;
  await Deno.mkdir(path, { mode });
  if (Deno.build.os === "windows") return;
  const { open } = await nodeFiles();
  const folder = await open(path, "r");
  try {
    requireSame(path, await folder.stat(), await statOwn(path, "folder"));
    await folder.chmod(mode);
  } finally {
    await folder.close();
  }
}

/** Loads the functions whose handles can set a mode. Serving does not need them. */
const nodeFiles = () => import("node:fs/promises");

/** What tells files apart, whatever their paths. */
type Identity = Pick<Deno.FileInfo, "dev" | "ino">;

async function openSame(
  path: string,
  expected: Identity,
  options: Deno.OpenOptions,
): Promise<Deno.FsFile> {
  const file = await Deno.open(path, options);
  try {
    requireSame(path, await file.stat(), expected);
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

function requireSame(path: string, opened: Identity, expected: Identity | undefined): void {
  if (Deno.build.os === "windows") return; // which has no inodes
  if (opened.dev === expected?.dev && opened.ino === expected?.ino) return;
  throw new StorageError("files", `${JSON.stringify(path)} was replaced while it was opened`);
}

function requireKind(path: string, info: Deno.FileInfo, kind: Kind): Deno.FileInfo {
  if (kind === "file" ? info.isFile : info.isDirectory) return info;
  const actual = info.isSymlink
    ? "a symbolic link"
    : info.isFile
    ? "a file"
    : info.isDirectory
    ? "a folder"
    : "a pipe, a socket or a device";
  throw new StorageError("files", `${JSON.stringify(path)} is ${actual}, expected a ${kind}`);
}

/** Returns the result of an operation on a file; `undefined` if there is no such file. */
export async function ifPresent<T>(operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
