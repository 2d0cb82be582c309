/**
 * `deno task soak`: servers on one database, into which this process publishes. Every response is
 * checked against the true state at that time.
 *
 *     deno task soak [--minutes 10] [--database URL]
 *
 * Exits with 1 if any response was wrong or stale, HEAD and GET differed, a count was lost, or a
 * server logged a fault. Without a URL, uses SQLite in a temporary folder.
 */

import { parseArgs } from "node:util";
import type { Token } from "../../lib/storage/token.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { isPostgres, openStorage } from "../support/any_storage.ts";
import { ServerProcess } from "../support/server.ts";
import { type Status, Truth } from "../support/truth.ts";

const { values: options } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, database: { type: "string" } },
});
const folder = await Deno.makeTempDir({ prefix: "media-head-soak-" });
const url = options.database ?? `sqlite:${folder}/catalogue.sqlite`;

/** Milliseconds within which every server must show a change. */
const BOUND = isPostgres(url) ? 1_000 : 100;

/** The number of servers. */
const SERVERS = 3;

/** Request loops per server, and milliseconds between the requests of one. */
const [LOOPS, REQUEST_PAUSE] = [2, 10];

/** Publishers, the items of each at a time, and at most milliseconds between two changes. */
const [PUBLISHERS, ITEMS, CHANGE_PAUSE] = [2, 100, 150];

/** Tokens to request: half of the time those that changed recently, otherwise any of the others. */
const [RECENT, TOKENS] = [20, 1_000];

/** Faults printed in full. */
const SHOWN = 20;

const truth = new Truth(BOUND);
const tokens: Token[] = [];
const counts = new Map<string, number>();
let isOver = false;
let faults = 0;
let deprecatedCalls = 0;

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function fault(what: string): void {
  if (faults++ < SHOWN) console.error(what);
}

/** Adds a token to the recent ones. */
function know(token: Token): void {
  const index = tokens.indexOf(token);
  if (index >= 0) tokens.splice(index, 1);
  tokens.push(token);
  if (tokens.length > TOKENS) tokens.shift();
}

/** Publishes and unpublishes. Tokens are requested for some time before they are published. */
async function publish(): Promise<void> {
  const storage = await openStorage(url, folder);
  const during = async (token: Token, status: Status, change: () => Promise<unknown>) => {
    know(token);
    await pause(CHANGE_PAUSE * Math.random());
    truth.begin(token, status, Date.now());
    await change();
    truth.end(token, Date.now());
  };
  const published: Token[] = [];
  while (!isOver) {
    if (Math.random() * 2 * ITEMS > published.length) {
      const { token } = newMetadata();
      const bytes = newContent();
      const read = async function* () {
        yield await Promise.resolve(bytes);
      };
      await during(token, 200, async () => {
        await using staged = await storage.stage({ read });
        await storage.publish({ ...newMetadata(), token, publishedAt: Date.now() }, staged);
      });
      published.push(token);
    } else {
      const index = Math.floor(Math.random() * published.length);
      const [token] = published.splice(index, 1) as [Token];
      await during(token, 410, () => storage.unpublish(token, Date.now()));
    }
  }
  await storage.close();
}

/**
 * Makes short content, which servers keep, or longer content, which they read at once or as a
 * stream.
 */
function newContent(): Uint8Array<ArrayBuffer> {
  const most = Math.random() < 0.8 ? 4_000 : 400_000;
  const bytes = new Uint8Array(1 + Math.floor(Math.random() * most));
  for (let at = 0; at < bytes.length; at += 65_536) { // as much as there is at a time
    crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  }
  return bytes;
}

/** Requests an item and judges the response; returns it with what a HEAD and a GET share. */
async function ask(
  { origin }: ServerProcess,
  method: "HEAD" | "GET",
  path: string,
  fields: Record<string, string> = {},
): Promise<{ status: number; head: string; content: Uint8Array }> {
  const sentAt = Date.now();
  const response = await fetch(`${origin}${path}`, { method, headers: fields });
  const { status, headers } = response;
  const wrong = truth.faultOf({
    ...{ server: origin, method, token: path.slice(-36) as Token },
    status: status === 206 ? 200 : status, // either way, it is published
    ...{ sentAt, receivedAt: Date.now() },
  });
  if (wrong !== undefined) fault(wrong);
  const what = `${method} ${status}`;
  counts.set(what, (counts.get(what) ?? 0) + 1);
  if (path.startsWith("/audio/")) deprecatedCalls++;
  const content = await response.bytes();
  const head = JSON.stringify([status, ...[...headers].filter(([name]) => name !== "date")]);
  return { status, head, content };
}

/** Requests an item by HEAD, GET, and a GET of a random range, and compares the responses. */
async function compare(server: ServerProcess, path: string): Promise<void> {
  const head = await ask(server, "HEAD", path);
  const get = await ask(server, "GET", path);
  if (head.status === get.status && head.head !== get.head) {
    fault(`HEAD and GET differ: ${head.head}, ${get.head}`);
  }
  if (get.status !== 200) return;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new Uint8Array(get.content)));
  if (!get.head.includes(`"etag","\\"${digest.toHex()}\\""`)) fault(`${path} has wrong content`);

  const [first, last] = [Math.random(), Math.random()]
    .map((share) => Math.floor(share * get.content.length)).toSorted((a, b) => a - b);
  const part = await ask(server, "GET", path, { Range: `bytes=${first}-${last}` });
  if (part.status !== 206) return; // unpublished meanwhile, as the truth knows
  const expected = get.content.subarray(first, Number(last) + 1);
  const isSame = part.content.length === expected.length &&
    part.content.every((byte, index) => byte === expected[index]);
  if (!isSame) fault(`GET ${path} returned wrong bytes from ${first} to ${last}`);
}

async function call(server: ServerProcess): Promise<void> {
  while (!isOver) {
    await pause(REQUEST_PAUSE);
    const among = Math.min(Math.random() < 0.5 ? RECENT : TOKENS, tokens.length);
    const token = tokens[tokens.length - 1 - Math.floor(Math.random() * among)];
    if (token === undefined) continue;
    await compare(server, `/${Math.random() < 0.5 ? "audio" : "media"}/${token}`);
  }
}

/** Runs everything, and ends every server, whatever happens. */
async function soak(): Promise<void> {
  await (await openStorage(url, folder)).close();
  const servers: ServerProcess[] = [];
  try {
    while (servers.length < SERVERS) {
      servers.push(await ServerProcess.start({ DATABASE_URL: url }, folder));
    }
    const work = Promise.all([
      ...Array.from({ length: PUBLISHERS }, publish),
      ...servers.flatMap((server) => Array.from({ length: LOOPS }, () => call(server))),
    ]);
    await Promise.race([work, pause(Number(options.minutes) * 60_000)]);
    isOver = true;
    await work;
  } finally {
    for (const server of servers) {
      const { code, log } = await server.stop();
      if (code !== 0) fault(`a server ended with status ${code}`);
      for (const line of log) if (line.event === "error") fault(JSON.stringify(line));
    }
  }
}

await soak();
const storage = await openStorage(url, folder);
const calls = await Array.fromAsync(storage.ledger.usage(""), ({ calls }) => calls);
await storage.close();
const counted = calls.reduce((sum, calls) => sum + calls, 0);
// A database that was given may have earlier counts.
const isOwn = options.database === undefined;
if (isOwn ? counted !== deprecatedCalls : counted < deprecatedCalls) {
  fault(`${counted} of ${deprecatedCalls} calls are in the ledger`);
}
await Deno.remove(folder, { recursive: true });

for (const [what, number] of [...counts].sort()) console.log(`${number} ${what}`);
console.log(`${deprecatedCalls} calls to the deprecated route, ${counted} in the ledger`);
console.log(`${faults} faults in ${options.minutes} minutes on ${url.split(":")[0]}`);
Deno.exit(faults > 0 ? 1 : 0);
