/**
 * `deno task bench`: measures what a request costs, beside the floor and peers.
 *
 *     deno task bench [--quick] [--only CASE]...
 *
 * CASE is the name of a case, or a part of several names.
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { newToken } from "../../lib/storage/token.ts";
import type { PublishedItem } from "../../lib/storage/storage.ts";
import { openContent } from "../../lib/storage/bucket/content.ts";
import { MediaStorage } from "../../lib/storage/media_storage.ts";
import { openEngine as openSqlite } from "../../lib/storage/sqlite/engine.ts";
import { settingsOf } from "../support/bucket_storage.ts";
import { missingOf, type Need } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { openEngine } from "../support/postgres_engine.ts";
import { type RawResponse, requestRaw } from "../support/raw_http.ts";
import { BUCKET, S3_STORE, S3Store } from "../support/s3_store.ts";
import { Contender, type Launch } from "./contender.ts";
import { launchBare, launchServer } from "./launches.ts";
import { HEAD, inTurn, type Load, prepareRequest } from "./load.ts";
import {
  type Case,
  type Effort,
  loadOf,
  measure,
  quantile,
  ratios,
  type Result,
  spread,
} from "./measurement.ts";
import { type Peers, preparePeers, versions } from "./peers.ts";
import {
  coldToken,
  contentPath,
  fewIn,
  publishAll,
  publishCopies,
  type Published,
  publishIn,
} from "./published.ts";
import {
  measureCores,
  measureMemory,
  measureSlowReaders,
  measureStart,
  type Subject,
} from "./whole_process.ts";

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", multiple: true, default: [] },
  },
});
const { quick } = options;
const EXTENT = quick
  ? { hot: 1_000, few: 1_000, cold: 20_000, medium: 10_000_000, large: 100_000_000 }
  : { hot: 1_000, few: 1_000, cold: 1_000_000, medium: 100_000_000, large: 1_000_000_000 };
const PEER_ITEMS = quick ? 5_000 : 100_000;
const EFFORT: Effort = quick
  ? { rounds: 3, pacedRounds: 1, pacedSeconds: 0.25 }
  : { rounds: 15, pacedRounds: 3, pacedSeconds: 2 };
const REQUESTS = quick ? 3_000 : 20_000;

const HONEST = "an honest floor";
const BARE_GET = "a bare handler";
const REUSING_GET = "one that reuses bytes";
const BARE_FETCH = "a bare signed fetch";
const TIMED_FETCH = "one with a timeout";
const FROM_BUCKET = "from a bucket";
const FEW = "media-head with 1,000 items";
const STD = "std's file server";
const ON_POSTGRES = "cold HEAD on PostgreSQL";

type Item = PublishedItem;

/** One item. */
type Sole = [Item];

/** Bytes of a part, as players request it. */
const PART = 65_536;

/** A row of the plan: a case, its requests, and its contenders. */
interface Plan extends Case {
  readonly launch: Launch;
  /** The file or the object with the content of the first request. */
  readonly content?: string;
  readonly against: readonly string[];
}

function plansOf(storage: string, { hot, sized }: Published): Plan[] {
  const server = launchServer(storage, { CACHE_TTL: "3600" });
  const frameworks = ["bare Deno.serve", "Hono on Deno"];
  const everyPeer = [...frameworks, "Hono on Node", "Fastify on Node", "Express on Node"];
  const fileServers = [STD, "nginx", "Caddy"];
  const paths = hot.map(({ token }) => `/audio/${token}`);
  const unknown = hot.map(() => `/audio/${newToken()}`);
  const malformed = hot.map(({ token }) => `/audio/${token.slice(1)}`);
  const heads = (targets: readonly string[], status: number, count = REQUESTS) => ({
    request: inTurn(targets.map((target) => prepareRequest(HEAD, target))),
    status,
    count,
  });
  const gets = (items: readonly PublishedItem[], share: number) => ({
    request: inTurn(items.map(({ token }) => prepareRequest("GET", `/audio/${token}`))),
    status: 200,
    count: Math.ceil(REQUESTS / share),
  });
  const [megabyte, medium, large] = sized.map((item) => [item]) as [Sole, Sole, Sole];
  const parts = Array.from({ length: 1_000 }, (_, index) => {
    const first = EXTENT.large / 1_000 * index;
    const fields = { Range: `bytes=${first}-${first + PART - 1}` };
    return prepareRequest("GET", `/audio/${large[0].token}`, fields);
  });
  const conditional = hot.map(({ token, digest }) =>
    prepareRequest(HEAD, `/audio/${token}`, { "If-None-Match": `"${digest}"` })
  );
  return [
    {
      name: "hot HEAD",
      load: heads(paths, 200),
      rate: 3_000,
      launch: server,
      against: [HONEST, ...everyPeer, ...fileServers],
    },
    {
      name: "hot HEAD, 304",
      load: { request: inTurn(conditional), status: 304, count: REQUESTS },
      rate: 3_000,
      launch: server,
      against: frameworks,
    },
    {
      name: "HEAD, 404",
      load: heads(unknown, 404),
      rate: 3_000,
      launch: server,
      against: frameworks,
    },
    {
      name: "HEAD, 400",
      load: heads(malformed, 400),
      rate: 3_000,
      launch: server,
      against: frameworks,
    },
    {
      name: "cold HEAD",
      load: coldLoad(EXTENT.cold),
      loads: { [FEW]: coldLoad(EXTENT.few) },
      rate: 1_000,
      launch: launchServer(storage, { CACHE_TTL: "0" }),
      against: [FEW],
    },
    {
      name: "GET 4 kB",
      load: gets(hot, 5),
      rate: 1_000,
      launch: server,
      content: contentPath(storage, hot[0] as PublishedItem),
      against: [BARE_GET, ...fileServers],
    },
    {
      name: `GET 64 kB of ${EXTENT.large / 1e6} MB`,
      load: { request: inTurn(parts), status: 206, count: REQUESTS / 10 },
      rate: 500,
      launch: server,
      content: contentPath(storage, large[0]),
      against: [BARE_GET, REUSING_GET, ...fileServers],
    },
    {
      name: "GET 1 MB",
      load: gets(megabyte, 50),
      rate: 100,
      launch: server,
      content: contentPath(storage, megabyte[0]),
      against: [BARE_GET, ...fileServers],
    },
    {
      name: `GET ${EXTENT.medium / 1e6} MB`,
      load: gets(medium, 2_000),
      rate: 2,
      launch: server,
      content: contentPath(storage, medium[0]),
      against: [BARE_GET, ...fileServers],
    },
  ];
}

/** The catalogue on PostgreSQL, which answers each lookup after a round trip. */
async function measureOnPostgres(storage: string, { hot }: Published): Promise<void> {
  await using server = await PostgresServer.start();
  const url = server.urlOf(await server.createDatabase());
  await publishIn(await openEngine(url), storage, hot);
  const paths = hot.map(({ token }) => prepareRequest(HEAD, `/audio/${token}`));
  await measureCase({
    name: ON_POSTGRES,
    load: { request: inTurn(paths), status: 200, count: REQUESTS / 2 },
    rate: 1_000,
    connections: 32,
    launch: launchServer(storage, { CACHE_TTL: "0", DATABASE_URL: url }),
    against: [],
  });
}

/** GETs of content in a bucket, whose store limits how many a second there can be. */
async function measureFromBucket(storage: string, { hot, sized }: Published): Promise<void> {
  await using store = await S3Store.start();
  const environment = store.environment("bench");
  const url = `sqlite:${join(storage, "bucket.sqlite")}`;
  const launch = launchServer(storage, { ...environment, DATABASE_URL: url, CACHE_TTL: "3600" });
  const [small, megabyte, medium] = [hot[0], sized[0], sized[1]] as [Item, Item, Item];
  const engine = await openSqlite(url);
  const copy = new MediaStorage(engine, openContent(settingsOf(store, "bench"), engine));
  await publishCopies(copy, storage, [small, megabyte, medium]);
  await copy.close();
  const cases: [name: string, item: Item, ranges: number, count: number][] = [
    ["GET 4 kB", small, 0, 200],
    [`GET 64 kB of ${EXTENT.medium / 1e6} MB`, medium, 1_000, 200],
    ["GET 1 MB", megabyte, 0, 50],
    [`GET ${EXTENT.medium / 1e6} MB`, medium, 0, 2],
  ];
  for (const [name, { token, digest, length }, ranges, count] of cases) {
    const requests = Array.from({ length: Math.max(ranges, 1) }, (_, index) => {
      const first = Math.floor(length / 1_000) * index;
      const range: Record<string, string> = { Range: `bytes=${first}-${first + PART - 1}` };
      return prepareRequest("GET", `/audio/${token}`, ranges === 0 ? {} : range);
    });
    await measureCase({
      name: `${name} ${FROM_BUCKET}`,
      load: { request: inTurn(requests), status: ranges === 0 ? 200 : 206, count },
      rate: Math.max(1, count / 20),
      connections: 8,
      launch,
      content: `http://127.0.0.1:${store.port}/${BUCKET}/bench/${digest.slice(0, 2)}/${digest}`,
      against: length > PART && ranges === 0 ? [BARE_FETCH, TIMED_FETCH] : [BARE_FETCH],
    });
  }
}

/** The names of the cases to measure. */
function choose(names: readonly string[]): Set<string> {
  const chosen = options.only.map((text) =>
    names.includes(text) ? [text] : names.filter((name) => name.includes(text))
  );
  const unknown = options.only.find((_, index) => chosen[index]?.length === 0);
  if (unknown !== undefined) {
    throw new Error(`--only: expected a part of "${names.join('", "')}", got "${unknown}"`);
  }
  return new Set(chosen.length === 0 ? names : chosen.flat());
}

async function measureCase(plan: Plan, launches: Peers = new Map()): Promise<void> {
  await using running = new AsyncDisposableStack();
  const start = async (name: string, launch: Launch) =>
    running.use(await Contender.start(name, launch));
  const server = await start("media-head", plan.launch);
  const expected = await ask(server, plan.load);
  const constant = {
    status: expected.status,
    headers: expected.fields.filter(([name]) => name !== "date" && name !== "connection"),
    length: expected.content.length,
  };
  const contenders = [await start("the floor", launchBare("floor.ts", constant)), server];
  for (const name of plan.against) {
    const { content: path } = plan;
    const launch = name === HONEST
      ? launchBare("honest_floor.ts", constant)
      : name === BARE_GET
      ? launchBare("bare_get.ts", { ...constant, path })
      : name === REUSING_GET
      ? launchBare("bare_get.ts", { ...constant, path, reusesBytes: true })
      : name === BARE_FETCH
      ? launchBare("bare_fetch.ts", { ...constant, path })
      : name === TIMED_FETCH
      ? launchBare("timed_fetch.ts", { ...constant, path })
      : launches.get(name);
    if (launch !== undefined) contenders.push(await start(name, launch));
  }
  for (const contender of contenders) {
    requireSame(contender, await ask(contender, loadOf(plan, contender)), expected);
  }
  const [floor, own, ...others] = await measure(plan, contenders, EFFORT) as [Result, Result];
  for (const result of [floor, own, ...others]) console.log(row(plan.name, result, { floor, own }));
}

function ask({ port }: Contender, { request }: Load) {
  const { method, target, fields } = request(0);
  return requestRaw(port, method, target, fields);
}

/** The fields of an item. */
const NINE = new Set([
  "content-type",
  "content-length",
  "content-disposition",
  "etag",
  "last-modified",
  "accept-ranges",
  "cache-control",
  "repr-digest",
  "x-content-type-options",
]);

/** Checks that a contender does the same work, so that the comparison is fair. */
function requireSame({ name }: Contender, answer: RawResponse, expected: RawResponse): void {
  const describe = ({ status, fields, content }: RawResponse) => {
    const sent = fields.map(([name]) => name).filter((name) => NINE.has(name)).toSorted();
    // std's file server sends only what the file system knows about an item, and a bare handler
    // less.
    const said = status !== 200 || name === STD ||
        [BARE_GET, REUSING_GET, BARE_FETCH, TIMED_FETCH].includes(name)
      ? ""
      : `, ${sent.join(" ")}`;
    return `${status}, ${content.length} bytes${said}`;
  };
  if (describe(answer) === describe(expected)) return;
  throw new Error(`${name} answers ${describe(answer)} instead of ${describe(expected)}`);
}

/** Makes HEADs for random cold items. */
function coldLoad(items: number): Load {
  const request = () =>
    prepareRequest(HEAD, `/audio/${coldToken(Math.floor(Math.random() * items))}`);
  return { request, status: 200, count: REQUESTS / 2 };
}

const HEADING = `| case | server | CPU to the floor's | media-head's CPU to this one's | \
µs | requests/s | p50, p99, p99.9 ms |
|---|---|---|---|---|---|---|`;

function row(name: string, result: Result, { floor, own }: Record<"floor" | "own", Result>) {
  const paced = [0.5, 0.99, 0.999].map((share) => quantile(result.times, share).toFixed(2));
  const cells = [
    name,
    result.name,
    spread(ratios(result, floor)),
    quantile(ratios(own, result), 0.5).toFixed(2),
    (quantile(result.cpu, 0.5) / 1000).toFixed(1),
    quantile(result.rate, 0.5).toFixed(0),
    paced.join(", "),
  ];
  return `| ${cells.join(" | ")} |`;
}

const folder = await Deno.makeTempDir({ prefix: "media-head-bench-" });
try {
  const storage = join(folder, "storage");
  const published = await publishAll(storage, EXTENT);
  const plans = plansOf(storage, published);
  const others = new Map([
    ["processes", measureCores],
    ["start", measureStart],
    ["memory", measureMemory],
    ["slow readers", measureSlowReaders],
  ]);
  const chosen = choose([
    ...plans.map(({ name }) => name),
    ON_POSTGRES,
    FROM_BUCKET,
    ...others.keys(),
  ]);
  const rows = plans.filter(({ name }) => chosen.has(name));
  console.log(`${versions()}; ${navigator.hardwareConcurrency} cores\n`);
  console.log(`${EFFORT.rounds} rounds; CPU is that of the server process, per request.\n`);
  const engines: [string, readonly Need[], typeof measureOnPostgres][] = [
    [ON_POSTGRES, POSTGRES, measureOnPostgres],
    [FROM_BUCKET, S3_STORE, measureFromBucket],
  ];
  if (rows.length > 0 || engines.some(([name]) => chosen.has(name))) console.log(HEADING);
  if (rows.length > 0) {
    const peersFolder = join(folder, "peers");
    await Deno.mkdir(peersFolder);
    const peers = await preparePeers({
      folder: peersFolder,
      storage,
      items: [...published.hot, ...published.sized],
      count: PEER_ITEMS,
    });
    const launches = new Map([
      ...peers,
      [FEW, launchServer(storage, { CACHE_TTL: "0", DATABASE_URL: `sqlite:${fewIn(storage)}` })],
    ]);
    for (const plan of rows) await measureCase(plan, launches);
  }
  for (const [name, needs, measureEngine] of engines.filter(([name]) => chosen.has(name))) {
    const missing = missingOf(needs);
    if (missing === "") await measureEngine(storage, published);
    else console.log(`\nLeft out: ${name} (needs ${missing})`);
  }
  console.log();
  const subject: Subject = {
    storage,
    published,
    cold: EXTENT.cold,
    rounds: EFFORT.rounds,
    requests: REQUESTS,
    readers: quick ? 100 : 1_000,
  };
  for (const [name, measureOther] of others) if (chosen.has(name)) await measureOther(subject);
} finally {
  await Deno.remove(folder, { recursive: true });
}
