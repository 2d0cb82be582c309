/** The record, and verdicts on it, in random worlds on both engines. */

import { assert, assertEquals } from "@std/assert";
import { postgresAt } from "../../../lib/database/place.ts";
import { LEDGER } from "../../../lib/usage/record/schema.ts";
import { missingOf, needing, shared } from "../../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../../support/postgres.ts";
import { runRandomWorld } from "../../support/random_world.ts";
import type { Findings } from "../../support/record_truth.ts";
import { onPostgres, openInMemory } from "../../support/world_databases.ts";

/** The number of worlds, of which a tenth is run on PostgreSQL, too. */
const asked = missingOf(["environment"]) === "" ? Deno.env.get("RECORD_WORLDS") : undefined;
const WORLDS = Number(asked ?? 20);

/** The worlds in a test, which ends in ten minutes. */
const WORLDS_A_TEST = 100;

async function runOnSqlite(seed: number): Promise<Findings> {
  await using one = await openInMemory();
  await using another = await openInMemory();
  return await runRandomWorld(seed, [one, another]);
}

const SUMS = [
  "verdicts",
  "clear",
  "naming",
  "excused",
  "beyond",
  "twice",
  "quiet",
  "unknown",
] as const;

for (let first = 1; first <= WORLDS; first += WORLDS_A_TEST) {
  const last = Math.min(WORLDS, first + WORLDS_A_TEST - 1);
  Deno.test(`no verdict is clear while a call is neither on record nor in a gap: seeds ${first} to ${last}`, async () => {
    const sums = Object.fromEntries(SUMS.map((name) => [name, 0]));
    for (let seed = first; seed <= last; seed++) {
      const findings = await runOnSqlite(seed);
      const { record, verdict } = findings;
      assertEquals({ seed, record, verdict }, { seed, record: [], verdict: [] });
      for (const name of SUMS) sums[name] = (sums[name] ?? 0) + findings[name];
    }
    if (asked !== undefined) console.log(JSON.stringify({ first, last, ...sums }));
    const { clear = 0, verdicts = 0, naming = 0, quiet = 0, unknown = 0, twice = 0 } = sums;
    assert(clear > verdicts / 5 && naming > clear / 2, "gates are asked in trouble");
    assert(unknown < quiet / 5, `${unknown} of ${quiet} verdicts on quiet periods are unknown`);
    assert(twice < last - first + 1, `${twice} calls are on record twice after a restore`);
  });
}

const server = shared(POSTGRES, () => PostgresServer.start());

async function openOnPostgres() {
  const { PostgresDatabase } = await import("../../../lib/database/postgres/database.ts");
  const url = server().urlOf(await server().createDatabase());
  const database = new PostgresDatabase(postgresAt(url), { isPatient: true });
  await database.createTables(LEDGER);
  return { ...onPostgres(database), [Symbol.asyncDispose]: () => database.close() };
}

for (let first = 1; first <= WORLDS / 10; first += WORLDS_A_TEST) {
  const last = Math.min(WORLDS / 10, first + WORLDS_A_TEST - 1);
  needing(...POSTGRES)(
    `PostgreSQL and SQLite keep the same record: seeds ${first} to ${last}`,
    async () => {
      await using one = await openOnPostgres();
      await using another = await openOnPostgres();
      for (let seed = first; seed <= last; seed++) {
        assertEquals(
          await runRandomWorld(seed, [one, another]),
          await runOnSqlite(seed),
          `seed ${seed}`,
        );
      }
    },
  );
}
