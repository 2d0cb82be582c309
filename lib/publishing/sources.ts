/**
 * What there is to publish: each source as it was named, and of a folder the files in it.
 */

import { join, sep } from "node:path";
import { isPublicUrl } from "./location.ts";
import { quoted } from "./printable.ts";
import { RefusedError } from "./publish.ts";
import { isObject } from "./publish_object.ts";

/** Why something in a folder is left out. */
export type IgnoredSource = "hidden" | "link" | "content";

/** One source of those that were named or are in a folder. */
export type FoundSource =
  /** To be published: whether it can be, publishing it tells. */
  | { readonly is: "source"; readonly source: string }
  | { readonly is: IgnoredSource; readonly source: string }
  | { readonly is: "unreadable"; readonly source: string; readonly error: RefusedError };

/**
 * Finds all sources, in the order in which they were named, and the files of a folder in the order
 * of their names. No more is held in memory than the names in one folder and in those above it.
 *
 * As with `grep -r`, a link is followed where it was named and not within a folder, so that no
 * folder comes twice. Hidden files within a folder are left out, as by `*` in a shell: other
 * programs give such names to what they have not finished writing.
 *
 * @param sources Paths, URLs and objects.
 * @param content The folder with the content of published items, which is left out.
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

/** Whether a path names a folder, or a link to one. */
export async function isFolder(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).isDirectory;
  } catch {
    return false; // whoever opens it tells what is wrong
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

/** Whether a folder is another one, or is in it. */
async function isWithin(folder: string, other: string | undefined): Promise<boolean> {
  if (other === undefined) return false;
  try {
    const [inner, outer] = await Promise.all([folder, other].map((path) => Deno.realPath(path)));
    return `${inner}${sep}`.startsWith(`${outer}${sep}`);
  } catch {
    return false; // one of them is not there
  }
}
