/** Copies of folders. */

import { join } from "node:path";
import { fromRoot } from "./paths.ts";
import { isFile } from "./permissions.ts";
import { mustRun } from "./run.ts";

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

/**
 * Copies Deno's cache of the packages that the server's own modules name, and of no others.
 *
 * @returns The packages.
 */
export async function copyPackages(to: string): Promise<Set<string>> {
  const info = async (...args: string[]) =>
    JSON.parse(await mustRun(Deno.execPath(), ["info", "--json", ...args]));
  const config = `--config=${fromRoot("deno.json")}`;
  const { modules, npmPackages } = await info(config, fromRoot("main.ts"));
  const needed = new Set<string>(
    modules.flatMap(({ npmPackage }: { npmPackage?: string }) => npmPackage ?? []),
  );
  const { npmCache } = await info();
  const [registry] = [...Deno.readDirSync(npmCache)].filter(({ isDirectory }) => isDirectory);
  for (const id of needed) { // which grows on the way
    const { name, version, dependencies } = npmPackages[id];
    for (const dependency of dependencies) needed.add(dependency);
    const [source = "", target = ""] = [npmCache, to]
      .map((cache) => join(cache, registry?.name ?? "", name));
    copy(join(source, version), join(target, version));
    const answer = join(source, "registry.json"); // of the registry, where one was needed
    if (isFile(answer)) Deno.copyFileSync(answer, join(target, "registry.json"));
  }
  return needed;
}
