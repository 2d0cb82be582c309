/**
 * `deno task bench`: measures what a request costs this server, beside its peers.
 *
 *     deno task bench [--quick] [--only CASE]...
 *
 * CASE is the name of a case, or a part of several names.
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import type { PublishedItem } from "../../lib/storage/item.ts";
import { type RawResponse, requestRaw } from "../support/raw_http.ts";
import { Contender, type Launch } from "./contender.ts";
import { inTurn, type Load, parts, prepareRequest, wholes } from "./load.ts";
import { measure, measureLatency, quantile, ratio, spread } from "./measurement.ts";
import { launchServer, type Nginx, type Peer, peer, prepareNginx } from "./peers.ts";
import { GET_FIELDS } from "./peers/serve.ts";
import { measureMachines } from "./many_machines.ts";
import { coldToken, contentPath, publishAll, type Published } from "./published.ts";
import { measureMemory, measureStart } from "./whole_process.ts";

const { values: { quick, only } } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", multiple: true, default: [] },
  },
});
const EXTENT = quick
  ? { hot: 1_000, cold: 20_000, medium: 10_000_000, large: 100_000_000 }
  : { hot: 1_000, cold: 1_000_000, medium: 100_000_000, large: 1_000_000_000 };
const [ROUNDS, REQUESTS] = quick ? [3, 3_000] : [15, 20_000];

/** The columns of the table. */
const PEERS = ["floor", "bare handler", "Hono", "nginx"] as const;

/** The name of this server. */
const OWN = "media-head";

/** A row of the table. */
interface Case {
  readonly name: string;
  /** The requests of one round. */
  readonly load: Load;
  readonly server: Launch;
  /** The peers besides the floor. */
  readonly peers: Partial<Record<typeof PEERS[number], Peer>>;
}

/** The cases, with the peers that are installed. */
function casesOf(storage: string, published: Published, nginx: Nginx): Case[] {
  const { hot, megabyte, medium, large } = published;
  const catalogue = join(storage, "catalogue.sqlite");
  const server = launchServer(storage);
  const get = (name: string, load: Load, item: PublishedItem): Case => ({
    name: `GET ${name}`,
    load,
    server,
    peers: { "bare handler": peer("bare_get.ts", contentPath(storage, item)), ...nginx },
  });
  return [
    {
      name: "hot HEAD",
      load: inTurn(wholes("HEAD", hot), 200, REQUESTS),
      server,
      peers: {
        "bare handler": peer("bare_head.ts", catalogue),
        "Hono": peer("hono.ts", catalogue, "map"),
        ...nginx,
      },
    },
    {
      name: "cold HEAD",
      load: coldHeads(EXTENT.cold),
      server,
      peers: {},
    },
    {
      name: "cold HEAD beside Hono",
      load: coldHeads(Math.min(EXTENT.cold, 300_000)),
      server: launchServer(storage),
      peers: { "Hono": peer("hono.ts", catalogue, "sqlite") },
    },
    get("4 kB", inTurn(wholes("GET", hot), 200, REQUESTS / 5), hot[0] as PublishedItem),
    get(
      `64 kB of ${EXTENT.large / 1e6} MB`,
      inTurn(parts(large, 1_000), 206, REQUESTS / 10),
      large,
    ),
    get("1 MB", inTurn(wholes("GET", [megabyte]), 200, REQUESTS / 50), megabyte),
    get(
      `${EXTENT.medium / 1e6} MB`,
      inTurn(wholes("GET", [medium]), 200, REQUESTS / 2_000),
      medium,
    ),
  ];
}

/** HEADs for random cold items. */
function coldHeads(items: number): Load {
  const request = () =>
    prepareRequest("HEAD", `/audio/${coldToken(Math.floor(Math.random() * items))}`);
  return { request, status: 200, count: REQUESTS / 2 };
}

/** Measures a case, and prints its row. */
async function measureCase(each: Case): Promise<void> {
  await using running = new AsyncDisposableStack();
  const contenders = await startAll(each, running);
  const results = await measure(contenders, each.load, ROUNDS);
  const cpu = results.get(OWN) ?? [];
  const ratios = PEERS.map((peer) => {
    const other = results.get(peer);
    return other === undefined ? "" : ratio(cpu, other);
  });
  console.log(`| ${[each.name, (quantile(cpu, 0.5) / 1000).toFixed(1), ...ratios].join(" | ")} |`);
}

/** Measures latency at half of what this server holds on one core, and prints it. */
async function measureCaseLatency(each: Case): Promise<void> {
  await using running = new AsyncDisposableStack();
  const contenders = await startAll(each, running);
  const cpu = (await measure(contenders, each.load, 3)).get(OWN) ?? [];
  const perSecond = Math.round(1e9 / quantile(cpu, 0.5) / 2);
  const results = await measureLatency(contenders, each.load, { perSecond, rounds: ROUNDS });
  console.log(`\n${each.name} at ${perSecond} requests a second: p99 in ms\n`);
  for (const [name, byRound] of results) console.log(`- ${name}: ${spread(byRound)}`);
}

/** Starts the contenders of a case, and checks that all send the same. */
async function startAll(
  { load, server, peers }: Case,
  running: AsyncDisposableStack,
): Promise<Contender[]> {
  const own = running.use(await Contender.start(OWN, server));
  const response = await ask(own, load);
  const expected = {
    status: response.status,
    headers: response.fields.filter(([name]) => name !== "date" && name !== "connection")
      .map(([name, value]): [string, string] => [name, value]),
    length: response.content.length,
  };
  const contenders = [own];
  for (const [name, launch] of Object.entries({ floor: peer("floor.ts"), ...peers })) {
    const contender = running.use(await Contender.start(name, launch(expected)));
    requireSame(name, await ask(contender, load), response);
    contenders.push(contender);
  }
  return contenders;
}

function ask({ port }: Contender, { request }: Load): Promise<RawResponse> {
  const { method, target, fields } = request(0);
  return requestRaw(port, method, target, fields);
}

/** Checks that a peer sends the same status, content and fields, so that the comparison is fair. */
function requireSame(name: string, response: RawResponse, expected: RawResponse): void {
  const describe = ({ status, fields, content }: RawResponse) => {
    const names = fields.map(([name]) => name).filter((name) => GET_FIELDS.includes(name));
    // nginx sends no Accept-Ranges with a part.
    const sent = status === 206 ? "" : `, ${names.toSorted().join(" ")}`;
    return `${status}, ${content.length} bytes${sent}`;
  };
  if (describe(response) === describe(expected)) return;
  throw new Error(`${name} sends ${describe(response)} instead of ${describe(expected)}`);
}

/** The names that match `--only`. */
function choose(names: readonly string[]): string[] {
  if (only.length === 0) return [...names];
  return only.flatMap((text) => {
    const chosen = names.includes(text) ? [text] : names.filter((name) => name.includes(text));
    if (chosen.length > 0) return chosen;
    throw new Error(`--only: expected a part of "${names.join('", "')}", got "${text}"`);
  });
}

const folder = await Deno.makeTempDir({ prefix: "media-head-bench-" });
try {
  const storage = join(folder, "storage");
  const published = await publishAll(storage, EXTENT);
  const { hot, megabyte, medium, large } = published;
  const items = [...hot, megabyte, medium, large];
  const nginx = await prepareNginx(join(folder, "files"), storage, items);
  const cases = casesOf(storage, published, nginx);
  const measurements = new Map([
    ...cases.map((each) => [each.name, () => measureCase(each)] as const),
    ...cases.filter(({ peers }) => "Hono" in peers)
      .map((each) => [`latency of ${each.name}`, () => measureCaseLatency(each)] as const),
    ["start", () => measureStart(storage, ROUNDS)],
    ["memory", () => measureMemory(storage, EXTENT.cold)],
    ["PostgreSQL and a bucket", () => measureMachines(ROUNDS, quick)],
  ]);
  const chosen = choose([...measurements.keys()]);
  console.log(
    `Deno ${Deno.version.deno}; ${navigator.hardwareConcurrency} cores; ${ROUNDS} rounds\n`,
  );
  console.log(`| case | µs | ${PEERS.join(" | ")} |\n|${"---|".repeat(PEERS.length + 2)}`);
  for (const name of chosen) await measurements.get(name)?.();
} finally {
  await Deno.remove(folder, { recursive: true });
}
