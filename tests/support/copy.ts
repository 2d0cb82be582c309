/** Copies of folders. */

import { join } from "node:path";
import { fromRoot } from "./paths.ts";

/** Copies a file, or a folder with everything in it. */
export function copy(from: string, to: string): void {
  if (!Deno.statSync(from).isDirectory) return Deno.copyFileSync(from, to);
  Deno.mkdirSync(to, { recursive: true });
  for (const { name } of Deno.readDirSync(from)) copy(join(from, name), join(to, name));
}

/** The line of a deprecated route in main.ts. */
const DEPRECATED = /^ {2}\{ pattern: .*successor: /;

/**
 * Copies what a server runs from.
 *
 * @param deprecated The deprecated routes that the copy has, whichever main.ts still has.
 */
export function copyProject(to: string, deprecated: readonly string[] = ["audio", "video"]): void {
  Deno.mkdirSync(join(to, "tests"), { recursive: true });
  for (const path of ["lib", "deno.json", "deno.lock", "tests/std.d.ts"]) {
    copy(fromRoot(path), join(to, path));
  }
  const lines = Deno.readTextFileSync(fromRoot("main.ts")).split("\n")
    .filter((line) => !DEPRECATED.test(line));
  const routes = deprecated.map((name) =>
    `  { pattern: new URLPattern({ pathname: "/${name}/:token" }), serves: ["${name}"], successor: MEDIA },`
  );
  lines.splice(lines.findIndex((line) => line.startsWith("export const ROUTES")) + 1, 0, ...routes);
  Deno.writeTextFileSync(join(to, "main.ts"), lines.join("\n"));
}
