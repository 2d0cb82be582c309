/** The record, and verdicts on it, in random worlds on both engines. */

import { assert, assertEquals } from "@std/assert";
import { postgresAt } from "../../../lib/database/place.ts";
import { LEDGER } from "../../../lib/usage/record/schema.ts";
import { needing, shared } from "../../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../../support/postgres.ts";
import { runRandomWorld } from "../../support/random_world.ts";
import type { Findings } from "../../support/record_truth.ts";
import { FEWER_SEEDS, FEWEST_SEEDS } from "../../support/seeds.ts";
import { onPostgres, openInMemory } from "../../support/world_databases.ts";

async function runOnSqlite(seed: number): Promise<Findings> {
  await using one = await openInMemory();
  await using another = await openInMemory();
  return await runRandomWorld(seed, [one, another]);
}

const SUMS = ["verdicts", "clear", "naming", "twice", "quiet", "unknown"] as const;

/** The worlds in a test, which ends in ten minutes. */
const WORLDS_A_TEST = 100;

for (let first = 0; first < FEWER_SEEDS.length; first += WORLDS_A_TEST) {
  const seeds = FEWER_SEEDS.slice(first, first + WORLDS_A_TEST);
  Deno.test(`no verdict is clear while a call is neither on record nor in a gap: ${seeds.length} worlds from seed ${seeds[0]}`, async () => {
    const sums = Object.fromEntries(SUMS.map((name) => [name, 0]));
    for (const seed of seeds) {
      const findings = await runOnSqlite(seed);
      const { record, verdict } = findings;
      assertEquals({ seed, record, verdict }, { seed, record: [], verdict: [] });
      for (const name of SUMS) sums[name] = (sums[name] ?? 0) + findings[name];
    }
    const { clear = 0, verdicts = 0, naming = 0, quiet = 0, unknown = 0, twice = 0 } = sums;
    assert(clear > verdicts / 5 && naming > clear / 2, "gates are asked in trouble");
    assert(unknown < quiet / 3, `${unknown} of ${quiet} verdicts on quiet periods are unknown`);
    assert(twice < seeds.length, `${twice} calls are on record twice after a restore`);
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

needing(...POSTGRES)("PostgreSQL and SQLite keep the same record", async () => {
  await using one = await openOnPostgres();
  await using another = await openOnPostgres();
  for (const seed of FEWEST_SEEDS) {
    assertEquals(
      await runRandomWorld(seed, [one, another]),
      await runOnSqlite(seed),
      `seed ${seed}`,
    );
  }
});
