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
 * @param content The folder of published content, which is left out.
 */
export async function* findSources(
  sources: Iterable<string>,
  content?: string,
): AsyncGenerator<FoundSource> {
  for (const source of sources) {
    if (isPublicUrl(source) || isObject(source) || !await isFolder(source)) {
      yield { is: "source", source };
    } else if (await isWithin(source, content)) {
      const error = new RefusedError(`${quoted(source)} holds published content (CONTENT)`);
      yield { is: "unreadable", source, error };
    } else yield* filesIn(source, content);
  }
}

/** Whether a path is a folder, or a link to one. */
export async function isFolder(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).isDirectory;
  } catch {
    return false; // opening it reports the error
  }
}

async function* filesIn(folder: string, content: string | undefined): AsyncGenerator<FoundSource> {
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
    if (!name.endsWith("/")) yield { is: "source", source };
    else if (await isWithin(source, content)) yield { is: "content", source };
    else yield* filesIn(source, content);
  }
}

/** Whether a folder is the same as another, or inside it. */
async function isWithin(folder: string, other: string | undefined): Promise<boolean> {
  if (other === undefined) return false;
  try {
    const [inner, outer] = await Promise.all([folder, other].map((path) => Deno.realPath(path)));
    return `${inner}${sep}`.startsWith(`${outer}${sep}`);
  } catch {
    return false; // one of them does not exist
  }
}
