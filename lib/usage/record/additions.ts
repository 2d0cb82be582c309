/** The statements that add calls to a ledger. */

import { chunksOf, type Database, type Statement } from "../../database/sql/database.ts";
import { DAY_MS } from "../../http/timestamp.ts";
import { COUNT_KEY, keyOf, USAGE_KEY, type UsageCount } from "./records.ts";

export const KEY_COLUMNS = USAGE_KEY.join(", ");

/** The calls of a client to a route. */
interface ClientCalls {
  readonly route: string;
  readonly client: string;
  readonly calls: number;
}

/**
 * Returns the statements that add counts to the rows of the day on which they are recorded.
 *
 * @param now The ledger's time, as an SQL expression.
 * @param counts Counts with distinct keys.
 */
export function additionsOf(
  database: Database,
  now: string,
  counts: readonly UsageCount[],
): Statement[] {
  // Sorted, so that two servers that add the same rows cannot deadlock.
  const sorted = counts.toSorted((a, b) => keyOf(a) < keyOf(b) ? -1 : 1);
  return [
    ...chunksOf(sorted, database.batch).map((some) => additionOf(database, now, some)),
    ...chunksOf(callsOf(sorted), database.batch).map((some) => dayAdditionOf(database, now, some)),
  ];
}

function additionOf(database: Database, now: string, counts: readonly UsageCount[]): Statement {
  const types = [...COUNT_KEY.map(() => "text" as const), "bigint"] as const;
  const all = counts.map((count) => [...COUNT_KEY.map((column) => count[column]), count.calls]);
  const { text, values } = database.rowsOf(types, all);
  return {
    text: `INSERT INTO media_head_usage AS usage (${KEY_COLUMNS}, calls, last)
           SELECT ${database.dayOf("now")}, added.*, now
           FROM (${text}) AS added, (SELECT ${now} AS now) AS time WHERE true
           ON CONFLICT (${KEY_COLUMNS}) DO UPDATE SET calls = usage.calls + excluded.calls,
           last = CASE WHEN excluded.last > usage.last THEN excluded.last ELSE usage.last END`,
    values,
  };
}

function dayAdditionOf(database: Database, now: string, calls: readonly ClientCalls[]): Statement {
  const all = calls.map(({ route, client, calls }) => [route, client, calls]);
  const { text, values } = database.rowsOf(["text", "text", "bigint"], all);
  return {
    text: `INSERT INTO media_head_day AS earlier (day, route, client, calls)
           SELECT now / ${DAY_MS}, added.*
           FROM (${text}) AS added, (SELECT ${now} AS now) AS time WHERE true
           ON CONFLICT (day, route, client)
           DO UPDATE SET calls = earlier.calls + excluded.calls`,
    values,
  };
}

/** Adds up the calls of each client to each route. Other requests are left out. */
function callsOf(counts: readonly UsageCount[]): ClientCalls[] {
  const sums = new Map<string, ClientCalls>();
  for (const { route, client, calls, impact } of counts) {
    if (impact !== "breaking") continue;
    const key = `${route}\0${client}`;
    sums.set(key, { route, client, calls: calls + (sums.get(key)?.calls ?? 0) });
  }
  return [...sums.values()];
}
