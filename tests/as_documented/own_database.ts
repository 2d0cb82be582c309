/** The record in the application's own PostgreSQL, set up as the page on usage says, and without that. */

import { assertEquals } from "@std/assert";
import { definePolicy } from "../../lib/lifecycle/mod.ts";
import { openUsage } from "../../lib/usage/mod.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { PASSWORD, POSTGRES, PostgresServer, USER } from "../support/postgres.ts";

/** What an application does to make its database equal to its models. */
const RESET = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";

needing(...POSTGRES)(
  "a record with a role or a schema of its own survives a reset of the application's schema",
  async () => {
    const page = await Deno.readTextFile(fromRoot("lib/usage/applications.md"));
    const [, role = ""] = /```sql\n([^]*?)```/.exec(page) ?? [];
    const [schema = ""] = /CREATE SCHEMA calls AUTHORIZATION /.exec(page) ?? [];
    const [options = ""] = /\?options=-c%20search_path%3Dcalls/.exec(page) ?? [];
    await using server = await PostgresServer.start();
    await server.query(`ALTER ROLE ${USER} CREATEROLE`);
    const ofRole = (url: string) => url.replace(`${USER}:${PASSWORD}@`, "calls:password@");
    const rows: [prepare: string, record: (url: string) => string, survives: boolean][] = [
      ["", (url) => url, false],
      [role, ofRole, true],
      [schema + USER, (url) => url + options, true],
    ];
    for (const [prepare, record, survives] of rows) {
      const name = await server.createDatabase();
      const asApplication = (sql: string) => server.query(`SET ROLE ${USER}; ${sql}`, name);
      await asApplication(prepare);
      const routes = { "/v1": definePolicy({ deprecatedAt: "2026-11-21" }) };
      const usage = await openUsage(record(server.urlOf(name)), { routes, log() {} });
      const handler = usage.withLifecycle(() => new Response("old"), "/v1");
      await (await handler(new Request("http://a.example/v1"))).body?.cancel();
      await usage.close();
      await asApplication(RESET);
      const table = "SELECT schemaname FROM pg_tables WHERE tablename = 'media_head_usage'";
      assertEquals(await server.query(table, name), survives ? ["calls"] : []);
      const calls = "SELECT calls FROM calls.media_head_usage";
      if (survives) assertEquals(await server.query(calls, name), ["1"]);
    }
  },
);
