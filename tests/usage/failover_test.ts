/**
 * Servers whose database is restarted, fails over to a standby that lags, or is restored from a base
 * backup, and what the gate says then.
 */

import { assertEquals, assertRejects } from "@std/assert";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { newToken } from "../../lib/storage/token.ts";
import { inFolder } from "../support/media_cli.ts";
import { needing, program } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import {
  addPast,
  askVerdict,
  CLEAR,
  startRecorded,
  UNKNOWN,
} from "../support/recorded_processes.ts";
import { Relay } from "../support/relay.ts";
import type { ServerProcess } from "../support/server.ts";
import { reasonsIn } from "../support/usage_report.ts";
import { until } from "../support/within.ts";

const CALLS = "SELECT coalesce(sum(calls), 0) FROM media_head_usage";

/** A database of the cluster, with a server behind a relay. */
interface Site {
  readonly name: string;
  readonly relay: Relay;
  readonly server: ServerProcess;
}

async function callTwice({ server }: Site): Promise<void> {
  for (const method of ["HEAD", "GET"]) {
    const { status } = await requestRaw(server.port, method, `/audio/${newToken()}`);
    assertEquals(status, 308, method);
  }
}

async function callsOn(at: PostgresServer, { name }: Site): Promise<number> {
  return Number((await at.query(CALLS, name))[0]);
}

/** Checks the verdict in text, JSON and exit status, without a word and with `--trust-stops`. */
async function check(
  url: string,
  verdicts: readonly [number, number],
  doubts: readonly string[],
): Promise<void> {
  const words = ["--at-most", "9"]; // what is on record does not matter here
  const plain = await askVerdict(url, ...words);
  const json = await askVerdict(url, ...words, "--json");
  const trusting = await askVerdict(url, ...words, "--trust-stops");
  assertEquals([plain.status, trusting.status], verdicts, `${plain.text}\n${trusting.text}`);
  assertEquals(json.status, plain.status);
  assertEquals(reasonsIn(json.text), doubts, plain.text);
  assertEquals(JSON.parse(json.text).verdict, plain.status === CLEAR ? "clear" : "unknown");
}

for (const how of ["standby", "restored"] as const) {
  needing(...POSTGRES, program("pg_basebackup"))(
    how === "standby"
      ? "a failover to a standby that lags is a doubt, and a lost heartbeat starts the record again"
      : "a restart of the database is no doubt, and a restored base backup is one",
    () => inFolder((folder) => play(how, folder)),
  );
}

/** Has a database restarted and replaced, with servers that run, are frozen, or were killed. */
async function play(how: "standby" | "restored", folder: string): Promise<void> {
  await using all = new AsyncDisposableStack();
  const primary = all.use(await PostgresServer.start());
  const start = async (name: string, relay: Relay): Promise<ServerProcess> => {
    const environment = { DATABASE_URL: primary.urlOf(name, relay.port) };
    const server = await startRecorded(folder, { environment });
    all.defer(async () => void await server.stop("SIGKILL"));
    return server;
  };
  const open = async (): Promise<Site> => {
    const name = await primary.createDatabase();
    const relay = all.use(new Relay(primary.port));
    const server = await start(name, relay);
    await addPast({ execute: (sql) => primary.query(sql, name) });
    return { name, relay, server };
  };
  const [running, killed, frozen] = [await open(), await open(), await open()];
  if (how === "restored") {
    await callTwice(running);
    await primary.stop("SIGQUIT"); // as in a crash
    await callTwice(running); // its intent is held
    await primary.launch();
    await until("all calls", async () => await callsOn(primary, running) === 4);
    await check(primary.urlOf(running.name), [CLEAR, CLEAR], []);
  }

  Deno.kill(frozen.server.pid, "SIGSTOP"); // so that it records nothing that the copy lacks
  const copy = all.use(await PostgresServer.copy(primary, how));
  if (how === "standby") {
    await fallBehind(copy, primary);
    await assertRejects(() => askVerdict(copy.urlOf(running.name)), RefusedError, "a replica");
  }
  const before = await callsOn(primary, running);
  for (const site of [running, killed]) await callTwice(site);
  await until(
    "their calls",
    async () =>
      await callsOn(primary, running) === before + 2 && await callsOn(primary, killed) === 2,
  );
  await killed.server.stop("SIGKILL");

  await primary.stop("SIGQUIT");
  if (how === "standby") await copy.query("SELECT pg_promote()");
  for (const { relay } of [running, killed, frozen]) relay.lead(copy.port);
  Deno.kill(frozen.server.pid, "SIGCONT");
  await start(killed.name, killed.relay);
  const timelines = "SELECT count(DISTINCT timeline) FROM media_head_session";
  for (const { name } of [running, killed, frozen]) {
    await until("a session there", async () => (await copy.query(timelines, name))[0] === "2");
  }
  assertEquals(await callsOn(copy, killed), 0, "the copy lacks them");
  const rows: [site: Site, verdicts: readonly [number, number], doubts: string[]][] = [
    [running, [UNKNOWN, UNKNOWN], ["started", "restored"]],
    [killed, [UNKNOWN, CLEAR], ["restored"]],
    [frozen, [UNKNOWN, CLEAR], ["restored"]],
  ];
  for (const [{ name }, verdicts, doubts] of rows) await check(copy.urlOf(name), verdicts, doubts);
  await running.server.stop();
  const ended = "SELECT ended FROM media_head_session WHERE ended IS NOT NULL ORDER BY began";
  assertEquals((await copy.query(ended, running.name)).slice(-2), ["lapsed", "stopped"]);
}

/** Waits until a standby has all, and has it receive no more. */
async function fallBehind(standby: PostgresServer, primary: PostgresServer): Promise<void> {
  const [now] = await primary.query("SELECT pg_current_wal_lsn()");
  const isThere = `SELECT pg_last_wal_replay_lsn() >= '${now}'`;
  await until("the standby", async () => (await standby.query(isThere))[0] === "t");
  await standby.query("ALTER SYSTEM SET primary_conninfo = ''");
  await standby.query("SELECT pg_reload_conf()");
  const receivers = "SELECT 1 FROM pg_stat_replication";
  await until("its lag", async () => (await primary.query(receivers)).length === 0);
}
