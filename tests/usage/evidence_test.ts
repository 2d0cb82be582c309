/** What is on record after a heartbeat that an engine broke off, and what is synced to disk. */

import { assert, assertEquals } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { askVerdict, CALLED } from "../support/gate.ts";
import { inFolder, testsInFolder } from "../support/media_cli.ts";
import { needing, program, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import {
  addPast,
  callsIn,
  recordOnSqlite,
  REDIRECTING,
  startRecorded,
} from "../support/recorded_processes.ts";
import { Relay } from "../support/relay.ts";
import { MAIN } from "../support/routes.ts";
import { ServerProcess, storageIn, taskFlags } from "../support/server.ts";
import { until } from "../support/within.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

/** A server behind a relay to PostgreSQL. */
interface Scene {
  readonly relay: Relay;
  readonly query: (sql: string) => Promise<string[]>;
  readonly calls: () => Promise<number>;
  /** Makes calls by so many names that the next heartbeat has two parts: the first of 100. */
  readonly callByMany: () => Promise<void>;
  readonly ask: () => ReturnType<typeof askVerdict>;
}

async function onPostgres(body: (scene: Scene) => Promise<void>): Promise<void> {
  await inFolder(async (folder) => {
    const name = await postgres().createDatabase();
    const execute = (sql: string) => postgres().query(sql, name);
    await using relay = new Relay(postgres().port);
    const environment = { DATABASE_URL: postgres().urlOf(name, relay.port) };
    await using server = await startRecorded(folder, { environment });
    await addPast({ execute });
    await body({
      relay,
      query: execute,
      calls: () => callsIn({ execute }),
      ask: () => askVerdict(postgres().urlOf(name)),
      async callByMany() {
        const { onSent, onReceived } = relay;
        const { promise: called, resolve } = Promise.withResolvers<void>();
        relay.onSent = (text) => called.then(() => onSent(text));
        relay.onReceived = (text) => called.then(() => onReceived(text));
        for (let index = 0; index < 150; index++) {
          const fields = { "User-Agent": `App-${index}` };
          await requestRaw(server.port, "HEAD", `/audio/${newToken()}`, fields);
        }
        resolve();
      },
    });
  });
}

/** Returns what to do with each part of a heartbeat that is sent, in order; again, if it returns false. */
function onParts(...actions: (() => Promise<boolean | void>)[]) {
  return async (text: string) => {
    if (!text.includes("INSERT INTO media_head_usage")) return;
    const action = actions.shift();
    if (action !== undefined && await action() === false) actions.unshift(action);
  };
}

needing(...POSTGRES)(
  "a failover between two parts of a heartbeat loses the first, and the verdict names that",
  () =>
    onPostgres(async ({ relay, query, calls, callByMany, ask }) => {
      await callByMany();
      await until("the first calls", async () => await calls() === 150);
      const tables = ["usage", "day", "session", "ledger"].map((name) => `media_head_${name}`);
      const lostAt = { from: 0, to: 0 };
      relay.onSent = onParts(
        async () => { // the replica does not get what follows
          for (const table of tables) await query(`CREATE TABLE copy_${table} AS TABLE ${table}`);
          lostAt.from = Date.now();
        },
        async () => {
          if (await calls() === 150) return false; // the first part is sent once more
          relay.lead(1); // nothing listens there
          await query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity " +
              "WHERE datname = current_database() AND application_name = 'media-head'",
          );
          assertEquals(await calls(), 250, "the first part was committed");
          lostAt.to = Date.now();
          const copy = (table: string) =>
            `DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM copy_${table};`;
          await query(tables.map(copy).join(""));
          relay.lead(postgres().port);
        },
      );
      await callByMany();
      await until("the second part", async () => await calls() === 200);
      const { status, text, json: { gaps } } = await ask();
      assertEquals([status, gaps.map(({ kind }) => kind)], [CALLED, ["lost"]], text);
      const [{ start = "", end = "" } = {}] = gaps;
      assert(Date.parse(start) <= lostAt.from && lostAt.to <= Date.parse(end), text);
    }),
);

needing(...POSTGRES)(
  "a part whose COMMIT is not answered is recorded once",
  () =>
    onPostgres(async ({ relay, calls, callByMany, ask }) => {
      let isAdding = false;
      let broken = 0;
      relay.onSent = onParts(() => Promise.resolve(void (isAdding = true)));
      relay.onReceived = async (text) => {
        if (!isAdding || broken > 0 || !text.includes("COMMIT")) return;
        broken = await calls();
        relay.lead(1); // nothing listens there
        relay.lead(postgres().port);
      };
      await callByMany();
      await until("all parts", async () => await calls() >= 150);
      assert(broken > 0, "the first part was committed");
      const { text, json: { gaps, clients } } = await ask();
      assertEquals(gaps, [], text);
      assertEquals(clients.length, 150);
      assert(clients.every(({ calls }) => calls === 1), "none is recorded twice");
    }),
);

const test = testsInFolder("processes", program("strace"));

test("a record on SQLite is not synced to disk, but a hold is", async (folder) => {
  const trace = `${folder}/trace`;
  const runner = [..."strace -D -f -y -qq -e trace=fsync,fdatasync -o".split(" "), trace];
  const syncs = async () => {
    const lines = (await Deno.readTextFile(trace)).split("\n");
    return lines.filter((line) => line.includes("-ledger-wal>")).length;
  };
  await using server = await ServerProcess.start(REDIRECTING, folder, { runner });
  const place = recordOnSqlite(folder);
  const registered = await syncs(); // SQLite syncs a log that it begins
  for (let calls = 0; calls < 20; calls++) {
    await requestRaw(server.port, "HEAD", `/audio/${newToken()}`);
  }
  await until("the calls", async () => await callsIn(place) === 20);
  assertEquals(await syncs(), registered);

  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  const words = ["media", "hold", "--until", tomorrow, "--because", "a test"];
  const command = [Deno.execPath(), "run", ...taskFlags(MAIN, folder), MAIN, ...words];
  const { success } = await new Deno.Command("strace", {
    args: [...runner.slice(1, -1), `${trace}-of-hold`, "--", ...command],
    env: { ...storageIn(folder) },
  }).output();
  assert(success);
  const ofHold = await Deno.readTextFile(`${trace}-of-hold`);
  assert(ofHold.includes("-ledger-wal>"), "the hold");
});
