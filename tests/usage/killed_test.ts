/**
 * Processes that are killed or frozen, with the calls that they answered or let in, and what the gate
 * says then: a process that fell silent is a doubt only if it may have been answering calls.
 */

import { assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { newToken } from "../../lib/storage/token.ts";
import { inFolder } from "../support/media_cli.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestHead, requestRaw } from "../support/raw_http.ts";
import {
  addPast,
  ApplicationProcess,
  askVerdict,
  CLEAR,
  passSilently,
  recordOnPostgres,
  recordOnSqlite,
  type RecordPlace,
  REDIRECTING,
  startRecorded,
  UNKNOWN,
} from "../support/recorded_processes.ts";
import { sideBySide } from "../support/side_by_side.ts";
import { until } from "../support/within.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

const METHODS = ["HEAD", "GET"] as const;

/** A process, of either kind. */
interface Process {
  readonly pid: number;
  readonly port: number;
  stop(signal?: Deno.Signal): Promise<unknown>;
}

/** What the processes do. Each is ended after the scene. */
interface Scene extends RecordPlace {
  /** Starts a server. */
  readonly serve: (
    settings?: Record<string, string>,
    options?: Parameters<typeof startRecorded>[3],
  ) => Promise<Process>;
  /** Starts an application. */
  readonly run: () => Promise<Process>;
  /** Kills a process. */
  readonly kill: (process: Process) => Promise<void>;
  /** Suspends a process. */
  readonly freeze: (process: Process) => void;
  /** Lets ten minutes pass on record, in which the killed and the frozen processes are silent. */
  readonly pass: () => Promise<void>;
  /** Waits for two heartbeats of a process, so that a whole flush was under way. */
  readonly twoHeartbeats: (process: Process) => Promise<void>;
  /** Keeps the ledger from being written until the returned function is called. */
  readonly lock: () => Promise<() => unknown>;
}

/**
 * What happens; the verdict without a word, and with `--trust-stops`; the doubts in the JSON, each by
 * its reason and route; and what the text says.
 */
type Row = readonly [
  what: string,
  happen: (scene: Scene) => Promise<void>,
  verdicts: readonly [number, number],
  doubts: readonly string[],
  said: RegExp,
];

const AUDIO = "intent /audio/:token";

/** What is said of processes that ended while they answered calls. */
const ENDED = new RegExp(
  "^Unknown: [^]*answered calls to /audio/:token[^]* from 20\\S+ to 20\\S+" +
    "[^]*\\n/audio/:token: unknown, [^\\n]*(?:\\n {2}[^\\n]*)*\\n/video/:token: clear\\n",
);
const ALL_CLEAR = /^Clear: [^\n]*\n\/audio\/:token: clear\n\/video\/:token: clear\n/;

async function call(process: Process, method: string, path = "/audio"): Promise<number> {
  return (await requestRaw(process.port, method, `${path}/${newToken()}`)).status;
}

/** Sends a request, and does not wait for its response. */
async function ask({ port }: Process, method: string, path: string): Promise<Deno.Conn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(requestHead(method, path));
  return connection;
}

const intentsOf = ({ execute }: RecordPlace, { pid }: Process) =>
  execute(
    `SELECT route, CASE WHEN settled IS NULL THEN 'open' ELSE 'settled' END FROM media_head_intent
     WHERE session IN (SELECT id FROM media_head_session WHERE pid = ${pid}) ORDER BY route`,
  );

const ROWS: readonly Row[] = [
  [
    "killed while quiet, and started again at once",
    async ({ serve, kill }) => {
      for (let times = 0; times < 3; times++) await kill(await serve());
      await serve();
    },
    [CLEAR, CLEAR],
    [],
    ALL_CLEAR,
  ],
  [
    "killed while quiet, beside another",
    async ({ serve, kill, pass }) => {
      const [one] = [await serve(), await serve()];
      await kill(one);
      await pass();
    },
    [CLEAR, CLEAR],
    [],
    ALL_CLEAR,
  ],
  [
    "killed between head and flush",
    async (scene) => {
      await scene.serve();
      for (const method of METHODS) {
        const server = await scene.serve();
        assertEquals(await call(server, method), 308);
        await scene.kill(server);
        assertEquals(await intentsOf(scene, server), ["/audio/:token|open"]);
      }
      assertEquals(await scene.execute("SELECT route FROM media_head_usage"), []);
      await scene.pass();
    },
    [UNKNOWN, CLEAR],
    [AUDIO, AUDIO],
    ENDED,
  ],
  [
    "killed after the flush, but before it was quiet for ten minutes",
    async (scene) => {
      await scene.serve();
      const server = await scene.serve();
      for (const method of METHODS) assertEquals(await call(server, method), 308);
      await scene.twoHeartbeats(server);
      assertEquals(await intentsOf(scene, server), ["/audio/:token|settled"]);
      await scene.kill(server);
      await scene.pass();
    },
    [UNKNOWN, CLEAR],
    [AUDIO],
    ENDED,
  ],
  [
    "killed after it was quiet for ten minutes",
    async (scene) => {
      await scene.serve();
      const server = await scene.serve(REDIRECTING, {
        main: fromRoot("tests/support/hurried_main.ts"),
        flags: ["--quiet", "--no-prompt", "--allow-all", `--config=${fromRoot("deno.json")}`],
      });
      for (const method of METHODS) assertEquals(await call(server, method), 308);
      assertEquals((await intentsOf(scene, server)).length, 1);
      await until("the intent's end", async () => (await intentsOf(scene, server)).length === 0);
      await scene.kill(server);
      await scene.pass();
    },
    [CLEAR, CLEAR],
    [],
    /^Clear: /,
  ],
  [
    "killed between a call's arrival and its head, before the ledger took the intent",
    async (scene) => {
      await scene.serve();
      for (const method of METHODS) {
        const server = await scene.serve();
        const unlock = await scene.lock();
        using _connection = await ask(server, method, `/audio/${newToken()}`);
        // What came earlier has arrived once later ones are answered.
        for (let later = 0; later < 3; later++) {
          assertEquals((await requestRaw(server.port, "HEAD", "/deprecation")).status, 200);
        }
        await scene.kill(server);
        await unlock();
        assertEquals(await intentsOf(scene, server), []);
      }
      await scene.pass();
    },
    [CLEAR, CLEAR],
    [],
    ALL_CLEAR,
  ],
  [
    "killed between a call's arrival and its head, in a handler that outlasts a flush",
    async (scene) => {
      await scene.run();
      for (const method of METHODS) {
        const application = await scene.run();
        using _connection = await ask(application, method, "/v1/slow");
        await until("the intent", async () => (await intentsOf(scene, application)).length === 1);
        assertEquals(await call(application, method, "/v2"), 200);
        await scene.twoHeartbeats(application);
        assertEquals(
          await intentsOf(scene, application),
          ["/v1|open", "/v2|settled"],
        );
        await scene.kill(application);
      }
      assertEquals(await scene.execute("SELECT DISTINCT route FROM media_head_usage"), ["/v2"]);
      await scene.pass();
    },
    [UNKNOWN, CLEAR],
    ["intent /v1", "intent /v2", "intent /v1", "intent /v2"],
    /answered calls to \/v1[^]* from 20\S+ to 20\S+[^]*\/v1: unknown, /,
  ],
  [
    "killed after it refused a call with 410",
    async (scene) => {
      await scene.serve();
      const server = await scene.serve({ ...REDIRECTING, AFTER_SUNSET: "gone" });
      for (const method of METHODS) assertEquals(await call(server, method), 410);
      await scene.kill(server);
      assertEquals(await scene.execute("SELECT id FROM media_head_intent"), []);
      await scene.pass();
    },
    [CLEAR, CLEAR],
    [],
    ALL_CLEAR,
  ],
  [
    "frozen while quiet",
    async ({ serve, freeze, pass }) => {
      const [one] = [await serve(), await serve()];
      freeze(one);
      await pass();
    },
    [CLEAR, CLEAR],
    [],
    ALL_CLEAR,
  ],
  [
    "frozen between head and flush",
    async (scene) => {
      const [one] = [await scene.serve(), await scene.serve()];
      for (const method of METHODS) assertEquals(await call(one, method), 308);
      scene.freeze(one);
      await scene.pass();
    },
    [UNKNOWN, CLEAR],
    [AUDIO],
    ENDED,
  ],
  [
    "frozen between head and flush, and running again",
    async (scene) => {
      const [one] = [await scene.serve(), await scene.serve()];
      for (const method of METHODS) assertEquals(await call(one, method), 308);
      scene.freeze(one);
      await scene.pass();
      Deno.kill(one.pid, "SIGCONT");
      const counted = "SELECT method, calls FROM media_head_usage ORDER BY method";
      await until(
        "its calls to be on record",
        async () => (await scene.execute(counted)).join() === "GET|1,HEAD|1",
      );
      for (const method of METHODS) assertEquals(await call(one, method), 308);
      await scene.twoHeartbeats(one);
      assertEquals(await scene.execute(counted), ["GET|2", "HEAD|2"]);
    },
    [CLEAR, CLEAR],
    [],
    /^Clear: /,
  ],
];

for (const engine of ["SQLite", "PostgreSQL"] as const) {
  needing("processes", ...engine === "PostgreSQL" ? POSTGRES : [])(
    `on ${engine}, a process that falls silent is a doubt only if it may have been answering calls`,
    () => sideBySide(ROWS, (row) => inFolder((folder) => play(row, engine, folder))),
  );
}

/** Plays a scene, and asks the gate what it says. */
async function play(
  [, happen, verdicts, doubts, said]: Row,
  engine: "SQLite" | "PostgreSQL",
  folder: string,
): Promise<void> {
  const place = engine === "SQLite" ? recordOnSqlite(folder) : await recordOnPostgres(postgres());
  await using all = new AsyncDisposableStack();
  const silent = new Set<number>();
  const begin = async <Started extends Process>(starting: Promise<Started>): Promise<Started> => {
    const started = await starting;
    all.defer(async () => {
      await started.stop("SIGKILL");
    });
    if ((await place.execute("SELECT id FROM media_head_session")).length === 1) {
      await addPast(place);
    }
    return started;
  };
  await happen({
    ...place,
    serve: (settings, options) => begin(startRecorded(folder, place, settings, options)),
    run: () => begin(ApplicationProcess.start(place.url)),
    kill: async (process) => {
      await process.stop("SIGKILL");
      silent.add(process.pid);
    },
    freeze(process) {
      Deno.kill(process.pid, "SIGSTOP");
      silent.add(process.pid);
    },
    pass: () => passSilently(place, 10, [...silent]),
    async twoHeartbeats({ pid }) {
      const last = () =>
        place.execute(`SELECT max(reported) FROM media_head_session WHERE pid = ${pid}`);
      for (let seen = 0; seen < 2; seen++) {
        const [before] = await last();
        await until("a process's heartbeat", async () => (await last())[0] !== before);
      }
    },
    async lock() {
      if (engine === "PostgreSQL") {
        const name = new URL(place.url).pathname.slice(1);
        return await postgres().keep(name, "LOCK TABLE media_head_intent IN EXCLUSIVE MODE");
      }
      const database = new DatabaseSync(place.url.replace("sqlite:", ""), { timeout: 5_000 });
      database.exec("BEGIN IMMEDIATE");
      return () => database.close();
    },
  });
  const words = ["--at-most", "9"]; // what is on record does not matter here
  const [plain, json, trusting] = await Promise.all([
    askVerdict(place.url, ...words),
    askVerdict(place.url, ...words, "--json"),
    askVerdict(place.url, ...words, "--trust-stops"),
  ]);
  assertEquals([plain.status, json.status, trusting.status], [
    ...[verdicts[0], verdicts[0], verdicts[1]],
  ], plain.text);
  assertMatch(plain.text, said);
  const { verdict, doubts: told = [] } = JSON.parse(json.text);
  assertEquals(verdict, verdicts[0] === CLEAR ? "clear" : "unknown");
  const reasons = told.map(({ reason, route }: Record<string, string>) => `${reason} ${route}`);
  assertEquals(reasons.toSorted(), doubts.toSorted());
}
