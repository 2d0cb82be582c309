/**
 * The ledger, in an SQL database. Any number of servers share one. Every driver passes
 * `tests/storage/ledger/ledger_suite.ts`.
 */

import { DAY_MS } from "./day.ts";
import {
  type FlushPart,
  type Heartbeat,
  isRelease,
  keyOf,
  type LedgerRow,
  type LedgerTime,
  MAX_PART_ROWS,
  mergeRows,
  RELEASE_KEY,
  type ReleaseRow,
  USAGE_KEY,
  type UsageRow,
} from "./records.ts";
import {
  chunksOf,
  type Database,
  pages,
  type Row,
  type Statement,
} from "../database/sql/database.ts";
import { yieldToRequests } from "../../async/yield.ts";

/** The tables of counts: their keys, and the columns that are merged. */
const USAGE = { name: "usage", key: USAGE_KEY, sums: ["calls", "first", "last"] } as const;
const RELEASES = { name: "client_release", key: RELEASE_KEY, sums: ["calls", "last"] } as const;

type Table = typeof USAGE | typeof RELEASES;

/**
 * A ledger in the tables `ledger`, `usage`, `client_release` and `heartbeat`. Every method throws
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
    const sorted = mergeRows(rows).sort((a, b) => keyOf(a) < keyOf(b) ? -1 : 1);
    const additions = [USAGE, RELEASES].flatMap((table) => {
      const own = sorted.filter((row) => isRelease(row) === (table === RELEASES));
      return chunksOf(own, this.#database.batch).map((rows) => this.#additionOf(table, rows));
    });
    const [extended] = await this.#database.transact([extension, ...additions], {
      isConditional: true,
      sync: end ? "with commit" : until > own.until ? "after commit" : undefined,
    });
    return extended?.length === 1;
  }

  /** Lists the rows of usage from a day on, ordered by day, reading incrementally. */
  usage(fromDay: string): AsyncGenerator<UsageRow> {
    return this.#list<UsageRow>(USAGE, fromDay);
  }

  /** Lists the rows of releases in the same way. */
  releases(fromDay: string): AsyncGenerator<ReleaseRow> {
    return this.#list<ReleaseRow>(RELEASES, fromDay);
  }

  async *#list<T>({ name, key, sums }: Table, fromDay: string): AsyncGenerator<T> {
    const columns = key.join(", ");
    const rows = pages(this.#database, (after, limit) => {
      const start = after === undefined ? [fromDay] : key.map((column) => after[column] as string);
      const condition = after === undefined
        ? "day >= $1"
        : `(${columns}) > (${key.map((_, at) => `$${at + 1}`).join(", ")})`;
      return {
        text: `SELECT ${columns}, ${sums.join(", ")} FROM ${name}
               WHERE ${condition} ORDER BY ${columns} LIMIT $${start.length + 1}`,
        values: [...start, limit],
      };
    });
    for await (const row of rows) yield { ...row } as T;
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
    for (const { name, key } of [USAGE, RELEASES]) {
      const columns = key.join(", ");
      const removal = {
        text: `DELETE FROM ${name} WHERE (${columns}) IN (
                 SELECT ${columns} FROM ${name} WHERE day < $1 ORDER BY ${columns} LIMIT $2
               ) RETURNING day`,
        values: [beforeDay, MAX_PART_ROWS],
      };
      while ((await this.#database.transact([removal]))[0]?.length === MAX_PART_ROWS) {
        await yieldToRequests();
      }
    }
    const ended = `DELETE FROM heartbeat WHERE until < $1 AND (ending IS NOT NULL OR EXISTS (
      SELECT 1 FROM heartbeat AS later
      WHERE later.server = heartbeat.server AND later.since > heartbeat.since AND later.since < $1))`;
    await this.#database.transact([{ text: ended, values: [Date.parse(beforeDay)] }]);
    return true;
  }

  /** Returns the statement that adds rows with distinct keys to their table. */
  #additionOf({ name, key, sums }: Table, rows: readonly LedgerRow[]): Statement {
    const columns = [...key, ...sums];
    const types = [...key.map(() => "text" as const), ...sums.map(() => "bigint" as const)];
    const all = rows.map((row) => columns.map((column) => Object(row)[column]));
    const { text, values } = this.#database.rowsOf(types, all);
    const merged = sums.map((sum) => {
      const [before, added] = [`${name}.${sum}`, `excluded.${sum}`];
      if (sum === "calls") return `calls = ${before} + ${added}`;
      const isOver = `${added} ${sum === "first" ? "<" : ">"} ${before}`;
      return `${sum} = CASE WHEN ${isOver} THEN ${added} ELSE ${before} END`;
    });
    return {
      text: `INSERT INTO ${name} (${columns.join(", ")}) ${text}
             ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${merged.join(", ")}`,
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
