/** What the gate says of real servers that stop, start, share a record, and lose it. */

import { assertEquals, assertMatch } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { askVerdict, CLEAR, UNKNOWN } from "../support/gate.ts";
import { inFolder } from "../support/media_cli.ts";
import { fromRoot } from "../support/paths.ts";
import { type Condition, needing, program, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import {
  addPast,
  recordOnPostgres,
  recordOnSqlite,
  type RecordPlace,
  REDIRECTING,
} from "../support/recorded_processes.ts";
import { mustRun } from "../support/run.ts";
import { ServerProcess } from "../support/server.ts";
import { sideBySide } from "../support/side_by_side.ts";
import { DAY } from "../support/usage_report.ts";
import { until } from "../support/within.ts";

const dumps: Condition[] = [program("pg_dump"), program("pg_restore")];
const postgres = shared([...POSTGRES, ...dumps], () => PostgresServer.start());

/** Copies a database into another, which may be in use. */
const COPY = `
import sqlite3, sys
source, target = [sqlite3.connect(path, timeout=10) for path in sys.argv[1:]]
source.backup(target)`;

/** A record, and its backup. */
interface Place extends RecordPlace {
  readonly save: () => Promise<unknown>;
  readonly restore: () => Promise<unknown>;
}

function onSqlite(folder: string): Promise<Place> {
  const [ledger, copy] = [`${folder}/catalogue.sqlite-ledger`, `${folder}/copy`];
  return Promise.resolve({
    ...recordOnSqlite(folder),
    save: () => mustRun("python3", ["-c", COPY, ledger, copy]),
    restore: () => mustRun("python3", ["-c", COPY, copy, ledger]),
  });
}

async function onPostgres(folder: string): Promise<Place> {
  const place = await recordOnPostgres(postgres());
  const [url, copy] = [place.url, `${folder}/copy`];
  return {
    ...place,
    save: () => mustRun("pg_dump", ["--format=custom", `--file=${copy}`, url]),
    restore: () => mustRun("pg_restore", ["--clean", "--no-owner", "--dbname", url, copy]),
  };
}

/** What servers do. */
interface Scene extends Place {
  readonly start: typeof ServerProcess.start;
  /** Lets minutes pass. */
  readonly pass: (minutes: number) => Promise<unknown>;
  /** Waits for the next heartbeat of a server. */
  readonly heartbeat: () => Promise<void>;
}

/** What happens until only the returned servers run, the verdict, its gaps, and its causes. */
type Event = readonly [
  what: string,
  happen: (scene: Scene) => Promise<readonly ServerProcess[]>,
  verdict: number,
  named: readonly string[],
  causes?: readonly string[],
];

/** Sends a call, which is redirected. */
async function call(server: ServerProcess): Promise<void> {
  const { status } = await requestRaw(server.port, "HEAD", `/audio/${newToken()}`);
  assertEquals(status, 308);
}

const EVENTS: readonly Event[] = [
  [
    "deploys",
    async ({ start }) => {
      const [one, two] = [await start(), await start()];
      await one.stop();
      const three = await start();
      await two.stop();
      return [three];
    },
    CLEAR,
    [],
  ],
  [
    "a server that cannot listen",
    async ({ start }) => {
      const server = await start();
      const taken = start({ PORT: String(server.port) });
      assertMatch(String(await taken.catch((error) => error)), /Address already in use/);
      return [server];
    },
    CLEAR,
    [],
  ],
  [
    "a power cut for ten minutes",
    async ({ start, pass, heartbeat }) => {
      const server = await start();
      await heartbeat();
      await server.stop("SIGKILL");
      await pass(10);
      return [await start()];
    },
    CLEAR,
    ["stop /audio/:token, /video/:token", "silent /audio/:token, /video/:token"],
  ],
  [
    "scaling to zero",
    async ({ start, pass }) => {
      await (await start()).stop();
      await pass(10);
      return [];
    },
    UNKNOWN,
    ["stop /audio/:token, /video/:token"],
    ["no process"],
  ],
  [
    "a cold copy restored, which lacks a call",
    async ({ start, pass, save, restore }) => {
      await (await start()).stop();
      await save();
      const server = await start();
      await call(server);
      await server.stop();
      await restore();
      await pass(10);
      return [await start()];
    },
    CLEAR, // the call came when no process ran by this record
    ["stop /audio/:token, /video/:token"],
  ],
  [
    "a backup restored under a server, which lacks a call",
    async ({ start, heartbeat, save, restore }) => {
      const server = await start();
      await heartbeat();
      await save();
      await call(server);
      await heartbeat();
      await restore();
      await heartbeat();
      return [server];
    },
    CLEAR,
    ["lost /audio/:token, /video/:token"],
  ],
  [
    "a database's clock that was ahead by days",
    async ({ start, heartbeat, execute }) => {
      const server = await start();
      await heartbeat();
      const ahead = 3 * DAY;
      await execute(
        `UPDATE media_head_session SET reported = reported + ${ahead}, written = written + ${ahead}
         WHERE ended IS NULL`,
      );
      const started = "SELECT id FROM media_head_ledger WHERE started IS NOT NULL";
      await until("the record to start again", async () => (await execute(started)).length > 0);
      return [server];
    },
    UNKNOWN,
    [],
    ["too young"],
  ],
  [
    "a server that left out a route, and answered a call to it",
    async ({ start, heartbeat }) => {
      const flags = ["--quiet", "--no-prompt", "-A", `--config=${fromRoot("deno.json")}`];
      const main = fromRoot("tests/support/audio_main.ts");
      const server = await start();
      const other = await start({}, undefined, { main, flags });
      await requestRaw(other.port, "HEAD", `/video/${newToken()}`);
      await other.stop();
      await heartbeat();
      return [server];
    },
    CLEAR,
    ["not counted /video/:token"],
  ],
];

/** The scenes that concern the engine: a restore under a running server. */
const OF_ENGINE = /^a backup restored/;

for (const [engine, open] of Object.entries({ SQLite: onSqlite, PostgreSQL: onPostgres })) {
  const needs = engine === "SQLite" ? [program("python3")] : [...POSTGRES, ...dumps];
  const scenes = EVENTS.filter(([what]) => engine === "SQLite" || OF_ENGINE.test(what));
  needing("processes", ...needs)(
    `the gate on ${engine} names what is not on record`,
    () => sideBySide(scenes, (event) => inFolder((folder) => play(event, open, folder))),
  );
}

/** Plays a scene, and asks the gate what it says. */
async function play(
  [, happen, verdict, named, causes = []]: Event,
  open: (folder: string) => Promise<Place>,
  folder: string,
): Promise<void> {
  const place = await open(folder);
  const last = async () => (await place.execute("SELECT max(reported) FROM media_head_session"))[0];
  let hasBegun = false;
  const servers = await happen({
    ...place,
    async start(environment, _folder, options) {
      const all = { ...REDIRECTING, ...place.environment, ...environment };
      const server = await ServerProcess.start(all, folder, options);
      if (!hasBegun) await addPast(place);
      hasBegun = true;
      return server;
    },
    pass(minutes) {
      const times = ["began", "reported", "written"].map((column) =>
        `${column} = ${column} - ${minutes * 60_000}`
      );
      return place.execute(`UPDATE media_head_session SET ${times.join(", ")}`);
    },
    async heartbeat() {
      const before = await last();
      await until("a server's heartbeat", async () => await last() !== before);
    },
  });
  try {
    const { status, text, json } = await askVerdict(place.url);
    assertEquals(status, verdict, text);
    assertEquals(json.gaps.map(({ kind, routes }) => `${kind} ${routes.join(", ")}`), named, text);
    const told = json.verdicts.flatMap(({ causes }) => causes.map(({ cause }) => cause));
    assertEquals([...new Set(told)], causes, text);
  } finally {
    for (const server of servers) await server.stop();
  }
}
