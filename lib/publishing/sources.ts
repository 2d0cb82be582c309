/**
 * Finding what to publish: each named source, and the files of named folders.
 */

import { join, sep } from "node:path";
import { isPublicUrl } from "./location.ts";
import { quoted } from "../input/printable.ts";
import { RefusedError } from "../input/refused_error.ts";
import { isObject } from "./publish_object.ts";

/** Why something in a folder is left out. */
export type IgnoredSource = "hidden" | "link" | "content";

/** A source that was named, or found in a folder. */
export type FoundSource =
  /** To be published; whether it can be read is not checked yet. */
  | { readonly is: "source"; readonly source: string }
  | { readonly is: IgnoredSource; readonly source: string }
  | { readonly is: "unreadable"; readonly source: string; readonly error: RefusedError };

/**
 * Finds all sources in the order given, and the files of a folder ordered by name. Memory holds
 * only the names in one folder and its parents.
 *
 * As with `grep -r`, a link is followed if it was named, but not within a folder, so that no folder
 * is visited twice. Hidden files within a folder are left out, as with `*` in a shell: other
 * programs use such names for unfinished files.
 *
 * @param sources Paths, URLs and objects.
 * @param own The files and folders of storage, which are left out.
 */
export async function* findSources(
  sources: Iterable<string>,
  own: readonly string[] = [],
): AsyncGenerator<FoundSource> {
  for (const source of sources) {
    if (isPublicUrl(source) || isObject(source)) yield { is: "source", source };
    else if (await isWithin(source, own)) {
      yield { is: "unreadable", source, error: refusalOfOwn(source) };
    } else if (await isFolder(source)) yield* filesIn(source, own);
    else yield { is: "source", source };
  }
}

/** Returns the refusal of a file or folder of storage. */
export function refusalOfOwn(path: string): RefusedError {
  return new RefusedError(`${quoted(path)} is part of storage (DATABASE_URL, CONTENT)`);
}

/** Whether a path is a folder, or a link to one. */
export async function isFolder(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).isDirectory;
  } catch {
    return false; // opening it reports the error
  }
}

async function* filesIn(folder: string, own: readonly string[]): AsyncGenerator<FoundSource> {
  const names: string[] = [];
  try {
    for await (const { name, isDirectory, isSymlink } of Deno.readDir(folder)) {
      if (name.startsWith(".")) yield { is: "hidden", source: join(folder, name) };
      else if (isSymlink) yield { is: "link", source: join(folder, name) };
      else names.push(isDirectory ? `${name}/` : name);
    }
  } catch (cause) {
    const error = new RefusedError(`${quoted(folder)} cannot be read`, { cause });
    yield { is: "unreadable", source: folder, error };
  }
  for (const name of names.sort()) {
    const source = join(folder, name.replace(/\/$/, ""));
    if (await isWithin(source, own)) yield { is: "content", source };
    else if (name.endsWith("/")) yield* filesIn(source, own);
    else yield { is: "source", source };
  }
}

/** Whether a path leads to one of others, or into it. */
export async function isWithin(path: string, others: readonly string[]): Promise<boolean> {
  // Paths that lead nowhere are the same as no other.
  const real = (path: string) => Deno.realPath(path).catch(() => crypto.randomUUID());
  const [inner, ...outer] = await Promise.all([path, ...others].map(real));
  return outer.some((other) => `${inner}${sep}`.startsWith(`${other}${sep}`));
}
