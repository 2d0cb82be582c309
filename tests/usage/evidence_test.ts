/** What the ledger promises while its database, the clocks and the machine fail. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { stub } from "@std/testing/mock";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { newToken } from "../../lib/storage/token.ts";
import { Recorder } from "../../lib/usage/record/recorder.ts";
import { ANSWER, countOne, PROCESS } from "../support/counted_call.ts";
import { inFolder, mediaHere } from "../support/media_cli.ts";
import { needing, program, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { openEngine } from "../support/postgres_engine.ts";
import { requestRaw } from "../support/raw_http.ts";
import { Relay } from "../support/relay.ts";
import { ServerProcess } from "../support/server.ts";
import { until } from "../support/within.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

/** After the removal every valid token counts as a call, though nothing is published. */
const REMOVED = { DEPRECATED_AT: "1999-01-01", SUNSET_AT: "2000-01-01" };

/** Calls with so many names that their rows need two parts of a flush, unless they are new. */
async function callByMany({ port }: ServerProcess): Promise<void> {
  for (let index = 0; index < 150; index++) {
    await requestRaw(port, "HEAD", `/audio/${newToken()}`, { "User-Agent": `App-${index}` });
  }
}

/** A server behind a relay to PostgreSQL, with a record of many days, and what is in its database. */
async function onPostgres(
  body: (scene: {
    readonly relay: Relay;
    readonly server: ServerProcess;
    readonly query: (sql: string) => Promise<string[]>;
    readonly gate: (...args: string[]) => ReturnType<typeof mediaHere>;
  }) => Promise<void>,
): Promise<void> {
  await inFolder(async (folder) => {
    const name = await postgres().createDatabase();
    await using relay = new Relay(postgres().port);
    const environment = { ...REMOVED, DATABASE_URL: postgres().urlOf(name, relay.port) };
    await using server = await ServerProcess.start(environment, folder);
    const query = (sql: string) => postgres().query(sql, name);
    await query(
      "UPDATE media_head_session SET began = 0; UPDATE media_head_ledger SET started = 0",
    );
    const direct = { ...REMOVED, DATABASE_URL: postgres().urlOf(name) };
    await body({
      relay,
      server,
      query,
      gate: (...args) => mediaHere(folder, ["usage", "--gate", "1", ...args], direct),
    });
  });
}

const CALLS = "SELECT coalesce(sum(calls), 0) FROM media_head_usage";

needing(...POSTGRES)(
  "a failover between two parts of a flush starts the record again",
  () =>
    onPostgres(async ({ relay, server, query, gate }) => {
      const copy = (from: string, to: string) => `INSERT INTO ${to} SELECT * FROM ${from};`;
      const tables = ["media_head_usage", "media_head_session", "media_head_ledger"];
      await callByMany(server);
      await until("their first calls", async () => (await query(CALLS))[0] === "150");
      let inserts = 0;
      const isOver = Promise.withResolvers<void>();
      relay.onSent = async (text) => {
        if (!text.includes("INSERT INTO media_head_usage")) return;
        inserts++;
        if (inserts === 1) { // the replica does not get what follows
          for (const table of tables) await query(`CREATE TABLE copy_${table} AS TABLE ${table}`);
        } else if (inserts === 2) {
          relay.lead(1); // nothing listens there
          await query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity " +
              "WHERE datname = current_database() AND pid <> pg_backend_pid()",
          );
          assertEquals(await query(CALLS), ["250"], "the first part was committed");
          await query(
            tables.map((table) => `DELETE FROM ${table};${copy(`copy_${table}`, table)}`).join(""),
          );
          relay.lead(postgres().port);
          isOver.resolve();
        }
      };
      await callByMany(server);
      await isOver.promise;
      await until("the second part", async () => (await query(CALLS))[0] !== "150");
      const { code, stdout } = await gate("--at-most", "1000");
      assertEquals(code, 3, stdout);
      assertMatch(stdout, /\n {2}The record starts at \d/);
      const { log } = await server.stop();
      assertMatch(JSON.stringify(log), /does not have this process's last heartbeat/);
      assertEquals(await query("SELECT ended FROM media_head_session ORDER BY began"), [
        "lapsed",
        "stopped",
      ]);
    }),
);

needing(...POSTGRES)(
  "a part whose COMMIT is not answered is recorded once",
  async () => {
    const name = await postgres().createDatabase();
    const query = (sql: string) => postgres().query(sql, name);
    await using relay = new Relay(postgres().port);
    const { ledger, close } = await openEngine(postgres().urlOf(name, relay.port));
    const now = performance.now.bind(performance);
    const recorder = new Recorder({
      ledger,
      policies: { [ANSWER.route]: definePolicy({ deprecatedAt: "2027-01-01" }) },
      process: PROCESS,
      retainDays: 400,
      clock: Date.now,
      lifetime: now,
      log() {},
    });
    await recorder.start();
    for (let index = 0; index < 150; index++) {
      countOne(recorder.meter, { userAgent: `App-${index}` });
    }
    let isAdding = false;
    relay.onSent = (text) => void (isAdding ||= text.includes("INSERT INTO media_head_usage"));
    relay.onReceived = (text) => {
      if (isAdding && text.includes("COMMIT")) relay.lead(1); // nothing listens there
    };
    {
      using _fast = stub(performance, "now", () => now() * 1_000); // it asks for a minute
      await recorder.flush();
    }
    assertEquals([await query(CALLS), recorder.unrecorded()], [["100"], 150]);
    relay.onReceived = () => {};
    relay.lead(postgres().port);
    await recorder.stop();
    assertEquals([await query(CALLS), recorder.unrecorded()], [["150"], 0]);
    assertEquals(await query("SELECT ended FROM media_head_session"), ["stopped"]);
    await close();
  },
);

needing("processes", program("strace"))(
  "what counts as evidence is synced to disk on SQLite",
  () =>
    inFolder(async (folder) => {
      const trace = `${folder}/trace`;
      const runner = [
        "strace",
        "-D",
        "-f",
        "-y",
        "-qq",
        "-e",
        "trace=fsync,fdatasync",
        "-o",
        trace,
      ];
      const syncs = async () => {
        const lines = (await Deno.readTextFile(trace)).split("\n");
        return lines.filter((line) => line.includes("-ledger-wal>")).map((line) =>
          line.split(" ")[0]
        );
      };
      const environment = { ...REMOVED, AFTER_SUNSET: "redirect" }; // which serves its client
      const server = await ServerProcess.start(environment, folder, { runner });
      const registered = await syncs();
      const serving = String(server.pid); // it also syncs when SQLite begins or checkpoints a log
      const isBeside = (thread: string | undefined) => thread !== serving;
      assert(registered.some(isBeside), "the registration, before the first response");
      const call = () => requestRaw(server.port, "HEAD", `/audio/${newToken()}`);
      const { status } = await call();
      assertEquals(status, 308);
      const intended = (await syncs()).slice(registered.length).filter(isBeside);
      assert(intended.length > 0, "the intent, before the first answer");
      for (let calls = 0; calls < 20; calls++) await call();
      assertEquals((await syncs()).slice(registered.length).filter(isBeside), intended);
      const before = (await syncs()).length;
      await server.stop();
      const stopped = (await syncs()).slice(before).filter(isBeside);
      assert(stopped.length > 0, "the stop");
    }),
);
