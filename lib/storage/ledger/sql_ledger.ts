/**
 * The ledger, in an SQL database. Any number of servers share one. Every driver passes
 * `tests/storage/ledger/ledger_suite.ts`.
 */

import { DAY_MS } from "./day.ts";
import {
  addUp,
  type Heartbeat,
  type HeartbeatExtension,
  type LedgerTime,
  type UsageRow,
} from "./ledger.ts";
import {
  chunksOf,
  type Database,
  pages,
  type Row,
  type Statement,
  yieldToRequests,
} from "../database/sql/database.ts";

/** Rows per transaction, during which SQLite blocks the thread. */
const PART = 100;

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
   * Adds rows, merging those with the same key: sums `calls`, and widens `first` and `last`.
   *
   * @param onAdded Called with each part once it is committed, so that only the rest is retried
   *   after a fault.
   * @param extension A heartbeat to extend together with the last part: neither is lost alone.
   * @returns Whether that heartbeat was there, without an end; not if the ledger was restored from
   *   a backup, for example.
   */
  async add(
    rows: readonly UsageRow[],
    onAdded: (rows: readonly UsageRow[]) => void,
    extension?: HeartbeatExtension,
  ): Promise<boolean> {
    const parts = rows.length === 0 ? [[]] : chunksOf(rows, PART);
    let isExtended = false;
    for (const [index, part] of parts.entries()) {
      // Sorted, so that two servers that add the same rows cannot deadlock.
      const sorted = addUp(part).sort((a, b) => sortKeyOf(a) < sortKeyOf(b) ? -1 : 1);
      const last = extension && index === parts.length - 1 ? [extensionOf(extension)] : [];
      const results = await this.#database.transact([
        ...chunksOf(sorted, this.#database.batch).map((rows) => this.#additionOf(rows)),
        ...last,
      ]);
      isExtended = last.length > 0 && results.at(-1)?.length === 1;
      onAdded(part);
      if (index < parts.length - 1) await yieldToRequests();
    }
    return isExtended;
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

  /** Records a heartbeat, replacing the one with the same `server` and `from`. */
  async recordHeartbeat({ server, policies, from, until, end }: Heartbeat): Promise<void> {
    await this.#database.transact([{
      text: `INSERT INTO heartbeat (server, policies, since, until, ending)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (since, server)
             DO UPDATE SET until = excluded.until, ending = excluded.ending`,
      values: [server, JSON.stringify(policies), from, until, end ?? null],
    }]);
  }

  /** Returns all heartbeats, ordered by `from`. */
  async heartbeats(): Promise<Heartbeat[]> {
    const text = `SELECT server, policies, since, until, ending FROM heartbeat
                  ORDER BY since, server`;
    return (await this.#database.query({ text })).map(heartbeatOf);
  }

  /**
   * Removes the rows before a day, and the heartbeats that ended before it, after updating
   * {@linkcode Ledger.keptFrom}.
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
      values: [beforeDay, PART],
    };
    while ((await this.#database.transact([removal]))[0]?.length === PART) await yieldToRequests();
    const ended = "DELETE FROM heartbeat WHERE until < $1 AND ending IS NOT NULL";
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

function extensionOf({ server, from, until, end, known }: HeartbeatExtension): Statement {
  return {
    text: `UPDATE heartbeat SET until = $1, ending = $2
           WHERE server = $3 AND since = $4 AND until >= $5 AND ending IS NULL RETURNING server`,
    values: [until, end ?? null, server, from, known],
  };
}

const keyOf = (row: UsageRow) => KEY.map((column) => row[column]);
const sortKeyOf = (row: UsageRow) => keyOf(row).join("\0");

function heartbeatOf(row: Row): Heartbeat {
  const ending = row["ending"] as "stopped" | "gone" | null;
  return {
    server: row["server"] as string,
    policies: JSON.parse(row["policies"] as string),
    from: row["since"] as number,
    until: row["until"] as number,
    ...(ending === null ? {} : { end: ending }),
  };
}
