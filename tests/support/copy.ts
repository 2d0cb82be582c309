/** Copies of folders. */

import { join } from "node:path";
import { fromRoot } from "./paths.ts";

/** Copies a file, or a folder with everything in it. */
export function copy(from: string, to: string): void {
  if (!Deno.statSync(from).isDirectory) return Deno.copyFileSync(from, to);
  Deno.mkdirSync(to, { recursive: true });
  for (const { name } of Deno.readDirSync(from)) copy(join(from, name), join(to, name));
}

/** Copies what a server runs from. */
export function copyProject(to: string): void {
  Deno.mkdirSync(join(to, "tests"), { recursive: true });
  for (const path of ["lib", "main.ts", "deno.json", "deno.lock", "tests/std.d.ts"]) {
    copy(fromRoot(path), join(to, path));
  }
}
