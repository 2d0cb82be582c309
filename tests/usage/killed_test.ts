/**
 * Processes that are killed or frozen, with the calls that they answer meanwhile: each call is on
 * record once, or the verdict names the process, and the call came after its last report.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { newToken } from "../../lib/storage/token.ts";
import { askVerdict, CALLED, CLEAR, UNKNOWN } from "../support/gate.ts";
import { inFolder } from "../support/media_cli.ts";
import { needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestHead, requestRaw } from "../support/raw_http.ts";
import {
  addPast,
  ApplicationProcess,
  callsIn,
  fallSilent,
  recordOnPostgres,
  recordOnSqlite,
  type RecordPlace,
  startRecorded,
} from "../support/recorded_processes.ts";
import { sideBySide } from "../support/side_by_side.ts";
import { until } from "../support/within.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

const METHODS = ["HEAD", "GET"] as const;

/** The processes that are killed under calls, of each kind and on each engine. */
const KILLS = 3;

/** A process, of either kind. */
interface Process {
  readonly pid: number;
  readonly port: number;
  stop(signal?: Deno.Signal): Promise<unknown>;
}

/** What the processes do. Each is ended after the scene. */
interface Scene extends RecordPlace {
  /** Starts a server. */
  readonly serve: () => Promise<Process>;
  /** Starts an application. */
  readonly run: () => Promise<Process>;
  /** Kills a process. */
  readonly kill: (process: Process) => Promise<void>;
  /** Keeps the ledger on SQLite from being written until the returned function is called. */
  readonly lock: () => () => unknown;
}

/** How a process is started: as a server, or as an application. */
type Start = "serve" | "run";

/**
 * What happens beside a process that goes on, which processes fall silent by it, and how many calls are
 * on record then.
 */
type Row = readonly [
  what: string,
  start: Start,
  happen: (scene: Scene) => Promise<readonly Process[]>,
  calls: number,
];

const CLIENT = "app killed";

async function call({ port }: Process, method: string, path = `/audio/${newToken()}`) {
  return (await requestRaw(port, method, path, { "User-Agent": "killed/1.0" })).status;
}

/** Makes two calls that are answered, and cannot be recorded yet. */
async function callUnrecorded(scene: Scene, process: Process): Promise<() => unknown> {
  const unlock = scene.lock();
  for (const method of METHODS) assertEquals(await call(process, method), 308);
  return unlock;
}

const ROWS: readonly Row[] = [
  [
    "killed while quiet",
    "serve",
    async ({ serve, kill }) => {
      const processes = [await serve(), await serve(), await serve()];
      for (const each of processes) await kill(each);
      return processes;
    },
    0,
  ],
  [
    "killed once calls are on record",
    "serve",
    async (scene) => {
      const server = await scene.serve();
      for (const method of METHODS) assertEquals(await call(server, method), 308);
      await until("the calls", async () => await callsIn(scene) === 2);
      await scene.kill(server);
      return [server];
    },
    2,
  ],
  [
    "killed before its calls are on record",
    "serve",
    async (scene) => {
      const server = await scene.serve();
      const unlock = await callUnrecorded(scene, server);
      await scene.kill(server);
      await unlock();
      return [server];
    },
    0,
  ],
  [
    "killed in a handler",
    "run",
    async ({ run, kill }) => {
      const application = await run();
      using connection = await Deno.connect({ hostname: "127.0.0.1", port: application.port });
      await connection.write(requestHead("GET", "/v1/slow"));
      for (let later = 0; later < 3; later++) { // by then, it has arrived
        assertEquals(await call(application, "GET", "/other"), 200);
      }
      await kill(application);
      return [application];
    },
    0,
  ],
  [
    "frozen before its calls are on record",
    "serve",
    async (scene) => {
      const server = await scene.serve();
      const unlock = await callUnrecorded(scene, server);
      Deno.kill(server.pid, "SIGSTOP");
      await unlock();
      return [server];
    },
    0,
  ],
  [
    "frozen, and running again",
    "serve",
    async (scene) => {
      const server = await scene.serve();
      const unlock = await callUnrecorded(scene, server);
      Deno.kill(server.pid, "SIGSTOP");
      await unlock();
      await fallSilent(scene, [server.pid]);
      Deno.kill(server.pid, "SIGCONT");
      await until("the calls", async () => await callsIn(scene) === 2);
      return [];
    },
    2,
  ],
];

needing("processes")(
  "a process that falls silent is named, whatever it did",
  () =>
    sideBySide(ROWS, ([, start, happen, calls]) =>
      onScene("SQLite", async (scene) => {
        await scene[start]();
        const silent = await happen(scene);
        await fallSilent(scene, silent.map(({ pid }) => pid));
        assertEquals(await callsIn(scene), calls);
        const all = await askVerdict(scene.url);
        assertEquals(all.status, calls > 0 ? CALLED : CLEAR, all.text);
        const ignored = calls > 0 ? ["--ignore", CLIENT] : [];
        const { status, text, json } = await askVerdict(scene.url, ...ignored);
        assertEquals(status, CLEAR, text);
        const named = json.gaps.map(({ kind, process }) => [kind, process?.pid]);
        assertEquals(named.toSorted(), silent.map(({ pid }) => ["silent", pid]).toSorted(), text);
        const one = /^Not on record: what process \d+ on \S+ answered after its last report at /m;
        const more = RegExp(`^Not on record: what ${silent.length} processes answered after `, "m");
        if (silent.length > 0) assertMatch(text, silent.length === 1 ? one : more);
      })),
);

type Engine = "SQLite" | "PostgreSQL";

needing("processes", ...POSTGRES)(
  "each call that a killed process answered is on record once, or after its last report",
  () =>
    sideBySide(
      [
        ["servers on SQLite", "serve", "SQLite"],
        ["applications on SQLite", "run", "SQLite"],
        ["servers on PostgreSQL", "serve", "PostgreSQL"],
        ["applications on PostgreSQL", "run", "PostgreSQL"],
      ] as const,
      ([, start, engine]) =>
        onScene(engine, async (scene) => {
          await scene[start]();
          const killed: Killed[] = [];
          for (let index = 0; index < KILLS; index++) {
            killed.push(await killUnderCalls(scene, start, index));
          }
          await fallSilent(scene, killed.map(({ pid }) => pid));
          await checkKilled(scene, killed);
        }),
    ),
);

/** A process that was killed under calls. */
interface Killed {
  readonly pid: number;
  readonly client: string;
  readonly sent: number;
  /** When each call was answered, in milliseconds since the epoch. */
  readonly answered: readonly number[];
}

async function killUnderCalls(
  scene: Scene,
  start: "serve" | "run",
  index: number,
): Promise<Killed> {
  const process = await scene[start]();
  const answered: number[] = [];
  let sent = 0;
  let isKilled = false;
  const caller = async () => {
    while (!isKilled) {
      const method = METHODS[sent++ % 2] as string;
      const path = start === "serve" ? `/audio/${newToken()}` : "/v1/a";
      const fields = { "User-Agent": `killed${index}/1.0` };
      try {
        await requestRaw(process.port, method, path, fields);
        answered.push(Date.now());
      } catch { // it was killed
        return;
      }
    }
  };
  const calling = [caller(), caller(), caller()];
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 3_000)); // any moment will do
  await scene.kill(process);
  isKilled = true;
  await Promise.all(calling);
  return { pid: process.pid, client: `app killed${index}`, sent, answered };
}

async function checkKilled(scene: Scene, killed: readonly Killed[]): Promise<void> {
  const { status, text, json } = await askVerdict(scene.url);
  const called = json.clients.length > 0;
  assertEquals(status, called ? CALLED : CLEAR, text);
  const starts = new Map(json.gaps.map(({ start, process }) => [process?.pid, Date.parse(start)]));
  assertEquals([...starts.keys()].toSorted(), killed.map(({ pid }) => pid).toSorted(), text);
  for (const { pid, client, sent, answered } of killed) {
    const reported = starts.get(pid) ?? 0;
    const recorded = json.clients.find((each) => each.client === client)?.calls ?? 0;
    const certain = answered.filter((at) => at < reported).length;
    const what = `${client}: ${certain} of ${answered.length} answered before its last report, ` +
      `${recorded} on record, ${sent} sent`;
    assert(certain <= recorded && recorded <= sent, what);
  }
  const ignored = killed.flatMap(({ client }) => ["--ignore", client]);
  const rest = await askVerdict(scene.url, ...ignored);
  assertEquals(rest.status, killed.length < 48 ? CLEAR : UNKNOWN, rest.text);
}

/** Has processes do something on a record, which has a past once the first one runs. */
async function onScene(
  engine: Engine,
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  await inFolder(async (folder) => {
    const place = engine === "SQLite" ? recordOnSqlite(folder) : await recordOnPostgres(postgres());
    await using all = new AsyncDisposableStack();
    const begin = async <Started extends Process>(starting: Promise<Started>): Promise<Started> => {
      const started = await starting;
      all.defer(async () => {
        await started.stop("SIGKILL");
      });
      const sessions = await place.execute("SELECT id FROM media_head_session");
      if (sessions.length === 1) await addPast(place);
      return started;
    };
    await play({
      ...place,
      serve: () => begin(startRecorded(folder, place)),
      run: () => begin(ApplicationProcess.start(place.url)),
      kill: async (process) => {
        await process.stop("SIGKILL");
      },
      lock() {
        const database = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`, { timeout: 60_000 });
        database.exec("BEGIN IMMEDIATE");
        return () => database.close();
      },
    });
  });
}
