/**
 * Servers whose database is restarted, fails over to a standby that lags, or is restored from a base
 * backup: verdicts name what is lost by it, and nothing else.
 */

import { assert, assertEquals } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { askGate, askVerdict, CALLED, CLEAR, UNKNOWN } from "../support/gate.ts";
import { inFolder } from "../support/media_cli.ts";
import { needing, program } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import { addPast, callsIn, fallSilent, startRecorded } from "../support/recorded_processes.ts";
import { Relay } from "../support/relay.ts";
import type { ServerProcess } from "../support/server.ts";
import { sideBySide } from "../support/side_by_side.ts";
import { until } from "../support/within.ts";

/** A database of the cluster, with a server behind a relay. */
interface Site {
  readonly name: string;
  readonly relay: Relay;
  readonly server: ServerProcess;
}

async function callTwice({ server }: Site): Promise<void> {
  for (const method of ["HEAD", "GET"]) {
    const fields = { "User-Agent": "site/1.0" };
    const { status } = await requestRaw(server.port, method, `/audio/${newToken()}`, fields);
    assertEquals(status, 308, method);
  }
}

const recordOf = (at: PostgresServer, { name }: Site) => ({
  url: at.urlOf(name),
  execute: (sql: string) => at.query(sql, name),
});

const callsOn = (at: PostgresServer, site: Site) => callsIn(recordOf(at, site));

/** Checks that the verdict names one gap of a kind with an instant in it, or none. */
async function check(
  at: PostgresServer,
  site: Site,
  { kind, instant }: { kind?: string; instant: number },
): Promise<void> {
  const { url } = recordOf(at, site);
  const { status, text } = await askVerdict(url);
  assertEquals(status, await callsOn(at, site) > 0 ? CALLED : CLEAR, text);
  const ignoring = status === CALLED ? ["--ignore", "app site"] : [];
  const { json: { gaps }, ...quiet } = await askVerdict(url, ...ignoring);
  assertEquals(quiet.status, CLEAR, quiet.text);
  assertEquals(gaps.map((gap) => gap.kind), kind === undefined ? [] : [kind], quiet.text);
  for (const { start, end } of gaps) {
    const isIn = Date.parse(start) <= instant && (end === undefined || instant <= Date.parse(end));
    assert(isIn, `${new Date(instant).toISOString()} is not from ${start} to ${end}`);
  }
}

needing(...POSTGRES, program("pg_basebackup"))(
  "a verdict names what a standby or a base backup lacks, and a restart of the database loses nothing",
  () =>
    sideBySide(
      [["a failover to a standby that lags", "standby"], ["a base backup", "restored"]] as const,
      ([, how]) => inFolder((folder) => play(how, folder)),
    ),
);

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
    await callTwice(running);
    await primary.launch();
    await until("all calls", async () => await callsOn(primary, running) === 4);
    await check(primary, running, { instant: 0 });
  }

  Deno.kill(frozen.server.pid, "SIGSTOP"); // so that it records nothing that the copy lacks
  const copy = all.use(await PostgresServer.copy(primary, how));
  if (how === "standby") {
    await fallBehind(copy, primary);
    const [status] = await askGate(copy.urlOf(running.name));
    assertEquals(status, UNKNOWN, "a standby may be behind");
  }
  const before = await callsOn(primary, running);
  for (const site of [running, killed]) await callTwice(site);
  const called = Date.now();
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
  for (const site of [running, frozen]) await callTwice(site);
  await until(
    "calls there",
    async () => await callsOn(copy, running) === before + 2 && await callsOn(copy, frozen) === 2,
  );
  assertEquals(await callsOn(copy, killed), 0, "the copy lacks them");
  await fallSilent(recordOf(copy, killed), [killed.server.pid]);
  await check(copy, running, { kind: "lost", instant: called });
  await check(copy, killed, { kind: "silent", instant: called });
  await check(copy, frozen, { instant: 0 });
  await running.server.stop();
  const ended = "SELECT ended FROM media_head_session WHERE ended IS NOT NULL ORDER BY began";
  assertEquals((await copy.query(ended, running.name)).slice(-2), ["continued", "stopped"]);
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
