/** The files and folders of storage. Commands refuse to publish or overwrite them. */

import { basename, dirname, join, sep } from "node:path";
import { RefusedError } from "../errors/refused_error.ts";
import { quoted } from "../input/printable.ts";
import type { Config } from "../server/config.ts";

/** Returns the paths of storage. Never open them: closing a SQLite file releases its locks. */
export function storagePathsOf(
  { database: { files }, content }: Pick<Config, "database" | "content">,
): string[] {
  return content.kind === "folder" ? [content.path, `${content.path}/lock`, ...files] : [...files];
}

/** Returns the refusal of a file or folder of storage. */
export function refusalOfStoragePath(path: string): RefusedError {
  return new RefusedError(`${quoted(path)} is part of storage (DATABASE_URL, CONTENT)`, {
    kind: "part of storage",
  });
}

/** Returns whether a path leads to or into one of the others, by any name. */
export async function isWithin(path: string, others: readonly string[]): Promise<boolean> {
  const [inner, ...outer] = await Promise.all([path, ...others].map(realPathOf));
  if (outer.some((other) => `${inner}${sep}`.startsWith(`${other}${sep}`))) return true;
  const { nlink, dev, ino } = await infoOf(path);
  if ((nlink ?? 1) < 2) return false;
  const infos = await Promise.all(others.map(infoOf));
  return infos.some((other) => other.dev === dev && other.ino === ino); // a hard link
}

/** Returns the real path of a file, even if the file does not exist. */
function realPathOf(path: string): Promise<string> {
  return Deno.realPath(path).catch(async () => {
    const folder = dirname(path);
    return join(await Deno.realPath(folder).catch(() => folder), basename(path));
  });
}

function infoOf(path: string): Promise<Partial<Deno.FileInfo>> {
  return Deno.stat(path).catch(() => ({}));
}
