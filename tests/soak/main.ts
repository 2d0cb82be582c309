/**
 * `deno task soak`: servers, and processes that publish and unpublish, on one database. Every
 * response is checked against the true state at that time.
 *
 *     deno task soak [--minutes 10] [--database URL] [--servers 3] [--publishers 2]
 *
 * Exits with 1 if any response was wrong or stale, HEAD and GET differed, a count was lost, or a
 * server logged a fault. Without a URL, uses SQLite in a temporary folder.
 */

import { parseArgs } from "node:util";
import { parseToken, type Token } from "../../lib/storage/token.ts";
import { quantile } from "../bench/measurement.ts";
import { isPostgres, openStorage } from "../support/any_storage.ts";
import { media } from "../support/media_cli.ts";
import { fromRoot, SAMPLE_MP3 } from "../support/paths.ts";
import { ServerProcess } from "../support/server.ts";
import { type Observation, Truth } from "../support/truth.ts";
import type { Report } from "./publisher.ts";

const { values: options } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    database: { type: "string" },
    servers: { type: "string", default: "3" },
    publishers: { type: "string", default: "2" },
  },
});
const folder = await Deno.makeTempDir({ prefix: "media-head-soak-" });
const url = options.database ?? `sqlite:${folder}/catalogue.sqlite`;

/** Milliseconds within which every server must show a change. */
const BOUND = isPostgres(url) ? 1_000 : 100;

/** Milliseconds after which a response can be judged: publishers have reported by then. */
const SETTLED = BOUND + 3_000;

/** Each server caches lookups differently: by default, indefinitely, and not at all. */
const CACHE_TTLS = ["5", "3600", "0"];

/** Request loops per server, milliseconds between requests of one, and between commands. */
const [LOOPS, PAUSE, COMMAND_PAUSE] = [2, 10, 5_000];

/** Tokens to request: half of the time those that changed recently, otherwise any of the others. */
const [RECENT, TOKENS] = [20, 1_000];

/** Faults printed in full. */
const SHOWN = 20;

/** A response, with what a HEAD and a GET have in common. */
interface Answer extends Observation {
  /** The status, and every field except the date. */
  readonly head: string;
  /** The response to a HEAD sent just before this GET. */
  readonly twin: Answer | undefined;
  readonly content: Uint8Array<ArrayBuffer>;
}

const truth = new Truth(BOUND);
const tokens: Token[] = [];
const answers: Answer[] = [];
let isOver = false;
const faults: string[] = [];
const counts = new Map<string, number>();
const times: number[] = [];
let deprecatedCalls = 0;
let latest = 0;

function count(what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

function fault(what: string): void {
  if (faults.length < SHOWN) console.error(what);
  faults.push(what);
}

/** Adds a token to the recent ones. */
function know(token: Token): void {
  const index = tokens.indexOf(token);
  if (index >= 0) tokens.splice(index, 1);
  tokens.push(token);
  if (tokens.length > TOKENS) tokens.shift();
}

function note(report: Report): void {
  know(report.token);
  if (report.event === "begin") truth.begin(report.token, report.status, report.at);
  if (report.event === "end") truth.end(report.token, report.at);
  if (report.event === "end") count("changes by publishers");
}

/** Starts a process that publishes; returns a function that ends it. */
function startPublisher(): () => Promise<void> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--allow-all", fromRoot("tests/soak/publisher.ts"), url, folder],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const reading = (async () => {
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (text + chunk).split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) note(JSON.parse(line));
    }
  })();
  return async () => {
    await child.stdin.close();
    await reading;
    const { code } = await child.status;
    if (code !== 0) fault(`a publisher ended with status ${code}`);
  };
}

/** Publishes and unpublishes by commands. */
async function runCommands(): Promise<void> {
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await media(folder, [...args, "--json"], {
      DATABASE_URL: url,
    });
    if (code !== 0) fault(`a command failed: ${stderr}`);
    count("changes by commands");
    return JSON.parse(stdout);
  };
  while (!isOver) {
    // Its token is known only when it is done, so nobody has requested it before.
    const token = parseToken((await run("publish", SAMPLE_MP3, "--again")).token) as Token;
    const publishedAt = Date.now();
    truth.begin(token, 200, publishedAt);
    truth.end(token, publishedAt);
    know(token);
    await new Promise((resolve) => setTimeout(resolve, COMMAND_PAUSE / 2));
    truth.begin(token, 410, Date.now());
    await run("unpublish", token);
    truth.end(token, Date.now());
    know(token);
    await new Promise((resolve) => setTimeout(resolve, COMMAND_PAUSE / 2));
  }
}

async function ask(
  { origin }: ServerProcess,
  method: "HEAD" | "GET",
  path: string,
  { twin, range }: { twin?: Answer; range?: string } = {},
): Promise<Answer> {
  const token = path.slice(-36) as Token;
  const [start, sentAt] = [performance.now(), Date.now()];
  const fields = range === undefined ? {} : { Range: range };
  const response = await fetch(`${origin}${path}`, { method, headers: fields });
  const receivedAt = Date.now();
  times.push(performance.now() - start);
  const { headers } = response;
  const content = await response.bytes();
  const isPart = response.status === 206;
  const status = isPart ? 200 : response.status; // for the truth, it is published
  if (method === "GET" && response.status === 200) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content)).toHex();
    if (headers.get("etag") !== `"${digest}"`) fault(`GET ${path} returned wrong content`);
  }
  const head = JSON.stringify([status, ...[...headers].filter(([name]) => name !== "date")]);
  count(`${method} ${response.status}`);
  if (path.startsWith("/audio/")) deprecatedCalls++;
  const answer = { server: origin, method, token, status, sentAt, receivedAt, head, twin };
  answers.push({ ...answer, content: NOTHING });
  return { ...answer, content };
}

const NOTHING = new Uint8Array();

/** Requests a random range of known content. */
async function askPart(server: ServerProcess, path: string, whole: Answer): Promise<void> {
  const [first = 0, last = 0] = [Math.random(), Math.random()]
    .map((share) => Math.floor(share * whole.content.length)).toSorted((a, b) => a - b);
  const { status, content } = await ask(server, "GET", path, { range: `bytes=${first}-${last}` });
  if (status !== 200) return; // unpublished meanwhile, as the truth knows
  const expected = whole.content.subarray(first, last + 1);
  const isSame = content.length === expected.length &&
    content.every((byte, index) => byte === expected[index]);
  if (!isSame) fault(`GET ${path} returned wrong bytes from ${first} to ${last}`);
}

async function call(server: ServerProcess): Promise<void> {
  while (!isOver) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    const among = Math.min(Math.random() < 0.5 ? RECENT : TOKENS, tokens.length);
    const token = tokens[tokens.length - 1 - Math.floor(Math.random() * among)];
    if (token === undefined) continue;
    const path = `/${Math.random() < 0.5 ? "audio" : "media"}/${token}`;
    const twin = await ask(server, "HEAD", path);
    const whole = await ask(server, "GET", path, { twin });
    if (whole.status === 200) await askPart(server, path, whole);
  }
}

/** Checks the responses that can be judged by now. */
function verify(before: number): void {
  answers.sort((a, b) => a.receivedAt - b.receivedAt);
  const end = answers.findIndex(({ receivedAt }) => receivedAt >= before);
  const settled = answers.splice(0, end < 0 ? answers.length : end);
  for (const answer of settled) {
    const wrong = truth.faultOf(answer);
    if (wrong !== undefined) fault(wrong);
    count("responses checked");
    if (truth.statusesOf(answer).length > 1) count("responses during a change");
    latest = Math.max(latest, truth.lateness(answer));
    const { twin, status } = answer;
    if (twin === undefined || twin.status !== status) continue;
    count("pairs of HEAD and GET compared");
    if (twin.head !== answer.head) fault(`HEAD and GET differ: ${twin.head}, ${answer.head}`);
  }
}

/** Runs everything, and ends every process, whatever happens. */
async function soak(): Promise<void> {
  await (await openStorage(url, folder)).close();
  const servers: ServerProcess[] = [];
  const publishers: (() => Promise<void>)[] = [];
  try {
    for (let index = 0; index < Number(options.servers); index++) {
      const CACHE_TTL = CACHE_TTLS[index % CACHE_TTLS.length] as string;
      servers.push(await ServerProcess.start({ DATABASE_URL: url, CACHE_TTL }, folder));
    }
    for (let index = 0; index < Number(options.publishers); index++) {
      publishers.push(startPublisher());
    }
    const work = Promise.all([
      runCommands(),
      ...servers.flatMap((server) => Array.from({ length: LOOPS }, () => call(server))),
    ]);
    const end = performance.now() + Number(options.minutes) * 60_000;
    while (performance.now() < end) {
      await Promise.race([work, new Promise((resolve) => setTimeout(resolve, 1_000))]);
      verify(Date.now() - SETTLED);
    }
    isOver = true;
    await work;
  } finally {
    await Promise.all(publishers.map((stop) => stop()));
    for (const server of servers) {
      const { code, log } = await server.stop();
      if (code !== 0) fault(`a server ended with status ${code}`);
      for (const line of log) if (line.event === "error") fault(JSON.stringify(line));
    }
  }
  verify(Infinity);
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

console.log(`${options.minutes} minutes, ${options.servers} servers, ${url.split(":")[0]}`);
for (const [what, number] of [...counts].sort()) console.log(`${number} ${what}`);
console.log(`${deprecatedCalls} calls to the deprecated route, ${counted} in the ledger`);
console.log(`changes showed within ${latest} ms; the bound is ${BOUND} ms`);
const shown = [0.5, 0.99, 1].map((share) => `${quantile(times, share).toFixed(1)} ms`);
console.log(`response time: ${shown.join(", ")} (median, p99, longest)`);
console.log(`${faults.length} violations`);
Deno.exit(faults.length > 0 ? 1 : 0);
