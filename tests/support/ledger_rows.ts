/** Sessions and rows in a ledger, written as a server writes them. */

import { assert } from "@std/assert";
import type { Database } from "../../lib/database/sql/database.ts";
import { additionsOf } from "../../lib/usage/record/additions.ts";
import type { Ledger, NewSession } from "../../lib/usage/record/ledger.ts";
import type { Part, Session, UsageCount } from "../../lib/usage/record/records.ts";
import { PROCESS } from "./counted_call.ts";

/** A heartbeat of one part, by a process that has lived through everything. */
export const HEARTBEAT: Part = {
  counts: [],
  before: 0,
  lived: Number.MAX_SAFE_INTEGER / 2,
  isLast: true,
  isStopped: false,
};

/** Begins a session with a heartbeat, as a process does that opened the record just now. */
export async function begin(
  ledger: Ledger,
  changes: Partial<NewSession> = {},
  part: Partial<Part> = {},
): Promise<Session> {
  const { now } = await ledger.time();
  const id = crypto.randomUUID();
  const session: NewSession = {
    ...{ id, opened: `opened ${changes.id ?? id}`, process: PROCESS, policies: {} },
    ...{ onDemand: false, retainDays: 400 },
    publicUrl: "https://api.example.com",
    contact: "mailto:api@example.com",
    ...{ start: now, continued: undefined, isClockBehind: false },
    ...changes,
  };
  assert(await ledger.begin(session, { ...HEARTBEAT, before: now, ...part }));
  return await ledger.session(session.id) as Session;
}

/** Adds rows, dated by their `last`, by the statements of a server. */
export async function addRows(
  database: Database,
  rows: readonly (UsageCount & { readonly last: number })[],
): Promise<void> {
  for (const [at, counts] of Map.groupBy(rows, ({ last }) => last)) {
    await database.transact(additionsOf(database, `CAST(${at} AS bigint)`, counts));
  }
}
