/** Databases whose clock is that of a world. */

import { DatabaseSync } from "node:sqlite";
import type { Database, Statement } from "../../lib/database/sql/database.ts";
import { SqliteDatabase } from "../../lib/database/sqlite/database.ts";
import { DENO_RUNTIME } from "../../lib/database/sqlite/deno_runtime.ts";
import { LEDGER } from "../../lib/usage/record/schema.ts";
import type { WorldDatabase } from "./record_world.ts";

/** Opens an empty database in memory. */
export async function openInMemory(): Promise<WorldDatabase & AsyncDisposable> {
  let time = 0;
  class WorldSync extends DatabaseSync {
    constructor(...args: ConstructorParameters<typeof DatabaseSync>) {
      super(...args);
      this.function("world_time", () => time);
    }
  }
  const database = await SqliteDatabase.open(":memory:", {
    schema: LEDGER,
    synchronous: "NORMAL",
    timeout: 0,
    runtime: { ...DENO_RUNTIME, DatabaseSync: WorldSync },
  });
  return {
    database,
    currentTime: "CAST(world_time() AS INTEGER)",
    dated: (statement) => statement,
    setTime: (now) => time = now,
    [Symbol.asyncDispose]: () => database.close(),
  };
}

/** Stands in statements for PostgreSQL for the time at which they are run. */
const TIME = "(the time of the world)";

/** Returns a database on PostgreSQL. */
export function onPostgres(database: Database): WorldDatabase {
  const dated = (statement: Statement, now: number) => {
    return { ...statement, text: statement.text.replaceAll(TIME, `(${now}::bigint)`) };
  };
  return { database, currentTime: TIME, dated, setTime() {} };
}
