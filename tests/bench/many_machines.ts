/**
 * Measuring the topology of many machines: PostgreSQL and an S3-compatible store, both as in the
 * tests, beside Hono with the same two. The store is slow and shares the cores, so what counts is
 * the servers' CPU time, and what they ask of store and database.
 */

import type { PublishedItem } from "../../lib/storage/item.ts";
import { forEach } from "../../lib/async/for_each.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openBucket } from "../support/bucket_storage.ts";
import { fromRoot } from "../support/paths.ts";
import { missingOf } from "../support/permissions.ts";
import { openEngine } from "../support/postgres_engine.ts";
import { POSTGRES, PostgresServer, USER } from "../support/postgres.ts";
import { Relay } from "../support/relay.ts";
import { ACCESS_KEY, BUCKET, S3_STORE, S3Store, SECRET_KEY } from "../support/s3_store.ts";
import { Contender, type Launch } from "./contender.ts";
import { inTurn, type Load, parts, type PreparedRequest, sendLoad, wholes } from "./load.ts";
import { quantile, ratio, spread } from "./measurement.ts";
import { EVERYTHING, peer } from "./peers.ts";

const PREFIX = "bench";
const [OWN, PEER] = ["media-head", "Hono"] as const;

/** The peer is not told what to send. */
const NOTHING_GIVEN = { status: 200, headers: [], length: 0 };

/** Milliseconds after which PostgreSQL has counted everything that an idle connection did. */
const COUNTED_MS = 11_000;

/** A server under measurement, in one process or more, with a database and a relay of its own. */
interface Subject {
  readonly processes: readonly Contender[];
  /** Returns how many requests it has sent to the store. */
  readonly asked: () => number;
  /** Returns how many transactions its database has run. */
  readonly queries: () => Promise<number>;
}

/** What one subject needs for one case, in every round. */
interface Result {
  /** Nanoseconds of CPU time per request. */
  readonly cpu: number[];
  /** Requests to the store per request. */
  readonly asked: number[];
  /** Queries per request, in all rounds together. */
  queries: number;
}

/** What all servers of the measurement use. */
interface World {
  readonly store: S3Store;
  readonly postgres: PostgresServer;
  /** The database with all items, of which each server gets a copy. */
  readonly database: string;
  readonly hot: readonly PublishedItem[];
  /** Items of which each is requested once. */
  readonly cold: readonly PublishedItem[];
  readonly megabyte: PublishedItem;
}

/** Measures everything, and prints it. */
export async function measureMachines(rounds: number, isQuick: boolean): Promise<void> {
  const missing = missingOf([...POSTGRES, ...S3_STORE]);
  if (missing !== "") {
    return console.log(`\nPostgreSQL and a bucket: not measured without ${missing}`);
  }
  const [hot, count] = isQuick ? [100, 60] : [1_000, 300];
  await using store = await S3Store.start();
  await using postgres = await PostgresServer.start();
  const database = await postgres.createDatabase();
  const cold = Math.ceil(count * (1.2 * rounds + 1));
  const items = await publish(postgres.urlOf(database), store, { hot, cold });
  await measureRequests({ store, postgres, database, ...items }, count, rounds);
}

/** Measures each kind of request, and prints a table. */
async function measureRequests(world: World, count: number, rounds: number): Promise<void> {
  const { hot, cold, megabyte } = world;
  console.log(`\nPostgreSQL and a bucket, per request; ${hot.length} hot items\n`);
  const columns = ["case", "µs", "ratio to Hono", "store", "Hono's", "queries", "Hono's"];
  console.log(`| ${columns.join(" | ")} |\n|${"---|".repeat(columns.length)}`);
  const hotHeads = (name: string) =>
    inTurn(wholes("HEAD", hot), 200, name === OWN ? 20 * count : count); // Hono's wait for the store
  const cases: [name: string, load: (name: string) => Load, processes: number][] = [
    ["hot HEAD", hotHeads, 1],
    ["hot HEAD, two processes", hotHeads, 2],
    ["cold HEAD", () => once(wholes("HEAD", cold), count), 1],
    ["GET 4 kB", () => inTurn(wholes("GET", hot), 200, count), 1],
    ["GET 64 kB of 1 MB", () => inTurn(parts(megabyte, 16), 206, count), 1],
    ["GET 1 MB", () => inTurn(wholes("GET", [megabyte]), 200, count / 3), 1],
  ];
  for (const [name, load, processes] of cases) {
    await using running = new AsyncDisposableStack();
    const own = await start(world, OWN, processes, running);
    const other = await start(world, PEER, processes, running);
    print(name, await measureInTurn([[own, load(OWN)], [other, load(PEER)]], rounds));
  }
}

/** Starts processes of a server on a copy of the database, which ask the store through a relay. */
async function start(
  world: World,
  name: string,
  processes: number,
  running: AsyncDisposableStack,
): Promise<Subject> {
  const { store, postgres } = world;
  const database = `copy_${crypto.randomUUID().replaceAll("-", "")}`;
  await postgres.query(`CREATE DATABASE ${database} TEMPLATE ${world.database} OWNER ${USER}`);
  const url = postgres.urlOf(database);
  const relay = running.use(new Relay(store.port));
  let sent = 0;
  relay.onSent = (text) => void (sent += /^(?:HEAD|GET|PUT) \//.test(text) ? 1 : 0);
  const endpoint = `http://127.0.0.1:${relay.port}`;
  const key = [ACCESS_KEY, SECRET_KEY];
  const launch: Launch = name === OWN
    ? {
      command: Deno.execPath(),
      args: ["run", "--allow-all", fromRoot("main.ts")],
      env: {
        ...EVERYTHING,
        ...store.environment(PREFIX),
        DATABASE_URL: url,
        AWS_ENDPOINT_URL_S3: endpoint,
      },
    }
    : peer("hono_bucket.ts", url, `${endpoint}/${BUCKET}/${PREFIX}`, ...key)(NOTHING_GIVEN);
  const started: Contender[] = [];
  for (let index = 0; index < processes; index++) {
    started.push(running.use(await Contender.start(name, launch)));
  }
  const queries = async () => {
    await new Promise((resolve) => setTimeout(resolve, COUNTED_MS));
    const text = `SELECT xact_commit FROM pg_stat_database WHERE datname = '${database}'`;
    return Number((await postgres.query(text))[0]);
  };
  return { processes: started, asked: () => sent, queries };
}

/** Publishes items with an object each. */
async function publish(url: string, store: S3Store, counts: { hot: number; cold: number }) {
  await using subject = await openBucket(store, await openEngine(url), PREFIX);
  const make = async (length: number): Promise<PublishedItem> => {
    const content = new Uint8Array(length);
    crypto.getRandomValues(content.subarray(0, 64));
    return await subject.publish({ ...newMetadata(), name: "item.mp3" }, content);
  };
  const makeAll = async (count: number) => {
    const items: PublishedItem[] = [];
    const numbers = async function* () {
      yield* Array(count).keys();
    }();
    await forEach(numbers, { concurrency: 8 }, async () => {
      items.push(await make(4_096));
    });
    return items;
  };
  const megabyte = await make(1_048_576);
  return { hot: await makeAll(counts.hot), cold: await makeAll(counts.cold), megabyte };
}

/** Sends each request once only, in all rounds together. */
function once(all: readonly PreparedRequest[], count: number): Load {
  let next = 0;
  return { request: () => all[next++] as PreparedRequest, status: 200, count };
}

/** Measures subjects in turn, each with a load of its own. */
async function measureInTurn(
  subjects: readonly [Subject, Load][],
  rounds: number,
): Promise<Result[]> {
  const send = async ({ processes }: Subject, load: Load, share = 1) => {
    const count = Math.ceil(load.count * share / processes.length);
    await Promise.all(processes.map(({ port }) => sendLoad(port, { ...load, count })));
    return count * processes.length;
  };
  for (const [subject, load] of subjects) await send(subject, load);
  const results = subjects.map((): Result => ({ cpu: [], asked: [], queries: 0 }));
  const before = await Promise.all(subjects.map(([subject]) => subject.queries()));
  const sent = subjects.map(() => 0);
  for (let round = 0; round < rounds; round++) {
    for (const [index, [subject, load]] of subjects.entries()) {
      const { cpu, asked } = results[index] as Result;
      sent[index] = (sent[index] ?? 0) + await send(subject, load, 0.2);
      const [cpuBefore, askedBefore] = [cpuOf(subject), subject.asked()];
      const count = await send(subject, load);
      cpu.push((cpuOf(subject) - cpuBefore) / count);
      asked.push((subject.asked() - askedBefore) / count);
      sent[index] += count;
    }
  }
  const after = await Promise.all(subjects.map(([subject]) => subject.queries()));
  for (const [index, result] of results.entries()) {
    result.queries = ((after[index] ?? 0) - (before[index] ?? 0)) / (sent[index] ?? 0);
  }
  return results;
}

/** Returns the CPU time of all processes so far, in nanoseconds. */
function cpuOf({ processes }: Subject): number {
  return processes.reduce((sum, each) => sum + each.cpu(), 0);
}

function print(name: string, [own, other]: readonly Result[]): void {
  if (own === undefined || other === undefined) return;
  const columns = [
    name,
    (quantile(own.cpu, 0.5) / 1_000).toFixed(0),
    ratio(own.cpu, other.cpu),
    spread(own.asked),
    spread(other.asked),
    own.queries.toFixed(2),
    other.queries.toFixed(2),
  ];
  console.log(`| ${columns.join(" | ")} |`);
}
