/**
 * What the gate says for every way in which a server can serve: "clear" only where every call is in
 * the ledger.
 */

import { assertEquals, assertMatch } from "@std/assert";
import type { Heartbeat } from "../../lib/storage/ledger/ledger.ts";
import { newToken } from "../../lib/storage/token.ts";
import { openEngine } from "../../lib/storage/database/postgres/engine.ts";
import { openIn } from "../support/local_storage.ts";
import { type CommandResult, inFolder, media } from "../support/media_cli.ts";
import { type Condition, isFile, LINUX, needing, program, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";
import { DAY, POLICIES } from "../support/usage_report.ts";

const [CLEAR, CALLED, UNKNOWN] = [0, 1, 3];

/** What a way to serve works with. */
interface Ground {
  readonly folder: string;
  readonly ledger: string;
  readonly start: (environment?: Record<string, string>) => Promise<ServerProcess>;
}

/** Serves, and returns the servers that still run. */
type Way = (ground: Ground) => Promise<readonly ServerProcess[]>;

/** The library that gives a process another clock, from Debian's package `libfaketime`. */
const FAKETIME = `/usr/lib/${Deno.build.arch}-linux-gnu/faketime/libfaketime.so.1`;
const faketime: Condition = { what: "libfaketime", isMet: () => isFile(FAKETIME) };
const TWO_YEARS_AHEAD = {
  LD_PRELOAD: FAKETIME,
  FAKETIME: "+2y",
  FAKETIME_DONT_FAKE_MONOTONIC: "1",
};

const test = needing("processes", LINUX, program("python3"));

async function call(server: ServerProcess): Promise<void> {
  await requestRaw(server.port, "HEAD", `/audio/${newToken()}`);
}

/** Waits until a server has reported once more. */
async function report(ledger: string, times = 1): Promise<void> {
  const last = () => run("python3", ["-c", LAST, ledger]);
  for (let time = 0; time < times; time++) {
    const before = await last();
    for (let waits = 0; await last() === before; waits++) {
      if (waits > 150) throw new Error("No server reports");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

const LAST = `
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=10)
print(database.execute("SELECT max(until) FROM heartbeat").fetchone()[0])`;

/** Copies a database into another, which may be in use. */
const COPY = `
import sqlite3, sys
source, target = [sqlite3.connect(path, timeout=10) for path in sys.argv[1:]]
source.backup(target)`;

async function run(name: string, args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(name, { args }).output();
  if (!success) throw new Error(`${name} failed:\n${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout);
}

/** After the removal every valid token counts as a call, though nothing is published. */
const REMOVED = { DEPRECATED_AT: "1999-01-01", SUNSET_AT: "2000-01-01" };

const WAYS: readonly (readonly [what: string, way: Way, verdict: number, said?: RegExp])[] = [
  ["it runs", async ({ start }) => [await start()], CLEAR, /^Waiting for the next report of /],
  [
    "it was killed at once after a call",
    async ({ start }) => {
      const server = await start();
      await call(server);
      await server.stop("SIGKILL");
      return [];
    },
    UNKNOWN,
    /no heartbeat from server/,
  ],
  ["it was called, and stopped", async ({ start }) => {
    const server = await start();
    await call(server);
    await server.stop();
    return [];
  }, CALLED],
  ["another could not listen", async ({ start }) => {
    const server = await start();
    const taken = start({ PORT: String(server.port) });
    assertMatch(String(await taken.catch((error) => error)), /address already in use/);
    return [server];
  }, CLEAR],
  [
    "its ledger was removed",
    async ({ start, ledger }) => {
      const server = await start();
      await report(ledger);
      await call(server);
      for (const suffix of ["", "-wal", "-shm"]) await Deno.remove(ledger + suffix);
      return [server];
    },
    UNKNOWN,
    /./,
  ],
  [
    "its ledger was restored from a backup",
    async ({ start, ledger, folder }) => {
      const server = await start();
      await report(ledger);
      await run("python3", ["-c", COPY, ledger, `${folder}/backup`]);
      await call(server);
      await report(ledger, 2);
      await run("python3", ["-c", COPY, `${folder}/backup`, ledger]);
      await report(ledger, 1);
      return [server];
    },
    UNKNOWN,
    /no heartbeat from server .*, which is back/,
  ],
];

for (const [what, way, verdict, said = /^/] of WAYS) {
  test(`the gate on a server: ${what}`, () =>
    inFolder(async (folder) => {
      const ledger = `${folder}/catalogue.sqlite-ledger`;
      const now = Date.now();
      const before = { server: "a", policies: POLICIES, from: now - 3 * DAY, until: now } as const;
      const storage = await openIn(folder);
      await storage.ledger.recordHeartbeat({ ...before, end: "stopped" });
      await storage.close();
      const start = (environment = {}) =>
        ServerProcess.start({ ...REMOVED, ...environment }, folder);
      const servers = await way({ folder, ledger, start });
      try {
        check(await media(folder, ["usage", "--gate", "1"]), verdict, said);
      } finally {
        for (const server of servers) await server.stop();
      }
    }));
}

function check({ code, stdout, stderr }: CommandResult, verdict: number, said: RegExp): void {
  assertEquals(code, verdict, `${stdout}\n${stderr}`);
  assertMatch(`${stderr}${stdout}`, said);
}

const dumps: Condition[] = [program("pg_dump"), program("pg_restore")];
const postgres = shared([...POSTGRES, faketime, ...dumps], () => PostgresServer.start());

needing(...POSTGRES, faketime, ...dumps)(
  "the gate on servers of one PostgreSQL: a clock is off, and the ledger is restored",
  () =>
    inFolder(async (folder) => {
      const DATABASE_URL = postgres().urlOf(await postgres().createDatabase());
      const now = Date.now();
      const { ledger, close } = await openEngine(DATABASE_URL);
      await ledger.recordHeartbeat({
        server: "a",
        policies: POLICIES,
        from: now - 3 * DAY,
        until: now,
        end: "stopped",
      });
      const gate = () => media(folder, ["usage", "--gate", "1"], { DATABASE_URL });
      const start = (clock: Record<string, string> = {}) =>
        ServerProcess.start({ ...REMOVED, DATABASE_URL, ...clock }, folder);
      const server = await start();
      check(await gate(), CLEAR, /^Waiting for/);

      const ahead = await start(TWO_YEARS_AHEAD);
      await call(ahead);
      check(await gate(), CALLED, /Still called/);
      const { log } = await ahead.stop();
      const fault = log.find(({ event }) => event === "error");
      assertMatch(String(fault?.["cause"]), /it is 20.* in the database, but 20.* here/);
      const usage = new URL(DATABASE_URL).pathname.slice(1);
      await postgres().query("TRUNCATE usage", usage); // as if it had not been called
      check(await gate(), UNKNOWN, /no heartbeat from server/);
      const gone = (await ledger.heartbeats()).findLast(({ end }) => end === undefined);
      await ledger.recordHeartbeat({ ...gone as Heartbeat, end: "gone" });
      check(await gate(), CLEAR, /^Waiting for/);

      const [dump, url] = [`${folder}/media.dump`, DATABASE_URL];
      await run("pg_dump", ["--format=custom", `--file=${dump}`, url]);
      await call(server);
      check(await gate(), CALLED, /Still called/);
      await run("pg_restore", ["--clean", "--no-owner", "--dbname", url, dump]);
      check(await gate(), UNKNOWN, /, which is back/);
      await server.stop();
      await close();
    }),
);

test("a gate that cannot read the ledger is unknown", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/catalogue.sqlite`, "no database, but text".repeat(99));
    check(await media(folder, ["usage", "--gate", "1"]), UNKNOWN, /^media: sqlite: /);
    assertEquals((await media(folder, ["usage"])).code, 1);
  }));
