/** The permissions that storage needs, checked before it is opened. */

import type { DatabasePlace } from "../database/place.ts";
import { shellWord } from "../input/printable.ts";
import type { Config } from "./config.ts";
import { StartError } from "./process.ts";

/**
 * Ensures that Deno's permissions let the server use its storage. `deno.json` grants only `./data`.
 *
 * @throws {StartError} If they do not. The message has the whole command that grants them.
 */
export function requireStorageAccess({ database, content, reusePort }: Config): void {
  const { access, certificates } = database;
  const places = [access, content.kind === "folder" ? content.path : undefined];
  const write = [...new Set(places.filter((path) => path !== undefined))];
  const read = [...write, ...certificates];
  const isRefused = (name: "read" | "write") => (path: string) =>
    Deno.permissions.querySync({ name, path }).state !== "granted";
  const refused = new Set([...read.filter(isRefused("read")), ...write.filter(isRefused("write"))]);
  if (refused.size === 0) return;
  const flags = [
    ...reusePort ? ["--unstable-net"] : [],
    "-P",
    `--allow-read=${[".env", ...read].join()}`,
    ...write.length > 0 ? [`--allow-write=${write.join()}`] : [],
  ];
  throw new StartError(
    `Deno's permissions do not allow ${[...refused].join(" and ")} (DATABASE_URL, CONTENT); ` +
      `run:\n  deno run --quiet --no-prompt ${flags.map(shellWord).join(" ")} main.ts`,
  );
}

/** Returns whether a database is on a server that is reached without reading or writing any file. */
export function isRemote({ kind, access, certificates }: DatabasePlace): boolean {
  return kind !== "sqlite" && access === undefined && certificates.length === 0;
}
