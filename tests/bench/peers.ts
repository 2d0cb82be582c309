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

/** The file servers that are installed. */
export type FileServers = Partial<Record<"nginx" | "Caddy", Peer>>;

/** Everything enabled: announcements with a sunset and a brownout ahead, usage, CORS. */
const EVERYTHING = {
  DEPRECATED_AT: "2026-01-01",
  SUNSET_AT: "2999-01-01",
  BROWNOUTS: "2998-01-01/P1D",
};

/** This server. */
export function launchServer(storage: string, environment: Record<string, string>): Launch {
  return {
    command: Deno.execPath(),
    args: ["run", "--allow-all", fromRoot("main.ts")],
    env: { ...storageIn(storage), ...EVERYTHING, ...environment },
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
 * Returns the file servers that are installed.
 *
 * @param folder Where to put what they serve, and their configuration.
 */
export async function prepareFileServers(
  folder: string,
  storage: string,
  items: readonly PublishedItem[],
): Promise<FileServers> {
  await Deno.mkdir(join(folder, "audio"), { recursive: true });
  for (const item of items) {
    await Deno.link(contentPath(storage, item), join(folder, "audio", item.token));
  }
  const configure = (name: string) => {
    const [path, port] = [join(folder, name), freePort()];
    const text = Deno.readTextFileSync(fromRoot(`tests/bench/peers/${name}`));
    Deno.writeTextFileSync(path, text.replaceAll("FOLDER", folder).replaceAll("PORT", `${port}`));
    return { path, port };
  };
  const servers: FileServers = {};
  const [nginx, caddy] = [pathOf("nginx"), pathOf("caddy")];
  if (nginx !== undefined) {
    const { path, port } = configure("nginx.conf");
    servers.nginx = () => ({ command: nginx, args: ["-p", folder, "-c", path], port });
  }
  if (caddy !== undefined) {
    const { path, port } = configure("Caddyfile");
    const args = ["run", "--adapter", "caddyfile", "--config", path];
    const env = { XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
    servers.Caddy = () => ({ command: caddy, args, env, port });
  }
  return servers;
}
