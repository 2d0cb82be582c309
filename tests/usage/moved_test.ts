/** A record that moves to another engine: the old one is read along, wherever it is by then. */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { openUsage } from "../../lib/usage/mod.ts";
import { askVerdict, CALLED, CLEAR, UNKNOWN } from "../support/gate.ts";
import { lifecycle } from "../support/lifecycle_cli.ts";
import { testsInFolder } from "../support/media_cli.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { DISK, SmallDisk } from "../support/small_disk.ts";
import { until } from "../support/within.ts";

const test = testsInFolder(...POSTGRES, ...DISK);

const POLICY = definePolicy({ deprecatedAt: "2026-01-01" });
const ROUTES = { "/v1": POLICY, "/v2": POLICY };

/** Opens a record, with both routes mounted. */
async function open(database: string) {
  const usage = await openUsage(database, { routes: ROUTES, log() {} });
  const [handler] = Object.keys(ROUTES).map((route) =>
    usage.withLifecycle(() => new Response("old"), route)
  );
  const call = async (client: string) => {
    const request = new Request("http://test/v1", { headers: { "User-Agent": `${client}/1.0` } });
    await (await handler?.(request))?.text();
  };
  return { usage, call };
}

const clientsOf = ({ clients }: { clients: readonly { client: string }[] }) =>
  clients.map(({ client }) => client).toSorted();

test("a record that moved to PostgreSQL is one with the old one on SQLite, from a backup, too", async (folder) => {
  await using server = await PostgresServer.start();
  await using disk = await SmallDisk.mount(4_000);
  const path = `${folder}/calls.sqlite`;
  const old = await open(`sqlite:${path}`);
  await old.call("before");
  const counted = () => {
    using file = new DatabaseSync(path);
    return file.prepare("SELECT client FROM media_head_usage").all().length === 1;
  };
  await until("the call", counted);
  {
    using file = new DatabaseSync(path);
    file.exec("UPDATE media_head_session SET began = began - 3 * 86400000");
  }
  // A backup while it is used: what was recorded is still in the log.
  await Deno.mkdir(`${folder}/backup`);
  for (const end of ["", "-wal"]) {
    await Deno.copyFile(path + end, `${folder}/backup/calls.sqlite${end}`);
    await Deno.copyFile(path + end, `${disk.folder}/calls.sqlite${end}`);
  }
  assert(Deno.statSync(`${folder}/backup/calls.sqlite-wal`).size > 0);
  await disk.makeReadOnly();
  await old.usage.close();

  const database = server.urlOf(await server.createDatabase());
  const { usage, call } = await open(database);
  await call("after");
  const alone = () => askVerdict(database);
  await until("the call there", async () => (await alone()).status === CALLED);
  const quiet = await askVerdict(database, "--route", "/v2");
  assertEquals(quiet.status, UNKNOWN, "its own record is too young");
  for (const place of [folder, `${folder}/backup`, disk.folder]) {
    const also = ["--also", `sqlite:${place}/calls.sqlite`];
    const { status, text, json } = await askVerdict(database, ...also);
    assertEquals([status, clientsOf(json)], [CALLED, ["app after", "app before"]], text);
    const quiet = await askVerdict(database, ...also, "--route", "/v2");
    assertEquals([quiet.status, quiet.json.gaps], [CLEAR, []], quiet.text);
    const page = `${folder}/page.html`;
    const words = ["usage", "--database", database, ...also, "--html", page];
    assertEquals((await lifecycle(...words)).code, 0);
    for (const client of clientsOf(json)) {
      assertStringIncludes(await Deno.readTextFile(page), client.replace("app ", ""));
    }
  }
  const names = (place: string) => [...Deno.readDirSync(place)].map(({ name }) => name);
  assertEquals(names(`${folder}/backup`).toSorted(), ["calls.sqlite", "calls.sqlite-wal"]);
  await usage.close();
});
