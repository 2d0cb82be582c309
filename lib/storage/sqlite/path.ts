/**
 * Paths of files, without `node:path` and `node:url`: the first use of either loads a part of Node's
 * library, which takes a third of what a bare server of Deno 2.9.6 takes to start.
 */

const SEPARATOR = Deno.build.os === "windows" ? /[\\/]/ : "/";

/** The folder that a path is in. */
export function folderOf(path: string): string {
  return path.split(SEPARATOR).slice(0, -1).join("/") || ".";
}
