/**
 * The ledger, in an SQL database. Any number of servers share one. Every driver passes
 * `tests/storage/ledger/ledger_suite.ts`.
 */

import { DAY_MS } from "./day.ts";
import {
  type FlushPart,
  type Heartbeat,
  type LedgerTime,
  MAX_PART_ROWS,
  mergeRows,
  type UsageRow,
} from "./ledger.ts";
import {
  chunksOf,
  type Database,
  pages,
  type Row,
  type Statement,
} from "../database/sql/database.ts";
import { yieldToRequests } from "../../async/yield.ts";

const KEY = ["day", "route", "method", "phase", "status", "impact", "client"] as const;
const KEY_COLUMNS = KEY.join(", ");

/** The types of the columns: the key, then the numbers. */
const TYPES = [...KEY.map(() => "text" as const), ...Array(3).fill("bigint" as const)];

/**
 * A ledger in the tables `ledger`, `usage` and `heartbeat`. Every method throws
 * {@linkcode StorageError} when the engine fails.
 */
export class Ledger {
  readonly #database: Database;

  /** @param database Closed by the caller. */
  constructor(database: Database) {
    this.#database = database;
  }

  async time(): Promise<LedgerTime> {
    const [row] = await this.#database.query({
      text: `SELECT ${this.#database.clock} AS now, max(until) AS latest FROM heartbeat
             WHERE ending IS NULL OR ending <> 'gone'`,
    });
    return { now: row?.["now"] as number, latest: row?.["latest"] as number | null ?? 0 };
  }

  /**
   * Records one part of a flush: extends the server's heartbeat, and adds the rows, merging those
   * with the same key.
   *
   * @param own The heartbeat as it was before.
   * @returns Whether the heartbeat was in the ledger as it was before, without an end. Otherwise
   *   nothing is recorded.
   * @throws {RejectedError} If the database rejects the rows.
   */
  async add({ rows, until, end }: FlushPart, own: Heartbeat): Promise<boolean> {
    const extension: Statement = {
      text: `UPDATE heartbeat SET sequence = sequence + 1, until = $1, ending = $2
             WHERE server = $3 AND since = $4 AND sequence = $5 AND ending IS NULL
             RETURNING server`,
      values: [until, end ?? null, own.server, own.from, own.sequence],
    };
    // Sorted, so that two servers that add the same rows cannot deadlock.
    const sorted = mergeRows(rows).sort((a, b) => sortKeyOf(a) < sortKeyOf(b) ? -1 : 1);
    const additions = chunksOf(sorted, this.#database.batch).map((rows) => this.#additionOf(rows));
    const [extended] = await this.#database.transact([extension, ...additions], {
      isConditional: true,
      sync: end ? "with commit" : until > own.until ? "after commit" : undefined,
    });
    return extended?.length === 1;
  }

  /** Lists the rows from a day on, ordered by day, reading incrementally. */
  async *usage(fromDay: string): AsyncGenerator<UsageRow> {
    const rows = pages(this.#database, (after, limit) => {
      const start = after === undefined ? [fromDay] : KEY.map((column) => after[column] as string);
      const condition = after === undefined
        ? "day >= $1"
        : `(${KEY_COLUMNS}) > (${KEY.map((_, at) => `$${at + 1}`).join(", ")})`;
      return {
        text: `SELECT ${KEY_COLUMNS}, calls, first, last FROM usage
               WHERE ${condition} ORDER BY ${KEY_COLUMNS} LIMIT $${start.length + 1}`,
        values: [...start, limit],
      };
    });
    for await (const row of rows) yield { ...row } as unknown as UsageRow;
  }

  /** Begins heartbeats, and ends others or takes their ends off, in one transaction. */
  async declare(begun: readonly Heartbeat[], ended: readonly Heartbeat[] = []): Promise<void> {
    const statements = [...ended.map(endingOf), ...begun.map(beginningOf)];
    await this.#database.transact(statements, { sync: "with commit" });
  }

  /** Returns all heartbeats, ordered by `from`. */
  async heartbeats(): Promise<Heartbeat[]> {
    const text = `SELECT server, policies, since, until, sequence, ending, declared_at
                  FROM heartbeat ORDER BY since, server`;
    return (await this.#database.query({ text })).map(heartbeatOf);
  }

  /**
   * Removes the rows before a day, and the heartbeats that ended before it, after updating
   * {@linkcode Ledger.keptFrom}. A heartbeat without an end ends when the server's next one begins.
   *
   * @param now In milliseconds since the epoch. Only a ledger in which somebody counted a day ago
   *   is evidence that this clock is right.
   * @returns Whether there was such evidence; without it, nothing is removed.
   */
  async forget(beforeDay: string, now: number): Promise<boolean> {
    const heartbeats = await this.heartbeats();
    const countedADayAgo = heartbeats.some(({ from, until }) =>
      from <= now - DAY_MS && until >= now - 2 * DAY_MS
    );
    if (!countedADayAgo) return false;
    if (heartbeats.some(({ from }) => from < Date.parse(beforeDay))) {
      const text = "UPDATE ledger SET kept_from = $1 WHERE kept_from IS NULL OR kept_from < $1";
      await this.#database.transact([{ text, values: [beforeDay] }]);
    }
    const removal = {
      text: `DELETE FROM usage WHERE (${KEY_COLUMNS}) IN (
               SELECT ${KEY_COLUMNS} FROM usage WHERE day < $1 ORDER BY ${KEY_COLUMNS} LIMIT $2
             ) RETURNING day`,
      values: [beforeDay, MAX_PART_ROWS],
    };
    while ((await this.#database.transact([removal]))[0]?.length === MAX_PART_ROWS) {
      await yieldToRequests();
    }
    const ended = `DELETE FROM heartbeat WHERE until < $1 AND (ending IS NOT NULL OR EXISTS (
      SELECT 1 FROM heartbeat AS later
      WHERE later.server = heartbeat.server AND later.since > heartbeat.since AND later.since < $1))`;
    await this.#database.transact([{ text: ended, values: [Date.parse(beforeDay)] }]);
    return true;
  }

  /** Returns the statement that adds rows with distinct keys. */
  #additionOf(rows: readonly UsageRow[]): Statement {
    const all = rows.map((row) => [...keyOf(row), row.calls, row.first, row.last]);
    const { text, values } = this.#database.rowsOf(TYPES, all);
    return {
      text: `INSERT INTO usage (${KEY_COLUMNS}, calls, first, last) ${text}
             ON CONFLICT (${KEY_COLUMNS}) DO UPDATE SET
               calls = usage.calls + excluded.calls,
               first = CASE WHEN excluded.first < usage.first THEN excluded.first
                            ELSE usage.first END,
               last = CASE WHEN excluded.last > usage.last THEN excluded.last ELSE usage.last END`,
      values,
    };
  }

  /** Returns the first day retained, if any record of earlier ones was removed. */
  async keptFrom(): Promise<string | undefined> {
    const [row] = await this.#database.query({ text: "SELECT kept_from FROM ledger" });
    return row?.["kept_from"] as string | null ?? undefined;
  }
}

function beginningOf(heartbeat: Heartbeat): Statement {
  const { server, policies, from, until, end, declaredAt, sequence } = heartbeat;
  return {
    text: `INSERT INTO heartbeat (server, policies, since, until, sequence, ending, declared_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    values: [
      server,
      JSON.stringify(policies),
      from,
      until,
      sequence,
      end ?? null,
      declaredAt ?? null,
    ],
  };
}

function endingOf({ server, from, end, declaredAt }: Heartbeat): Statement {
  return {
    text: "UPDATE heartbeat SET ending = $1, declared_at = $2 WHERE server = $3 AND since = $4",
    values: [end ?? null, declaredAt ?? null, server, from],
  };
}

const keyOf = (row: UsageRow) => KEY.map((column) => row[column]);
const sortKeyOf = (row: UsageRow) => keyOf(row).join("\0");

function heartbeatOf(row: Row): Heartbeat {
  const ending = row["ending"] as "stopped" | "gone" | null;
  const declaredAt = row["declared_at"] as number | null;
  return {
    server: row["server"] as string,
    policies: JSON.parse(row["policies"] as string),
    from: row["since"] as number,
    until: row["until"] as number,
    ...(ending === null ? {} : { end: ending }),
    ...(declaredAt === null ? {} : { declaredAt }),
    sequence: row["sequence"] as number,
  };
}
