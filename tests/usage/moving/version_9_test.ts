/**
 * A record that servers of an earlier release wrote, copied while servers of this release run. The
 * files beside this one say how it was made.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { requireDatabaseUrl, sqliteAt } from "../../../lib/database/place.ts";
import { DENO_RUNTIME } from "../../../lib/database/sqlite/deno_runtime.ts";
import type { Policy } from "../../../lib/lifecycle/policy.ts";
import { newToken } from "../../../lib/storage/token.ts";
import { openOldRecord } from "../../../lib/usage/moving/old_record.ts";
import type { Session } from "../../../lib/usage/record/records.ts";
import { inFolder, mediaHere } from "../../support/media_cli.ts";
import { fromRoot } from "../../support/paths.ts";
import { needing, shared } from "../../support/permissions.ts";
import { POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import {
  CALLED,
  recordOnPostgres,
  recordOnSqlite,
  type RecordPlace,
  startRecorded,
} from "../../support/recorded_processes.ts";
import { DAY, MINUTE } from "../../support/usage_report.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

/** The record on one of the engines, and the URL by which the media server finds it. */
type OldPlace = Pick<RecordPlace, "url" | "execute">;

const sqlOf = (engine: string) =>
  Deno.readTextFileSync(fromRoot(`tests/usage/moving/version_9.${engine}.sql`));

const OLD: Readonly<Record<string, (folder: string) => Promise<OldPlace>>> = {
  async SQLite(folder) {
    await Deno.mkdir(`${folder}/before`, { recursive: true });
    using database = new DatabaseSync(`${folder}/before/catalogue.sqlite-ledger`);
    database.exec(sqlOf("sqlite"));
    const { execute } = recordOnSqlite(`${folder}/before`);
    return { url: `sqlite:${folder}/before/catalogue.sqlite`, execute };
  },
  async PostgreSQL() {
    const { url, execute } = await recordOnPostgres(postgres());
    await execute(`SET ROLE ${USER}; ${sqlOf("postgres")}`);
    return { url, execute };
  },
};

const NEW: Readonly<Record<string, (folder: string) => Promise<RecordPlace>>> = {
  SQLite: (folder) => Promise.resolve(recordOnSqlite(folder)),
  PostgreSQL: () => recordOnPostgres(postgres()),
};

/** Dates the record as if its last server had stopped five minutes ago, after four days. */
async function stretch({ execute }: OldPlace): Promise<void> {
  const [last = ""] = await execute("SELECT max(reported) FROM media_head_session");
  const by = Date.now() - 5 * MINUTE - Number(last);
  const earlier = by - 5 * DAY;
  const columns = ["began", "reported", "clock", "process_started", "ended_by"];
  await execute(
    `UPDATE media_head_session SET ${columns.map((each) => `${each} = ${each} + ${earlier}`).join()}
     WHERE reported < ${last}`,
  );
  await execute(
    `UPDATE media_head_session SET reported = reported + ${by}, clock = clock + ${by},
     began = began + ${by - 4 * DAY} WHERE reported = ${last}`,
  );
  const day = new Date(Number(last) + earlier).toISOString().slice(0, 10);
  await execute(`UPDATE media_head_usage SET day = '${day}', last = last + ${earlier}`);
  await execute(`UPDATE media_head_ledger SET started = started + ${earlier}`);
}

needing(...POSTGRES)(
  "what was doubted of a process of schema 9 is known",
  () =>
    inFolder(async (folder) => {
      for (const openOld of Object.values(OLD)) {
        const { url, execute } = await openOld(`${folder}/${crypto.randomUUID()}`);
        const given = requireDatabaseUrl(url, "url");
        const place = given.kind === "sqlite" ? sqliteAt(given.ledgerPath) : given;
        const { record, close } = await openOldRecord(place, "OLD", {
          runtime: () => DENO_RUNTIME,
        });
        const { sessions, silences, intents } = await record.read();
        await close();
        const [first, gone, killed, last] = sessions as [Session, Session, Session, Session];
        assertEquals(sessions.map(({ ended }) => ended), [
          "stopped",
          "lapsed",
          undefined,
          "stopped",
        ]);
        assertEquals([record.hasDays, intents], [false, []]);
        // When it had ended, by the machine's clock or the ledger's time, whichever is later.
        const [byMachine, byLedger] = ["reported + ended_by - clock", "ended_by + lead"];
        const [ended = ""] = await execute(
          `SELECT CASE WHEN ${byMachine} > ${byLedger} THEN ${byMachine} ELSE ${byLedger} END
         FROM media_head_session WHERE ended = 'gone'`,
        );
        assertEquals(silences.map(({ session, until }) => [session, until]), [
          [gone.id, Number(ended)],
          [killed.id, undefined],
        ]);
        const { brownouts } = first.policies["/audio/:token"] as Policy;
        const [start, end] = [Date.parse("2027-03-01T09:00Z"), Date.parse("2027-03-01T13:00Z")];
        assertEquals(brownouts, [{ start, end, status: 503 }]);
        assertEquals([last.timeline, last.retainDays, last.mayServeUnrecorded], ["", 400, false]);
      }
    }),
);

for (const [from, openOld] of Object.entries(OLD)) {
  for (const [to, openNew] of Object.entries(NEW)) {
    needing(...POSTGRES)(
      `a record of schema 9 on ${from} is copied to ${to}, where servers run`,
      () =>
        inFolder(async (folder) => {
          const old = await openOld(folder);
          await stretch(old);
          const own = await openNew(folder);
          await using server = await startRecorded(folder, own);
          await using _other = await startRecorded(folder, own);
          const call = { method: "HEAD", redirect: "manual" } as const;
          const { status } = await fetch(`${server.origin}/audio/${newToken()}`, call);
          assertEquals(status, 308);
          const usage = (...args: string[]) =>
            mediaHere(folder, ["usage", ...args], { ...own.environment });

          const copied = await usage("--copy-from", old.url);
          assertEquals([copied.code, copied.stderr], [0, ""]);
          assertMatch(
            copied.stdout,
            /^Copied (sqlite|postgres):\/?\S+ with 4 sessions, its last heartbeat at \S+Z; the record starts at/,
          );
          assert(!copied.stdout.includes("keep-this-out"), "a password is printed");
          assertEquals((await usage("--gate", "1")).code, CALLED, "the call of today");
          const report = JSON.parse((await usage("--json")).stdout);
          const calls = report.routes.map((
            { route, calls }: Record<string, unknown>,
          ) => [route, calls]);
          assertEquals(calls, [["/audio/:token", 15], ["/video/:token", 7]]);
          const clients = report.clients.map(({ client }: Record<string, unknown>) => client);
          assertEquals(clients.toSorted(), ["app Deno", "app Overcast", "app curl"]);

          // Nobody has said what became of the third server, and nobody ran for five minutes.
          const generous = ["--at-most", "100", "--days"];
          const verdict = async (...args: string[]) =>
            JSON.parse((await usage("--json", ...generous, ...args)).stdout).verdict;
          assertEquals(await verdict("1"), "unknown");
          const { stdout } = await usage(...generous, "1");
          assertMatch(stdout, /: no server was running \(see --trust-stops\)\n/);
          assertMatch(stdout, /started at .*\) ended or was cut off while it answered calls to/);
          assertEquals(await verdict("1", "--trust-stops"), "clear", stdout);
          // The record was started again five days ago.
          assertEquals(await verdict("6", "--trust-stops"), "unknown");

          const again = await usage("--copy-from", old.url, "--json");
          assertEquals(JSON.parse(again.stdout).copied, false);
          const sessions = await old.execute("SELECT id FROM media_head_session");
          assertEquals(sessions.filter((id) => !id.includes("/")).length, 1);
        }),
    );
  }
}
