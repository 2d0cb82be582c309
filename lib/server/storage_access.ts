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
  const write = new Set([
    ...file === undefined ? [] : [file.slice(0, file.lastIndexOf("/") + 1) || "."],
    ...content.kind === "folder" ? [content.path] : [],
  ]);
  const parameters = URL.parse(databaseUrl)?.searchParams;
  const certificates = ["sslrootcert", "sslcert", "sslkey"]
    .flatMap((name) => parameters?.get(name) ?? []);
  const wanted = { read: new Set([...write, ...certificates]), write };
  const refused = (["read", "write"] as const).flatMap((name) =>
    [...wanted[name]].filter((path) =>
      Deno.permissions.querySync({ name, path }).state !== "granted"
    )
  );
  if (refused.length === 0) return;
  const flags = Object.entries({ read: [".env", ...wanted.read], write: [...write] })
    .filter(([, paths]) => paths.length > 0)
    .map(([name, paths]) => ` ${quoted(`--allow-${name}=${paths.join()}`)}`).join("");
  throw new StartError(
    `Deno's permissions do not allow ${[...new Set(refused)].join(" and ")} (DATABASE_URL,` +
      ` CONTENT); run:\n  deno run --quiet --no-prompt` +
      `${reusePort ? " --unstable-net" : ""} -P${flags} main.ts`,
  );
}

/** Quotes an argument for a shell, where that is needed. */
function quoted(argument: string): string {
  return /^[\w./,=:@%+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
