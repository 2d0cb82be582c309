/** The statements that add calls to a ledger. */

import type { Database, Statement } from "../../database/sql/database.ts";
import { dayNumberOf } from "../../http/timestamp.ts";
import { USAGE_KEY, type UsageRow } from "./records.ts";

export const KEY_COLUMNS = USAGE_KEY.join(", ");

/** The calls of a client to a route on a day. */
interface ClientDay {
  /** The number of the UTC day: 0 is 1970-01-01. */
  readonly day: number;
  readonly route: string;
  readonly client: string;
  readonly calls: number;
}

/** Returns the statement that adds rows. Their keys must be distinct. */
export function additionOf(database: Database, rows: readonly UsageRow[]): Statement {
  const columns = [...USAGE_KEY, "calls", "last"] as const;
  const types = [...USAGE_KEY.map(() => "text" as const), "bigint", "bigint"] as const;
  const all = rows.map((row) => columns.map((column) => row[column]));
  const { text, values } = database.rowsOf(types, all);
  return {
    text: `INSERT INTO media_head_usage AS usage (${columns.join(", ")}) ${text}
           ON CONFLICT (${KEY_COLUMNS}) DO UPDATE SET calls = usage.calls + excluded.calls,
           last = CASE WHEN excluded.last > usage.last THEN excluded.last ELSE usage.last END`,
    values,
  };
}

/** Returns the statement that adds calls of clients on days. Their keys must be distinct. */
export function daysAdditionOf(database: Database, days: readonly ClientDay[]): Statement {
  const types = ["bigint", "text", "text", "bigint"] as const;
  const all = days.map(({ day, route, client, calls }) => [day, route, client, calls]);
  const { text, values } = database.rowsOf(types, all);
  return {
    text: `INSERT INTO media_head_day AS earlier (day, route, client, calls) ${text}
           ON CONFLICT (day, route, client)
           DO UPDATE SET calls = earlier.calls + excluded.calls`,
    values,
  };
}

/** Adds up the calls of each client to each route on each day. Other requests are left out. */
export function clientDaysOf(rows: readonly UsageRow[]): ClientDay[] {
  const sums = new Map<string, ClientDay>();
  for (const { day, route, client, calls, impact } of rows) {
    if (impact !== "breaking") continue;
    const key = `${day}\0${route}\0${client}`;
    const number = dayNumberOf(Date.parse(day));
    sums.set(key, { day: number, route, client, calls: calls + (sums.get(key)?.calls ?? 0) });
  }
  return [...sums.values()];
}

/** Returns what a column holds of a value that a session may lack. */
export function jsonOf(value: object | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value);
}
