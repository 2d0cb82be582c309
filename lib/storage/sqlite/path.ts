/**
 * Handling paths without `node:path` and `node:url`: the first use of either loads a part of Node's
 * library, which takes a third of the start-up time of a bare server on Deno 2.9.6.
 */

const SEPARATOR = Deno.build.os === "windows" ? /[\\/]/ : "/";

/** Returns the folder of a path. */
export function folderOf(path: string): string {
  return path.split(SEPARATOR).slice(0, -1).join("/") || ".";
}
