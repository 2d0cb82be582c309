/** The permissions that storage needs, checked before it is opened. */

import { parsePostgresUrl, socketIn } from "../database/postgres_url.ts";
import { shellWord } from "../input/shell_word.ts";
import type { Config } from "./config.ts";
import { StartError } from "./process.ts";

/**
 * Ensures that Deno's permissions let the server use its storage. `deno.json` grants only `./data`.
 *
 * @throws {StartError} If they do not. The message has the whole command that grants them.
 */
export function requireStorageAccess({ databaseUrl, content, reusePort }: Config): void {
  const { place, certificates } = filesOf(databaseUrl);
  const places = [place, content.kind === "folder" ? content.path : undefined];
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

/** Returns whether a database can be opened without permission to read or write any file. */
export function isRemote(databaseUrl: string): boolean {
  const { place, certificates } = filesOf(databaseUrl);
  return !databaseUrl.startsWith("sqlite:") && place === undefined && certificates.length === 0;
}

/** Returns the folder or socket of a database, and the files that its URL names besides. */
function filesOf(databaseUrl: string) {
  if (databaseUrl.startsWith("sqlite:")) {
    const file = /^sqlite:(?!:memory:)(.+)/.exec(databaseUrl)?.[1];
    const place = file && (file.slice(0, file.lastIndexOf("/") + 1) || ".");
    return { place, certificates: [] };
  }
  const parameters = parsePostgresUrl(databaseUrl)?.searchParams;
  const names = ["sslrootcert", "sslcert", "sslkey"];
  const certificates = names.flatMap((name) => parameters?.get(name) ?? []);
  return { place: socketIn(databaseUrl), certificates };
}
