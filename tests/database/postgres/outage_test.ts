/**
 * A server while its PostgreSQL fails, and after. Every failure has its own database and server,
 * and all run in parallel while requests arrive.
 */

import { assert, assertEquals } from "@std/assert";
import { PERIOD_MS } from "../../../lib/storage/generations.ts";
import type { PublishedItem } from "../../../lib/storage/item.ts";
import { checkParity } from "../../server/request_table.ts";
import { newMetadata } from "../../storage/storage_suite.ts";
import { openLocal } from "../../support/local_storage.ts";
import { needing } from "../../support/permissions.ts";
import { command, PASSWORD, POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import { openEngine } from "../../support/postgres_engine.ts";
import { field, type RawResponse, requestRaw } from "../../support/raw_http.ts";
import { Relay } from "../../support/relay.ts";
import { ServerProcess } from "../../support/server.ts";
import { until } from "../../support/within.ts";

/**
 * Milliseconds until a response, and from the database's recovery until everything is served again.
 */
const LIMIT = 2_000;

/** Slack relative to requests without a database at the same time, for busy machines. */
const SLACK = 5;

/** Milliseconds to poll for recovery. */
const TIMEOUT = 20_000;

/** Milliseconds of an outage: longer than the flush interval, and than a lookup is reused. */
const OUTAGE = 7_000;

/** Milliseconds between rounds of requests. */
const PACE = 400;

/** Connections of PostgreSQL beside those reserved for the superuser, for running out of them. */
const CONNECTIONS = 5;

/** What a failure affects. */
interface World {
  /** Disposed of at the end. */
  readonly stack: AsyncDisposableStack;
  readonly postgres: PostgresServer;
  readonly relay: Relay;
  /** The database's name. */
  readonly database: string;
  readonly server: ServerProcess;
  /** An item requested all the time, and so cached, and one requested only from the failure on. */
  readonly audio: PublishedItem;
  readonly video: PublishedItem;
}

/** A way in which a database fails. */
interface Failure {
  readonly what: string;
  /** Whether the server reaches it through a relay. */
  readonly isRelayed?: true;
  readonly settings?: Record<string, string>;
  /** What the log says about it. */
  readonly logged: RegExp;
  /** Starts the failure, and returns a function that ends it. */
  readonly begin: (world: World) => Promise<() => unknown>;
}

const FAILURES: readonly Failure[] = [
  {
    what: "is stopped",
    logged: /ECONNREFUSED/,
    async begin({ postgres }) {
      await postgres.stop();
      return () => postgres.launch();
    },
  },
  {
    what: "has no connection left",
    settings: { max_connections: String(CONNECTIONS + 3) },
    logged: /remaining connection slots|too many clients/,
    async begin({ stack, postgres }) {
      const args = ["--dbname", postgres.urlOf("postgres"), "--command", "SELECT pg_sleep(600)"];
      const others: Deno.ChildProcess[] = [];
      stack.defer(async () => void await Promise.all(others.map(({ status }) => status)));
      await until("no connection left", async () => {
        await postgres.query(ofOurs("SELECT pg_terminate_backend(pid)", "<> 'psql'"));
        others.push(command("psql", args).spawn()); // exits at once if there is no connection for it
        const rest = postgres.query(ofOurs("SELECT count(*)", "<> 'psql'"));
        const taken = postgres.query(ofOurs("SELECT count(*)", "= 'psql'"));
        return (await rest)[0] === "0" && (await taken)[0] === String(CONNECTIONS);
      });
      return () => postgres.query(ofOurs("SELECT pg_terminate_backend(pid)", "= 'psql'"));
    },
  },
  {
    what: "is behind a network that is half open",
    isRelayed: true,
    logged: /timeout|no answer/i,
    begin({ relay }) {
      relay.lose();
      return Promise.resolve(() => relay.restore());
    },
  },
  {
    what: "turns read-only",
    logged: /read-only/,
    async begin({ postgres }) {
      const set = async (value: "on" | "off") => {
        await postgres.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
        await postgres.query("SELECT pg_reload_conf()");
        const isSet = async () =>
          (await postgres.query("SHOW default_transaction_read_only"))[0] === value;
        await until("the setting", isSet);
      };
      await set("on");
      return () => set("off");
    },
  },
];

/** SQL for the connections of our user, by program name. */
const ofOurs = (select: string, program: string) =>
  `${select} FROM pg_stat_activity WHERE usename = '${USER}' AND application_name ${program}`;

/** A HEAD and a GET sent at the same time, and their responses. */
interface Round {
  readonly path: "/audio/" | "/video/" | "/healthz" | "/";
  /** Milliseconds, as are all times here. */
  readonly sent: number;
  readonly answered: number;
  readonly head: RawResponse;
  readonly get: RawResponse;
}

/** What was observed in an outage. */
interface Outage {
  readonly rounds: readonly Round[];
  /** When the failure had certainly begun, until when it lasted, and when it was certainly over. */
  readonly begun: number;
  readonly ending: number;
  readonly ended: number;
  /** When the first round was sent in which every request was served. */
  readonly back: number;
  /** How the server ended, and what it wrote. */
  readonly end: Awaited<ReturnType<ServerProcess["stop"]>>;
  /** The rows of the ledger: route, method, status and calls. */
  readonly ledger: readonly string[];
}

/** Starts a database and a server on it, with two items. */
async function setUp({ isRelayed, settings }: Failure): Promise<World> {
  await using starting = new AsyncDisposableStack();
  const postgres = starting.use(await PostgresServer.start(settings && { settings }));
  const relay = starting.use(new Relay(postgres.port));
  const database = await postgres.createDatabase();
  const url = postgres.urlOf(database, isRelayed ? relay.port : postgres.port);
  const { close, publish, folder } = starting.use(await openLocal(openEngine(url)));
  const audio = await publish(newMetadata("audio"), new Uint8Array(1000));
  const video = await publish(newMetadata("video"), new Uint8Array(2000));
  await close();
  const environment = { DATABASE_URL: url };
  const server = starting.use(await ServerProcess.start(environment, folder));
  return { stack: starting.move(), postgres, relay, database, server, audio, video };
}

/** Causes a failure, sends requests during all of it, and stops the server. */
async function observe(world: World, { begin }: Failure): Promise<Outage> {
  await using _stack = world.stack;
  const { database, server, audio, video } = world;
  const rounds: Promise<Round>[] = [];
  const ask = (path: Round["path"], token = ""): Promise<Round> => {
    const round = (async () => {
      const sent = performance.now();
      const send = (method: string) => requestRaw(server.port, method, path + token);
      const [head, get] = await Promise.all([send("HEAD"), send("GET")]);
      return { path, sent, answered: performance.now(), head, get };
    })();
    rounds.push(round);
    round.catch(() => {}); // awaited at the end
    return round;
  };
  const askForAudio = () => [ask("/audio/", audio.token), ask("/")];
  const askForItems = () => [...askForAudio(), ask("/video/", video.token)];
  const askForAll = () => [...askForItems(), ask("/healthz")];
  const keepAsking = async (milliseconds: number, asking: () => unknown) => {
    for (const end = performance.now() + milliseconds; performance.now() < end;) {
      asking();
      await pause(PACE);
    }
  };

  await keepAsking(1_000, () => [...askForAudio(), ask("/healthz")]);
  const meanwhile = keepAsking(500, askForAudio);
  const end = await begin(world);
  const begun = performance.now();
  await keepAsking(OUTAGE / 2, askForItems); // a failed check invalidates the cache
  await keepAsking(OUTAGE / 2, askForAll);
  const ending = performance.now();
  await end();
  const ended = performance.now();
  let back = Infinity;
  while (back === Infinity && performance.now() < ended + TIMEOUT) {
    const sent = performance.now();
    const answers = (await Promise.all(askForAll())).flatMap(({ head, get }) => [head, get]);
    if (answers.every(({ status }) => status !== 503)) back = sent;
    await pause(50);
  }
  await keepAsking(1_000, askForAll);
  await meanwhile;
  const seen = await Promise.all(rounds);
  const stopped = await server.stop();
  const sums =
    "SELECT route, method, status, sum(calls) FROM media_head_usage GROUP BY route, method, status";
  const ledger = await world.postgres.query(sums, database);
  return { rounds: seen, begun, ending, ended, back, end: stopped, ledger };
}

/** Checks the responses over time. */
function checkAnswers({ rounds, begun, ending, ended, back }: Outage): void {
  assert(back - ended < LIMIT + slack(rounds, ended, back), `back after ${back - ended} ms`);
  for (const { path, sent, answered, head, get } of rounds) {
    const what = `${path}, ${Math.round(sent - begun)} ms after the failure`;
    const took = answered - sent;
    assert(took < LIMIT + slack(rounds, sent, answered), `${what}: ${Math.round(took)} ms`);
    if (path === "/") continue;
    for (const answer of [head, get]) {
      assert([200, 503].includes(answer.status), `${what}: ${answer.status}`);
      assertEquals(/^\d+$/.test(field(answer, "retry-after") ?? ""), answer.status === 503, what);
    }
    const isKnown = path === "/audio/";
    let expected: number | undefined; // while it changes, either is fine
    if (answered < begun - 500 || sent >= back) expected = 200;
    if (sent >= begun + (isKnown ? PERIOD_MS : 0) && answered < ending) expected = 503;
    if (expected === undefined) continue;
    // On a machine this slow, a working database may not answer in time, either.
    if (expected === 200 && slack(rounds, sent, answered) > LIMIT / 2) continue;
    assertEquals([head.status, get.status], [expected, expected], what);
    checkParity(what, head, get);
  }
}

/** Returns the slack for a period: requests without a database show how slow the machine was. */
function slack(rounds: readonly Round[], from: number, to: number): number {
  const controls = rounds.filter(({ path, sent, answered }) =>
    path === "/" && sent <= to && answered >= from
  );
  return SLACK * Math.max(0, ...controls.map(({ sent, answered }) => answered - sent));
}

/**
 * Checks that every call is in the ledger exactly once. Where the network is half open, the one
 * connection of the record hangs for a minute, so a stop before that says how many may be lost: also
 * those whose write arrived, but not the answer to it.
 */
function checkLedger({ rounds, ledger, end: { log } }: Outage, isHanging: boolean): void {
  const calls = new Map<string, number>();
  for (const { path, head, get } of rounds) {
    if (path === "/" || path === "/healthz") continue;
    for (const [method, { status }] of [["HEAD", head], ["GET", get]] as const) {
      const key = `${path}:token|${method}|${Math.floor(status / 100)}xx`;
      calls.set(key, (calls.get(key) ?? 0) + 1);
    }
  }
  const lost = log.at(-1)?.["lost"];
  if (!isHanging) {
    assertEquals(ledger.toSorted(), [...calls].map(([key, count]) => `${key}|${count}`).sort());
    assertEquals(lost, undefined);
    return;
  }
  const sum = (counts: number[]) => counts.reduce((a, b) => a + b, 0);
  const recorded = sum(ledger.map((row) => Number(row.split("|").at(-1))));
  const sent = sum([...calls.values()]);
  const what = `${recorded} recorded and ${lost} lost of ${sent}`;
  assert(recorded <= sent && sent <= recorded + Number(lost), what);
}

/** Checks that the log says what failed, and contains no secret. */
function checkLog({ end: { code, log, stderr } }: Outage, logged: RegExp): void {
  assertEquals(code, 0, stderr);
  assertEquals(stderr.trimEnd().split("\n").length, log.length, stderr);
  assert(!stderr.includes(PASSWORD), stderr);
  for (const { event, route, status, cause } of log) {
    assert(["start", "error", "stop"].includes(event), event);
    assertEquals(status, route === undefined ? undefined : 503, String(cause));
    assert(!/-4[0-9a-f]{3}-/.test(String(cause)), "a token is logged");
  }
  const faults = log.filter(({ event }) => event === "error");
  assert(faults.some(({ cause }) => logged.test(String(cause))), stderr);
  assert(faults.length < 10, "each cause is logged once");
}

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Observes every failure. Everything is started before the first one, so that nothing slows them
 * down.
 */
async function observeAll(): Promise<PromiseSettledResult<Outage>[]> {
  const worlds = FAILURES.map(setUp);
  await Promise.allSettled(worlds);
  return await Promise.allSettled(
    FAILURES.map(async (failure, index) => observe(await worlds[index] as World, failure)),
  );
}

let observations: ReturnType<typeof observeAll> | undefined;

for (const [index, { what, logged, isRelayed = false }] of FAILURES.entries()) {
  const name = `a server answers 503 while PostgreSQL ${what}, and is back after, with all calls ${
    isRelayed ? "counted or named" : "counted"
  }`;
  needing(...POSTGRES)(name, async () => {
    const observed = (await (observations ??= observeAll()))[index];
    if (observed?.status !== "fulfilled") throw observed?.reason;
    const { rounds, ended, back } = observed.value;
    const slowest = Math.max(...rounds.map(({ sent, answered }) => answered - sent));
    console.log(`answered within ${slowest | 0} ms, back after ${back - ended | 0} ms`);
    checkAnswers(observed.value);
    checkLedger(observed.value, isRelayed);
    checkLog(observed.value, logged);
  });
}
