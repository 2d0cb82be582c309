/**
 * Servers and applications whose database does not take intents for a while: who may be answered
 * then, how, and what is on record afterwards.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { newToken } from "../../lib/storage/token.ts";
import { inFolder, media } from "../support/media_cli.ts";
import { SAMPLE_MP3 } from "../support/paths.ts";
import { LINUX, type Need, needing, program, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { field, type RawResponse, requestRaw } from "../support/raw_http.ts";
import {
  addPast,
  ApplicationProcess,
  askVerdict,
  CLEAR,
  recordOnPostgres,
  recordOnSqlite,
  type RecordPlace,
  REDIRECTING,
  startRecorded,
} from "../support/recorded_processes.ts";
import { Relay } from "../support/relay.ts";
import { sideBySide } from "../support/side_by_side.ts";
import { until } from "../support/within.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

/** A record that can fail. */
interface FailingPlace extends RecordPlace {
  /** Whether the catalogue fails with it. */
  readonly failsWholly?: boolean;
  /** Options for the start of a server. */
  readonly options?: Parameters<typeof startRecorded>[3];
  /** Makes it fail, until the returned function is called. */
  readonly fail: () => Promise<() => unknown>;
}

async function behindRelay(
  all: AsyncDisposableStack,
  fail: (relay: Relay) => () => void,
): Promise<FailingPlace> {
  const relay = all.use(new Relay(postgres().port));
  const direct = await recordOnPostgres(postgres());
  const url = postgres().urlOf(new URL(direct.url).pathname.slice(1), relay.port);
  const environment = { DATABASE_URL: url };
  const failing = () => Promise.resolve(fail(relay));
  return { ...direct, url, environment, failsWholly: true, fail: failing };
}

/** The faults. */
const FAULTS: readonly (readonly [
  what: string,
  open: (folder: string, all: AsyncDisposableStack) => FailingPlace | Promise<FailingPlace>,
])[] = [
  ["a lock on SQLite", (folder) => ({
    ...recordOnSqlite(folder),
    fail() {
      const file = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`, { timeout: 5_000 });
      file.exec("BEGIN IMMEDIATE");
      return Promise.resolve(() => file.close());
    },
  })],
  ["a full disk on SQLite", (folder) => ({
    ...recordOnSqlite(folder),
    // No file may be longer than a megabyte.
    options: { limits: `-f 1000; trap "" XFSZ` },
    fail() {
      // The log of changes (WAL) is longer now, and the next change would be appended to it.
      const file = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`, { timeout: 5_000 });
      file.exec(
        `PRAGMA wal_autocheckpoint = 0;
         CREATE TABLE filler AS SELECT zeroblob(2000000) AS zeros;`,
      );
      return Promise.resolve(() => {
        file.exec("DROP TABLE filler; PRAGMA wal_checkpoint(TRUNCATE)");
        file.close();
      });
    },
  })],
  ["a lock on PostgreSQL", async () => {
    const place = await recordOnPostgres(postgres());
    const name = new URL(place.url).pathname.slice(1);
    const tables = "media_head_session, media_head_intent, media_head_usage";
    const fail = () => postgres().keep(name, `LOCK TABLE ${tables} IN EXCLUSIVE MODE`);
    return { ...place, fail };
  }],
  ["PostgreSQL refuses connections", (_, all) =>
    behindRelay(all, (relay) => {
      relay.lead(1); // nothing listens there
      return () => relay.lead(postgres().port);
    })],
  ["PostgreSQL answers nothing", (_, all) =>
    behindRelay(all, (relay) => {
      relay.lose();
      return () => relay.restore();
    })],
];

/** What a client may see of a call that the record does not take, the same for HEAD and GET. */
function checkWithheld(response: RawResponse, method: string): void {
  assertEquals(response.status, 503, method);
  assertMatch(field(response, "retry-after") ?? "", /^\d+$/);
  assertMatch(field(response, "cache-control") ?? "", /^no-store/);
  assertMatch(field(response, "deprecation") ?? "", /^@\d+$/);
  assertEquals(field(response, "access-control-allow-origin"), "*");
  assertEquals(field(response, "content-type"), "application/problem+json");
  const text = new TextDecoder().decode(response.content);
  assertEquals(text === "", method === "HEAD");
  if (method === "GET") assertEquals(JSON.parse(text).status, 503);
}

const METHODS = ["HEAD", "GET"] as const;

/** Who answers: its port, and paths under two routes, of which it holds the intent for the first. */
interface Answerer {
  readonly port: number;
  readonly held: () => string;
  readonly other: () => string;
  readonly served: number;
}

for (const engine of ["SQLite", "PostgreSQL"] as const) {
  const needs: Need[] = engine === "SQLite" ? [LINUX, program("bash")] : [...POSTGRES];
  const scenes = FAULTS.filter(([what]) => what.includes(engine)).flatMap(([what, open]) => [
    [`${what}, for a server`, open, playServer] as const,
    [`${what}, for an application`, open, playApplication] as const,
  ]);
  needing("processes", ...needs)(
    `while ${engine} takes no intent, only routes whose intent is held are answered, and all is counted once`,
    () =>
      sideBySide(scenes, ([, open, play]) =>
        inFolder(async (folder) => {
          await using all = new AsyncDisposableStack();
          await play(await open(folder, all), folder, all);
        })),
  );
}

async function playServer(
  place: FailingPlace,
  folder: string,
  all: AsyncDisposableStack,
): Promise<void> {
  const server = await startRecorded(folder, place, REDIRECTING, place.options);
  all.defer(async () => void await server.stop("SIGKILL"));
  const settings = { ...REDIRECTING, ...place.environment };
  const published = await media(folder, ["publish", "--json", SAMPLE_MP3], settings);
  assertEquals(published.code, 0, published.stderr);
  const item = `/media/${JSON.parse(published.stdout).token}`;
  const { port } = server;
  const answerer: Answerer = {
    port,
    held: () => `/audio/${newToken()}`,
    other: () => `/video/${newToken()}`,
    served: 308,
  };
  await play(answerer, place, async () => {
    const paths = place.failsWholly ? ["/deprecation"] : ["/deprecation", "/healthz", item];
    const callAll = async () => {
      for (const path of paths) {
        for (const method of METHODS) {
          assertEquals((await requestRaw(port, method, path)).status, 200, path);
        }
      }
    };
    await callAll();
    if (place.failsWholly) return;
    await until("the fault", async () => {
      const { status, content } = await requestRaw(port, "GET", "/healthz");
      assertEquals(status, 200);
      return new TextDecoder().decode(content).startsWith("ok, but ");
    });
    await callAll();
  });
  const { log } = await server.stop();
  assertMatch(JSON.stringify(log), /"event":"error"/);
}

async function playApplication(
  place: FailingPlace,
  _folder: string,
  all: AsyncDisposableStack,
): Promise<void> {
  const { port } = all.use(
    await ApplicationProcess.start(place.url, { limits: place.options?.limits }),
  );
  await play({ port, held: () => "/v1/a", other: () => "/v2/a", served: 200 }, place);
}

/**
 * Calls before, while and after the record fails.
 *
 * @param meanwhile What else to do while it fails.
 */
async function play(
  { port, held, other, served }: Answerer,
  place: FailingPlace,
  meanwhile: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  await addPast(place);
  /** The calls that were answered, by the start of their path and the class of the status. */
  const answered: Record<string, number> = {};
  const call = async (method: string, path: string) => {
    const response = await requestRaw(port, method, path);
    const key = `${path.slice(0, 3)} ${Math.floor(response.status / 100)}xx`;
    answered[key] = (answered[key] ?? 0) + 1;
    return response;
  };
  const callHeld = async (when: string) => {
    for (const method of METHODS) {
      assertEquals((await call(method, held())).status, served, `${method} ${when}`);
    }
  };
  const areServed = (path: () => string) => async () => {
    const responses = await Promise.all(METHODS.map((method) => call(method, path())));
    return responses.every(({ status }) => status === served);
  };
  await until("the first intent", areServed(held)); // a busy machine may need more than two seconds

  const restore = await place.fail();
  const timed = async (method: string) => {
    const start = performance.now();
    checkWithheld(await call(method, other()), method);
    return performance.now() - start;
  };
  const first = await Promise.all(METHODS.map(timed));
  assert(Math.max(...first) < 5_000, `${first}: they wait for two seconds at most`);
  const later = await Promise.all([...METHODS, ...METHODS].map(timed));
  assert(Math.min(...later) < 1_000, `${later}: all but one do not wait`);
  await callHeld("while the record fails");
  await meanwhile();
  await callHeld("after a while");
  await restore();

  await until("the record", areServed(other));
  const expected = Object.entries(answered).map(([key, calls]) => `${key} ${calls}`).toSorted();
  let rows: string[] = [];
  await until("all calls to be on record", async () => {
    rows = await place.execute(
      `SELECT substr(route, 1, 3) || ' ' || status || ' ' || CAST(sum(calls) AS integer)
       FROM media_head_usage GROUP BY substr(route, 1, 3), status`,
    );
    return rows.toSorted().join() === expected.join();
  }).catch(() => assertEquals(rows.toSorted(), expected));
  const plain = await askVerdict(place.url, "--at-most", "999");
  assertEquals(plain.status, CLEAR, plain.text);
  const json = await askVerdict(place.url, "--at-most", "999", "--json");
  assertEquals([json.status, JSON.parse(json.text).verdict], [CLEAR, "clear"]);
}
