/**
 * The peers: other servers that do the same work, installed and filled for a measurement.
 */

import { dirname, join } from "node:path";
import { newToken } from "../../lib/storage/token.ts";
import type { PublishedItem } from "../../lib/storage/storage.ts";
import { fromRoot } from "../support/paths.ts";
import { freePort, type Launch } from "./contender.ts";
import { contentPath } from "./published.ts";

/** How to start each peer, by name. */
export type Peers = ReadonlyMap<string, Launch>;

/** What the peers serve. */
export interface PeerOptions {
  /** The folder in which to install them. */
  readonly folder: string;
  /** Where the contents of the items are. */
  readonly storage: string;
  readonly items: readonly PublishedItem[];
  /** The total number of items; missing ones are made up. */
  readonly count: number;
}

/** Prepares the peers: those on npm, and those installed on this machine. */
export async function preparePeers(options: PeerOptions): Promise<Peers> {
  const { folder, storage, items, count } = options;
  await copyFolder(fromRoot("tests/bench/peers"), folder);
  await run(folder, Deno.execPath(), "install", "--frozen", "--quiet");
  await completeStd(join(folder, "node_modules/deno-std"));

  const known = items.map(describeItem);
  const all = Array.from(
    { length: count },
    (_, index) => known[index] ?? { ...known[0], token: newToken() },
  );
  await Deno.writeTextFile(join(folder, "items.json"), JSON.stringify(all));
  const files = join(folder, "files");
  await Deno.mkdir(join(files, "audio"), { recursive: true });
  for (const item of items) {
    await Deno.link(contentPath(storage, item), join(files, "audio", item.token));
  }
  for (const { token } of all.slice(items.length)) {
    await Deno.writeTextFile(join(files, "audio", token), "content");
  }

  const script = (command: string, name: string, ...before: string[]): Launch => ({
    command,
    args: [...before, join(folder, `${name}.js`), join(folder, "items.json"), files],
  });
  const deno = (name: string) => script(Deno.execPath(), name, "run", "--allow-all");
  const peers = new Map([
    ["bare Deno.serve", deno("bare")],
    ["Hono on Deno", deno("hono_deno")],
    ["Hono on Node", script("node", "hono_node")],
    ["Fastify on Node", script("node", "fastify")],
    ["Express on Node", script("node", "express")],
    ["std's file server", deno("std_file_server")],
  ]);
  if (isInstalled("nginx", "-v")) {
    const [port, config] = await configure(folder, "nginx.conf", files);
    peers.set("nginx", { command: "nginx", args: ["-p", files, "-c", config], port });
  }
  if (isInstalled("caddy", "version")) {
    const [port, config] = await configure(folder, "Caddyfile", files);
    const args = ["run", "--adapter", "caddyfile", "--config", config];
    peers.set("Caddy", {
      command: "caddy",
      args,
      port,
      env: { XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
    });
  }
  return peers;
}

/** Returns the versions of the peers' runtimes. */
export function versions(): string {
  const firstLine = (command: string, ...args: string[]) => {
    const { stdout, stderr } = new Deno.Command(command, { args }).outputSync();
    return new TextDecoder().decode(stdout.length > 0 ? stdout : stderr).trim().split("\n", 1)[0];
  };
  const { dependencies } = JSON.parse(
    Deno.readTextFileSync(fromRoot("tests/bench/peers/package.json")),
  );
  return [
    `Deno ${Deno.version.deno}`,
    `Node ${firstLine("node", "--version")?.slice(1)}`,
    ...["hono", "@hono/node-server", "fastify", "express", "deno-std"]
      .map((name) => `${name} ${dependencies[name]}`),
    ...(isInstalled("nginx", "-v") ? [firstLine("nginx", "-v")?.split(": ")[1]] : []),
    ...(isInstalled("caddy", "version") ? [`Caddy ${firstLine("caddy", "version")}`] : []),
  ].join(", ");
}

/** Returns an item in the form that work.js needs. */
function describeItem({ token, type, length, digest, publishedAt, name }: PublishedItem) {
  const base64 = Uint8Array.fromHex(digest).toBase64();
  return { token, type, length, digest, publishedAt, name, base64 };
}

async function copyFolder(from: string, to: string): Promise<void> {
  for await (const { name } of Deno.readDir(from)) {
    await Deno.copyFile(join(from, name), join(to, name));
  }
}

/** Modules that std's file server imports, but its npm package lacks. */
const LACKING = {
  "fs/exists.js": "export const exists = (path) => Deno.stat(path).then(() => true, () => false);",
  "html/unstable_html.js": "export const html = String.raw;",
  "http/deno.json": '{ "version": "1" }',
  "http/unstable_header.js": `export const HEADER = {
    AcceptRanges: "Accept-Ranges",
    AccessControlAllowHeaders: "Access-Control-Allow-Headers",
    AccessControlAllowOrigin: "Access-Control-Allow-Origin",
    ContentLength: "Content-Length",
    ContentRange: "Content-Range",
    ContentType: "Content-Type",
    ETag: "ETag",
    IfModifiedSince: "If-Modified-Since",
    IfNoneMatch: "If-None-Match",
    LastModified: "Last-Modified",
    Range: "Range",
    Server: "Server",
  };`,
  "http/unstable_method.js": 'export const METHOD = { Get: "GET", Head: "HEAD" };',
  "media-types/content_type.js": 'export * from "../media_types/mod.js";',
  "net/unstable_get_network_address.js": "export const getNetworkAddress = () => undefined;",
};

async function completeStd(folder: string): Promise<void> {
  for (const [name, text] of Object.entries(LACKING)) {
    await Deno.mkdir(join(folder, dirname(name)), { recursive: true });
    await Deno.writeTextFile(join(folder, name), text);
  }
}

async function configure(folder: string, name: string, files: string): Promise<[number, string]> {
  const port = freePort();
  const path = join(folder, name);
  const text = await Deno.readTextFile(path);
  await Deno.writeTextFile(path, text.replaceAll("FOLDER", files).replaceAll("PORT", String(port)));
  return [port, path];
}

function isInstalled(command: string, ...args: string[]): boolean {
  try {
    return new Deno.Command(command, { args, stdout: "null", stderr: "null" }).outputSync().success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

async function run(cwd: string, command: string, ...args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(command, { args, cwd }).output();
  if (!success) throw new Error(`${command} failed:\n${new TextDecoder().decode(stderr)}`);
}
