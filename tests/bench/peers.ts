/** How to start this server and its peers. */

import { join } from "node:path";
import type { PublishedItem } from "../../lib/storage/item.ts";
import { fromRoot } from "../support/paths.ts";
import { pathOf } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { storageIn } from "../support/server.ts";
import type { Launch } from "./contender.ts";
import type { Expected } from "./peers/serve.ts";
import { contentPath } from "./published.ts";

/** Returns how to start a peer that sends the same response. */
export type Peer = (expected: Expected) => Launch;

/** nginx, if it is installed. */
export type Nginx = { readonly nginx?: Peer };

/** Everything enabled: announcements with a sunset and a brownout ahead, usage, CORS. */
export const EVERYTHING = {
  DEPRECATED_AT: "2026-01-01",
  SUNSET_AT: "2999-01-01",
  BROWNOUTS: "2998-01-01/P1D",
};

/** This server. */
export function launchServer(storage: string): Launch {
  return {
    command: Deno.execPath(),
    args: ["run", "--allow-all", fromRoot("main.ts")],
    env: { ...storageIn(storage), ...EVERYTHING },
  };
}

/** A peer on Deno: a file in `peers/`, with its arguments after the first. */
export function peer(file: string, ...args: string[]): Peer {
  const flags = ["--allow-all", `--lock=${fromRoot("tests/deno.lock")}`, "--frozen"];
  const path = fromRoot(`tests/bench/peers/${file}`);
  return (expected) => ({
    command: Deno.execPath(),
    args: ["run", ...flags, path, JSON.stringify(expected), ...args],
  });
}

/**
 * Returns nginx, if it is installed.
 *
 * @param folder Where to put what it serves, and its configuration.
 */
export async function prepareNginx(
  folder: string,
  storage: string,
  items: readonly PublishedItem[],
): Promise<Nginx> {
  await Deno.mkdir(join(folder, "audio"), { recursive: true });
  for (const item of items) {
    await Deno.link(contentPath(storage, item), join(folder, "audio", item.token));
  }
  const nginx = pathOf("nginx");
  if (nginx === undefined) return {};
  const [path, port] = [join(folder, "nginx.conf"), freePort()];
  const text = Deno.readTextFileSync(fromRoot("tests/bench/peers/nginx.conf"));
  Deno.writeTextFileSync(path, text.replaceAll("FOLDER", folder).replaceAll("PORT", `${port}`));
  return { nginx: () => ({ command: nginx, args: ["-p", folder, "-c", path], port }) };
}
