/** What a process costs its database while nobody calls. */

import { assert, assertEquals } from "@std/assert";
import { requireDatabaseUrl } from "../../../lib/database/place.ts";
import { DENO_RUNTIME } from "../../../lib/database/sqlite/deno_runtime.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { openLedger } from "../../../lib/usage/record/open_ledger.ts";
import { Recorder } from "../../../lib/usage/record/recorder.ts";
import { ANSWER, PROCESS } from "../../support/counted_call.ts";
import { needing } from "../../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../../support/postgres.ts";

/** More than enough for a clock to advance between any two parts of a statement. */
const FLUSHES = 400;

needing(...POSTGRES)(
  "on PostgreSQL, an idle process sends a heartbeat in one statement, and stays one session",
  async () => {
    await using server = await PostgresServer.start({
      settings: { shared_preload_libraries: "pg_stat_statements" },
    });
    const name = await server.createDatabase();
    await server.query("CREATE EXTENSION pg_stat_statements", name);
    const place = requireDatabaseUrl(server.urlOf(name), "url");
    const { ledger, close } = await openLedger(place, { runtime: () => DENO_RUNTIME });
    const recorder = new Recorder({
      ledger,
      policies: { [ANSWER.route]: definePolicy({ deprecatedAt: "2027-01-01" }) },
      process: PROCESS,
      retainDays: 400,
      clock: Date.now,
      log() {},
    });
    await recorder.start();
    await recorder.flush(); // looks for days to delete, too
    await server.query("SELECT pg_stat_statements_reset()", name);
    for (let flushes = 0; flushes < FLUSHES; flushes++) await recorder.flush();
    const statements = await server.query(
      `SELECT calls, query FROM pg_stat_statements JOIN pg_roles ON pg_roles.oid = userid
       WHERE rolname = 'media' ORDER BY calls DESC`,
      name,
    );
    assertEquals(await server.query("SELECT count(*) FROM media_head_session", name), ["1"]);
    const [first = ""] = statements;
    assert(first.startsWith(`${FLUSHES}|UPDATE media_head_session`), statements.join("\n"));
    assertEquals(statements.filter((line) => /^\d+\|/.test(line)).length, 1, statements.join("\n"));
    await recorder.stop();
    await close();
  },
);
