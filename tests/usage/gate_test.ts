/**
 * What the gate says for every way in which servers can serve: "clear" only where every call is in
 * the ledger, or where the operator says so.
 */

import { assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { requireDatabaseUrl } from "../../lib/database/place.ts";
import { DENO_RUNTIME } from "../../lib/database/sqlite/deno_runtime.ts";
import { ExitError } from "../../lib/errors/exit_status.ts";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { newToken } from "../../lib/storage/token.ts";
import { openLedger } from "../../lib/usage/record/open_ledger.ts";
import { usageCommand } from "../../lib/usage/usage_command.ts";
import { type CommandResult, inFolder, media } from "../support/media_cli.ts";
import { fromRoot } from "../support/paths.ts";
import { type Condition, needing, program, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";
import { sideBySide } from "../support/side_by_side.ts";
import { DAY, reasonsIn, SOURCE } from "../support/usage_report.ts";
import { until } from "../support/within.ts";

const [CLEAR, CALLED, UNKNOWN] = [0, 1, 3];

/**
 * After the removal every valid token counts as a call, though nothing is published. A redirect serves
 * its client, so the ledger has to know of it first.
 */
const REMOVED = {
  DEPRECATED_AT: "1999-01-01",
  SUNSET_AT: "2000-01-01",
  AFTER_SUNSET: "redirect",
};

const dumps: Condition[] = [program("pg_dump"), program("pg_restore")];
const postgres = shared([...POSTGRES, ...dumps], () => PostgresServer.start());

/** Copies a database into another, which may be in use. */
const COPY = `
import sqlite3, sys
source, target = [sqlite3.connect(path, timeout=10) for path in sys.argv[1:]]
source.backup(target)`;

async function run(name: string, args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(name, { args }).output();
  if (!success) throw new Error(`${name} failed:\n${new TextDecoder().decode(stderr)}`);
}

/** A ledger on one of the engines, and what an operator can do to it. */
interface Place {
  /** The URL of the ledger. */
  readonly url: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Runs a statement, and returns its rows as text. */
  readonly execute: (sql: string) => Promise<string>;
  readonly save: () => Promise<void>;
  readonly restore: () => Promise<void>;
}

function onSqlite(folder: string): Place {
  const [ledger, copy] = [`${folder}/catalogue.sqlite-ledger`, `${folder}/copy`];
  return {
    url: `sqlite:${ledger}`,
    environment: {},
    execute(sql) {
      using database = new DatabaseSync(ledger, { timeout: 5_000 });
      return Promise.resolve(JSON.stringify(database.prepare(sql).all()));
    },
    save: () => run("python3", ["-c", COPY, ledger, copy]),
    restore: () => run("python3", ["-c", COPY, copy, ledger]),
  };
}

async function onPostgres(folder: string): Promise<Place> {
  const name = await postgres().createDatabase();
  const [url, copy] = [postgres().urlOf(name), `${folder}/copy`];
  return {
    url,
    environment: { DATABASE_URL: url },
    execute: async (sql) => String(await postgres().query(sql, name)),
    save: () => run("pg_dump", ["--format=custom", `--file=${copy}`, url]),
    restore: () => run("pg_restore", ["--clean", "--no-owner", "--dbname", url, copy]),
  };
}

/** The record of a server that ran for three days, like the first, and stopped when it started. */
const BEFORE = [
  `INSERT INTO media_head_session
     (id, policies, pid, process_started, began, reported, timeline, sequence, ended,
     may_serve_unrecorded, retain_days)
   SELECT 'before', policies, pid, process_started, began - ${3 * DAY}, began, timeline, 1,
     'stopped', 0, 400 FROM media_head_session`,
  `UPDATE media_head_ledger SET started = started - ${3 * DAY}`,
];

/** What servers do. */
interface Scene extends Place {
  readonly start: typeof ServerProcess.start;
  /** Lets minutes pass. */
  readonly pass: (minutes: number) => unknown;
  /** Waits for the next heartbeat of a server. */
  readonly heartbeat: () => Promise<void>;
  /** Runs the command with these arguments. */
  readonly usage: (...args: string[]) => Promise<CommandResult>;
}

/**
 * What happens, the verdicts without and with `--trust-stops`, and the doubts that the last one has or
 * trusts, each by its reason and route.
 */
type Event = readonly [
  what: string,
  happen: (scene: Scene) => Promise<readonly ServerProcess[]>,
  verdicts: readonly [number, number],
  reasons: readonly string[],
];

/** Sends a call that is redirected, unless the ledger does not take it. Returns the status. */
async function call(server: ServerProcess, route = "audio", userAgent?: string): Promise<number> {
  const fields = userAgent === undefined ? {} : { "User-Agent": userAgent };
  return (await requestRaw(server.port, "HEAD", `/${route}/${newToken()}`, fields)).status;
}

/** The name of Podcasts in Chinese, as that app sends it: percent-encoded, or in plain UTF-8. */
const CHINESE = [
  "%E6%92%AD%E5%AE%A2/1 CFNetwork/1410",
  "\xe6\x92\xad\xe5\xae\xa2/1 CFNetwork/1410",
];

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
    [CLEAR, CLEAR],
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
    [CLEAR, CLEAR],
    [],
  ],
  [
    "a server that is killed while nobody calls",
    async ({ start }) => {
      const [server, other] = [await start(), await start()];
      await server.stop("SIGKILL");
      return [other];
    },
    [CLEAR, CLEAR],
    [],
  ],
  [
    "a server that is killed before it records a call",
    async ({ start, heartbeat, execute }) => {
      const [other, server] = [await start(), await start()];
      await heartbeat(); // the next one is due in five seconds
      assertEquals(await call(server), 308);
      await server.stop("SIGKILL");
      await execute( // two minutes pass
        `UPDATE media_head_session SET began = began - 120000, reported = reported - 120000
         WHERE pid = ${server.pid}`,
      );
      return [other];
    },
    [UNKNOWN, CLEAR],
    ["intent /audio/:token"],
  ],
  [
    "a call that the ledger does not take, and a power cut",
    async ({ start, pass, url }) => {
      const server = await start();
      {
        using ledger = new DatabaseSync(url.replace("sqlite:", ""), { timeout: 5_000 });
        ledger.exec("BEGIN IMMEDIATE");
        assertEquals(await call(server), 503);
        await server.stop("SIGKILL");
      }
      await pass(10);
      return [await start()];
    },
    [UNKNOWN, CLEAR],
    ["stop"],
  ],
  [
    "a power cut after a call that is on record",
    async ({ start, pass, execute, usage }) => {
      const server = await start();
      assertEquals(await call(server, "audio", "Rare/1"), 308);
      const isRecorded = async () =>
        (await execute("SELECT client FROM media_head_usage")).includes("Rare");
      await until("the call to be on record", isRecorded);
      await server.stop("SIGKILL");
      await pass(10);
      const { stdout } = await usage("--gate", "1");
      assertMatch(stdout, /\n {2}app Rare, 1 call on 1 day, .*, release 1\n/);
      return [await start()];
    },
    [CALLED, CALLED],
    [],
  ],
  [
    "a power cut before a call is on record, and a stop",
    async ({ start, pass, heartbeat }) => {
      const server = await start();
      await heartbeat();
      assertEquals(await call(server, "video"), 308);
      await server.stop("SIGKILL");
      await pass(10);
      return [await start()];
    },
    [UNKNOWN, CLEAR],
    ["stop", "intent /video/:token"],
  ],
  [
    "scaling to zero",
    async ({ start, pass }) => {
      await (await start()).stop();
      await pass(10);
      return [];
    },
    [UNKNOWN, UNKNOWN],
    ["no server"],
  ],
  [
    "scaling to zero after a call",
    async ({ start, pass }) => {
      const server = await start();
      await call(server);
      await server.stop();
      await pass(10);
      return [];
    },
    [CALLED, CALLED],
    [],
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
    [UNKNOWN, CLEAR],
    ["stop"],
  ], // only the operator can know
  [
    "a backup restored, which lacks a call",
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
    [UNKNOWN, UNKNOWN],
    ["started"],
  ],
  [
    "calls by a client whose name is Chinese",
    async ({ start, heartbeat, usage }) => {
      const server = await start();
      for (const userAgent of CHINESE) await call(server, "audio", userAgent);
      await heartbeat(); // there would be none if the name were refused
      assertMatch((await usage("--gate", "1")).stdout, /\n {2}app 播客, 2 calls /);
      return [server];
    },
    [CALLED, CALLED],
    [],
  ],
  [
    "a hot backup restored as documented, which lacks a call",
    async ({ start, pass, save, restore, usage }) => {
      let server = await start();
      await save();
      await server.stop();
      server = await start();
      await call(server);
      await server.stop();
      await restore();
      await pass(2);
      assertEquals((await usage("--restart")).code, 0);
      return [await start()];
    },
    [UNKNOWN, UNKNOWN],
    ["started"],
  ],
  [
    "a database's clock that was ahead",
    async ({ start, heartbeat, execute, usage }) => {
      const server = await start();
      await heartbeat();
      await execute(
        `UPDATE media_head_session SET reported = reported + ${3 * DAY} WHERE ended IS NULL`,
      );
      const { code, stdout } = await usage("--gate", "1", "--trust-stops", "--json");
      assertEquals([code, reasonsIn(stdout)], [UNKNOWN, ["ahead"]], stdout);
      assertEquals((await usage("--restart")).code, 0);
      return [server];
    },
    [UNKNOWN, UNKNOWN],
    ["started"],
  ],
  [
    "a route marked later, with a call before",
    async ({ start }) => {
      const flags = ["--quiet", "--no-prompt", "-A", `--config=${fromRoot("deno.json")}`];
      const main = fromRoot("tests/support/audio_main.ts");
      const before = await start({}, undefined, { main, flags });
      await call(before, "video");
      await before.stop();
      const after = await start();
      await after.stop();
      return [];
    },
    [UNKNOWN, UNKNOWN],
    ["not counted /video/:token"],
  ],
];

/** The scenes that concern the engine: a restore under a running server, and crashes. */
const OF_ENGINE = [
  /^a backup restored, which lacks a call$/,
  /killed/,
  /^a power cut (?:after|before)/,
];

for (const [engine, open] of Object.entries({ SQLite: onSqlite, PostgreSQL: onPostgres })) {
  const needs = engine === "SQLite" ? [program("python3")] : [...POSTGRES, ...dumps];
  const scenes = EVENTS.filter(([what]) =>
    engine === "SQLite" || OF_ENGINE.some((each) => each.test(what))
  );
  needing("processes", ...needs)(
    `the gate on ${engine} is clear only where every call is on record, or by the operator's word`,
    () => sideBySide(scenes, (event) => inFolder((folder) => play(event, open, folder))),
  );
}

/** Runs the command on a ledger, in this process. */
async function usage(url: string, ...args: string[]): Promise<CommandResult> {
  const place = requireDatabaseUrl(url, "url");
  const { ledger, close } = await openLedger(place, { runtime: () => DENO_RUNTIME });
  let [stdout, stderr] = ["", ""];
  const command = usageCommand({
    print: (text) => Promise.resolve(void (stdout += `${text}\n`)),
    printError: (text) => stderr += `media: ${text}\n`,
    withSource: (_, action) => action({ ...SOURCE, ledger }),
  });
  try {
    await command.parseAsync(args, { from: "user" });
    return { code: 0, stdout, stderr };
  } catch (error) {
    if (error instanceof ExitError) return { code: error.status, stdout, stderr };
    if (error instanceof RefusedError) return { code: 1, stdout, stderr: error.message };
    throw error;
  } finally {
    await close();
  }
}

/** Plays a scene, and asks the gate what it says. */
async function play(
  [, happen, verdicts, reasons]: Event,
  open: (folder: string) => Place | Promise<Place>,
  folder: string,
): Promise<void> {
  const place = await open(folder);
  const back = (column: string, minutes: number) => `${column} = ${column} - ${minutes}*60000`;
  const last = () => place.execute("SELECT max(reported) FROM media_head_session");
  let hasBegun = false;
  const servers = await happen({
    ...place,
    async start(environment, _folder, options) {
      const all = { ...REMOVED, ...place.environment, ...environment };
      const server = await ServerProcess.start(all, folder, options);
      for (const sql of hasBegun ? [] : BEFORE) await place.execute(sql);
      hasBegun = true;
      return server;
    },
    async pass(minutes) {
      const backAll = (...columns: string[]) =>
        columns.map((column) => back(column, minutes)).join(", ");
      await place.execute(`UPDATE media_head_session SET ${backAll("began", "reported")}`);
      await place.execute(`UPDATE media_head_intent SET ${backAll("since", "until", "settled")}`);
      await place.execute(`UPDATE media_head_ledger SET ${back("started", minutes)}`);
    },
    async heartbeat() {
      const before = await last();
      await until("a server's heartbeat", async () => await last() !== before);
    },
    usage: (...args) => usage(place.url, ...args),
  });
  try {
    const [plain, trusting] = await Promise.all([
      usage(place.url, "--gate", "1"),
      usage(place.url, "--gate", "1", "--trust-stops", "--json"),
    ]);
    check(plain, verdicts[0], /./);
    check(trusting, verdicts[1], /^\{/);
    const { doubts = [], trusted = [] } = JSON.parse(trusting.stdout);
    const found = [...doubts, ...trusted].map(({ reason, route = "" }: Record<string, string>) =>
      `${reason} ${route}`.trim()
    );
    assertEquals(found, reasons, plain.stdout);
  } finally {
    for (const server of servers) {
      await server.stop();
    }
  }
}

function check({ code, stdout, stderr }: CommandResult, verdict: number, said: RegExp): void {
  assertEquals(code, verdict, `${stdout}\n${stderr}`);
  assertMatch(`${stderr}${stdout}`, said);
}

needing("processes")(
  "a gate that cannot read the ledger is unknown",
  () =>
    inFolder(async (folder) => {
      await Deno.writeTextFile(`${folder}/catalogue.sqlite`, "no database, but text".repeat(99));
      check(await media(folder, ["usage", "--gate", "1"]), UNKNOWN, /^media: sqlite: /);
      assertEquals((await media(folder, ["usage"])).code, 1);
    }),
);
