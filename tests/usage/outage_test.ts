/**
 * Servers and applications whose ledger fails, hangs or is slow: every answer is as before, nothing is
 * added to what the record uses, and all calls are on record once in the end.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { newToken } from "../../lib/storage/token.ts";
import { askVerdict, CALLED } from "../support/gate.ts";
import { inFolder, media } from "../support/media_cli.ts";
import { SAMPLE_MP3 } from "../support/paths.ts";
import { LINUX, type Need, needing, program, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import {
  addPast,
  ApplicationProcess,
  callsIn,
  recordOnPostgres,
  recordOnSqlite,
  type RecordPlace,
  REDIRECTING,
  startRecorded,
} from "../support/recorded_processes.ts";
import { sideBySide } from "../support/side_by_side.ts";
import { until } from "../support/within.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

/** A record that can fail. */
interface FailingPlace extends RecordPlace {
  /** Whether the catalogue fails with it. */
  readonly failsWholly?: boolean;
  /** Whether the process learns of it. */
  readonly isKnown: boolean;
  /** Options for the start of a server. */
  readonly options?: Parameters<typeof startRecorded>[3];
  /** The connections of the process to the database. */
  readonly connections?: () => Promise<number>;
  /** Makes it fail, until the returned function is called. */
  readonly fail: () => Promise<() => unknown>;
}

/** A fault of the ledger. */
type Fault = readonly [
  what: string,
  open: (folder: string, all: AsyncDisposableStack) => FailingPlace | Promise<FailingPlace>,
];

const ON_SQLITE: readonly Fault[] = [
  ["a lock", (folder) => ({
    ...recordOnSqlite(folder),
    isKnown: true,
    fail() {
      const file = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`, { timeout: 60_000 });
      file.exec("BEGIN IMMEDIATE");
      return Promise.resolve(() => file.close());
    },
  })],
  ["a full disk", (folder) => ({
    ...recordOnSqlite(folder),
    isKnown: true,
    // No file may be longer than a megabyte.
    options: { limits: `-f 1000; trap "" XFSZ` },
    fail() {
      // The log of changes (WAL) is longer now, and the next change would be appended to it.
      const file = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`, { timeout: 60_000 });
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
];

/** Returns a record in a new database of a server, and how many connections there are to it. */
async function recordOn(
  server: PostgresServer,
): Promise<RecordPlace & Pick<FailingPlace, "connections">> {
  const place = await recordOnPostgres(server);
  const name = new URL(place.url).pathname.slice(1);
  const count = `SELECT count(*) FROM pg_stat_activity
    WHERE datname = '${name}' AND application_name = 'media-head'`;
  return { ...place, connections: async () => Number((await server.query(count))[0]) };
}

const nameIn = ({ url }: RecordPlace) => new URL(url).pathname.slice(1);

const ON_POSTGRES: readonly Fault[] = [
  ["a lock on its tables", async () => {
    const place = await recordOn(postgres());
    const lock = "LOCK TABLE media_head_session, media_head_usage IN EXCLUSIVE MODE";
    return { ...place, isKnown: false, fail: () => postgres().keep(nameIn(place), lock) };
  }],
  ["no connection is left", async () => {
    const place = await recordOn(postgres());
    const name = nameIn(place);
    const fail = async () => {
      await postgres().query(`ALTER DATABASE ${name} CONNECTION LIMIT 0`);
      await postgres().query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`,
      );
      return () => postgres().query(`ALTER DATABASE ${name} CONNECTION LIMIT -1`);
    };
    return { ...place, isKnown: true, failsWholly: true, fail };
  }],
  ["it is frozen", async (_, all) => {
    const server = all.use(await PostgresServer.start());
    const { connections: _connections, ...place } = await recordOn(server);
    const fail = () => {
      server.freeze();
      return Promise.resolve(() => server.thaw());
    };
    return { ...place, isKnown: false, failsWholly: true, fail };
  }],
  ["it crashes, and is started again", async (_, all) => {
    const server = all.use(await PostgresServer.start());
    const { connections: _connections, ...place } = await recordOn(server);
    const fail = async () => {
      await server.stop("SIGQUIT");
      return () => server.launch();
    };
    return { ...place, isKnown: true, failsWholly: true, fail };
  }],
];

const METHODS = ["HEAD", "GET"] as const;

/** Who answers. */
interface Answerer {
  readonly port: number;
  /** Paths of which each is called, and whether that is a call on record. */
  readonly paths: Readonly<Record<string, boolean>>;
  /** Returns what it says of the record. */
  readonly health: () => Promise<string>;
}

type Scene = readonly [
  what: string,
  open: Fault[1],
  start: (place: FailingPlace, folder: string, all: AsyncDisposableStack) => Promise<Answerer>,
];

const scenesOf = (faults: readonly Fault[]): Scene[] =>
  faults.flatMap(([what, open]): Scene[] => [
    [`${what}, for a server`, open, startServer],
    [`${what}, for an application`, open, startApplication],
  ]);

for (const engine of ["SQLite", "PostgreSQL"] as const) {
  const needs: Need[] = engine === "SQLite" ? [LINUX, program("bash")] : [...POSTGRES];
  needing("processes", ...needs)(
    `whatever is wrong with ${engine}, every answer is as before, and all is counted once`,
    () =>
      sideBySide(
        scenesOf(engine === "SQLite" ? ON_SQLITE : ON_POSTGRES),
        ([what, open, start]) =>
          inFolder(async (folder) => {
            await using all = new AsyncDisposableStack();
            const place = await open(folder, all);
            await play(place, await start(place, folder, all), what.endsWith("an application"));
          }),
      ),
  );
}

async function textAt(port: number, path: string): Promise<string> {
  return new TextDecoder().decode((await requestRaw(port, "GET", path)).content);
}

async function startServer(
  place: FailingPlace,
  folder: string,
  all: AsyncDisposableStack,
): Promise<Answerer> {
  const settings = place.failsWholly ? REDIRECTING : { DEPRECATED_AT: "1999-01-01" };
  const server = await startRecorded(folder, place, settings, place.options);
  all.defer(async () => void await server.stop("SIGKILL"));
  const { port } = server;
  const documents = { "/deprecation": false, "/openapi.json": false };
  if (place.failsWholly) {
    const paths = { [`/audio/${newToken()}`]: true, [`/video/${newToken()}`]: true };
    return { port, paths: { ...paths, ...documents }, health: () => Promise.resolve("") };
  }
  const words = ["publish", "--json", SAMPLE_MP3];
  const published = await media(folder, words, { ...settings, ...place.environment });
  assertEquals(published.code, 0, published.stderr);
  const { token } = JSON.parse(published.stdout);
  const items = { [`/audio/${token}`]: true, [`/audio/${newToken()}`]: false };
  const paths = { ...items, [`/media/${token}`]: false, ...documents };
  return { port, paths, health: () => textAt(port, "/healthz") };
}

async function startApplication(
  place: FailingPlace,
  _folder: string,
  all: AsyncDisposableStack,
): Promise<Answerer> {
  const limits = place.options?.limits;
  const { port } = all.use(await ApplicationProcess.start(place.url, { limits }));
  const paths = { "/v1/a": true, "/v2/a": true, "/other": false };
  return { port, paths, health: () => textAt(port, "/fault") };
}

/** Milliseconds for which a client goes on calling while the record fails. */
const LASTS_MS = 4_000;

/** Calls before, while and after the record fails. */
async function play(
  place: FailingPlace,
  { port, paths, health }: Answerer,
  isApplication: boolean,
): Promise<void> {
  await addPast(place);
  let counted = 0;
  const call = async (method: string, path: string) => {
    const { status, fields, content } = await requestRaw(port, method, path);
    if (paths[path]) counted++;
    const own = fields.filter(([name]) => name !== "date");
    return { status, own, content };
  };
  const callAll = () =>
    Promise.all(
      Object.keys(paths).flatMap((path) => METHODS.map((method) => call(method, path))),
    );
  const before = await callAll();
  for (const { status } of before) assert(status < 500, `${status}`);
  await until("the calls", async () => await callsIn(place) === counted);

  const restore = await place.fail();
  const end = performance.now() + LASTS_MS;
  let isKnown = false;
  while (performance.now() < end || place.isKnown && !isKnown) {
    assertEquals(await callAll(), before);
    const said = await health();
    isKnown ||= !place.isKnown || said === "" || said.includes("no record of calls: ");
    // A server has two more, for its catalogue.
    const connections = await place.connections?.() ?? 0;
    assert(connections <= (isApplication ? 1 : 3), `${connections} connections`);
    await new Promise((resolve) => setTimeout(resolve, 50)); // a steady client
  }
  await restore();

  assertEquals(await callAll(), before);
  let calls = 0;
  const isRecorded = async () => (calls = await callsIn(place)) === counted;
  await until("all calls to be on record", isRecorded).catch(() => assertEquals(calls, counted));
  await until("the end of the fault", async () => !(await health()).includes("no record"));
  const { status, text, json } = await askVerdict(place.url);
  assertEquals([status, json.gaps], [CALLED, []], text);
  assertMatch(text, RegExp(`^Still called: ${counted.toLocaleString("en-US")} calls? to `));
}
