/** Finding the sources to publish: those named, and the files of named folders. */

import { join } from "node:path";
import { RefusedError } from "../errors/refused_error.ts";
import { quoted, withoutPassword } from "../input/printable.ts";
import { refusalOfReading } from "../input/user_file.ts";
import { isPublicUrl, isUrl } from "./location.ts";
import { isObject } from "./publish_object.ts";
import { isWithin, refusalOfStoragePath } from "./storage_paths.ts";

/** The outcome of a source that is not published. */
export type SourceOutcome =
  | { readonly outcome: "omitted"; readonly source: string }
  | { readonly outcome: "refused"; readonly source: string; readonly error: RefusedError };

/**
 * Finds all sources in the order given, and the files of a folder ordered by name. Memory has
 * only the names in one folder and its parents.
 *
 * As with `grep -r`, a link is followed if it was named, but not within a folder, so that no folder
 * is visited twice. Hidden files within a folder are left out, as with `*` in a shell: other
 * programs use such names for unfinished files.
 *
 * @param sources Paths, URLs and objects.
 * @param storagePaths The files and folders of storage, to be left out.
 * @returns Each source to publish, even if it is unreadable, and the outcome of each other source.
 */
export async function* findSources(
  sources: Iterable<string>,
  storagePaths: readonly string[],
): AsyncGenerator<string | SourceOutcome> {
  for (const source of sources) {
    if (isPublicUrl(source) || isObject(source)) yield source;
    else if (isUrl(source)) {
      const fault = `${quoted(withoutPassword(source))} cannot be published`;
      const error = new RefusedError(`${fault}; expected http://…, https://… or s3://BUCKET/KEY`);
      yield { outcome: "refused", source: withoutPassword(source), error };
    } else if (await isWithin(source, storagePaths)) {
      yield { outcome: "refused", source, error: refusalOfStoragePath(source) };
    } else if (await isFolder(source)) yield* filesIn(source, storagePaths);
    else yield source;
  }
}

/** Returns whether a path is a folder, or a link to one. */
export async function isFolder(path: string): Promise<boolean> {
  const info = await Deno.stat(path).catch(() => undefined); // opening reports the error
  return info?.isDirectory ?? false;
}

async function* filesIn(
  folder: string,
  storagePaths: readonly string[],
): AsyncGenerator<string | SourceOutcome> {
  const names: string[] = [];
  try {
    for await (const { name, isDirectory, isSymlink } of Deno.readDir(folder)) {
      if (name.startsWith(".") || isSymlink) {
        yield { outcome: "omitted", source: join(folder, name) };
      } else names.push(isDirectory ? `${name}/` : name);
    }
  } catch (cause) {
    yield { outcome: "refused", source: folder, error: refusalOfReading(folder, cause) };
  }
  for (const name of names.sort()) {
    const source = join(folder, name.replace(/\/$/, ""));
    if (await isWithin(source, storagePaths)) yield { outcome: "omitted", source };
    else if (name.endsWith("/")) yield* filesIn(source, storagePaths);
    else yield source;
  }
}
