/**
 * The permissions that storage needs, checked before it is opened.
 */

import type { Config } from "./config.ts";
import { StartError } from "./process.ts";

/**
 * Ensures that Deno lets the server use its storage; `deno.json` grants no more than `./data`.
 *
 * @throws {StartError} Otherwise, with the whole command that does.
 */
export function requireStorageAccess({ databaseUrl, content, reusePort }: Config): void {
  const file = /^sqlite:(?!:memory:)(.+)/.exec(databaseUrl)?.[1];
  const parameters = URL.parse(databaseUrl)?.searchParams;
  const certificates = ["sslrootcert", "sslcert", "sslkey"]
    .flatMap((name) => parameters?.get(name) ?? []);
  const folders = [
    ...file === undefined ? [] : [/^(.*)\//.exec(file)?.[1] ?? "."],
    ...content.kind === "folder" ? [content.path] : [],
  ];
  const wanted = { read: [...folders, ...certificates], write: folders };
  const refused = (["read", "write"] as const).flatMap((name) =>
    wanted[name].filter((path) => Deno.permissions.querySync({ name, path }).state !== "granted")
  );
  if (refused.length === 0) return;
  const flags = Object.entries(wanted).filter(([, paths]) => paths.length > 0)
    .map(([name, paths]) => quoted(`--allow-${name}=${unique(paths).join()}`));
  const sharing = reusePort ? ["--unstable-net"] : [];
  const command = [
    "deno run --quiet --no-prompt --env-file",
    ...sharing,
    "-P",
    ...flags,
    "main.ts",
  ];
  throw new StartError(
    `Deno's permissions do not allow ${unique(refused).join(" and ")} (DATABASE_URL, CONTENT);` +
      ` run:\n  ${command.join(" ")}`,
  );
}

function unique(paths: string[]): string[] {
  return [...new Set(paths)];
}

/** Quotes an argument for a shell, where that is needed. */
function quoted(argument: string): string {
  return /^[\w./,=:@%+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
