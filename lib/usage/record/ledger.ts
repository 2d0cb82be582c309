/**
 * The ledger, in an SQL database. Any number of servers can share one. Every driver passes
 * `tests/usage/record/ledger_suite.ts`.
 */

import { yieldToRequests } from "../../async/yield.ts";
import {
  chunksOf,
  type Database,
  pages,
  type Row,
  type Statement,
} from "../../database/sql/database.ts";
import { DAY_MS, dayOf } from "./day.ts";
import {
  type FlushPart,
  keyOf,
  type LedgerTime,
  MAX_PART_ROWS,
  MINUTE_MS,
  type Session,
  USAGE_KEY,
  type UsageRow,
} from "./records.ts";

const KEY_COLUMNS = USAGE_KEY.join(", ");
const SESSION_COLUMNS =
  "id, policies, may_start_unregistered, public_url, contact, machine, pid, " +
  "process_started, began, reported, clock, restarted, sequence, ended, ended_by, lead";

/** The facts with which a session begins. Its clock is read just before it is sent. */
type NewSession = Omit<
  Session,
  "began" | "reported" | "restarted" | "ended" | "endedBy" | "lead"
>;

/** The effects of a new session on the process's previous one, and on the record. */
export interface BeginOptions {
  /** The process's previous session, to lapse. If its sequence number differs, nothing is done. */
  readonly lapsed?: Session | undefined;
  /** The process's previous session, if the ledger lost its state: the record starts again. */
  readonly lost?: Session | undefined;
}

/**
 * A ledger in the tables `media_head_ledger`, `media_head_usage` and `media_head_session`. Every
 * method throws {@linkcode StorageError} if the engine fails.
 */
export class Ledger {
  readonly #database: Database;
  /** The ledger's time as an SQL expression. */
  readonly #now: string;

  /** @param database Closed by the caller. */
  constructor(database: Database) {
    this.#database = database;
    const { clock } = database;
    this.#now = `(SELECT CASE WHEN max(reported) > ${clock} THEN max(reported) ELSE ${clock} END
        FROM media_head_session)`;
  }

  async time(): Promise<LedgerTime> {
    const { clock: now } = this.#database;
    const text = `SELECT ${now} AS clock, max(reported) AS latest FROM media_head_session`;
    const [row] = await this.#database.query({ text });
    const clock = row?.["clock"] as number;
    return { clock, now: Math.max(clock, row?.["latest"] as number | null ?? 0) };
  }

  /**
   * Begins a session now. The record starts with the first session. It starts again if a session
   * was lost, or if the database's clock is a minute or more behind the ledger's time. A session
   * that is sent again begins again.
   *
   * @returns When the session began; `undefined` if the session to lapse has another sequence
   *   number or has ended. In that case, nothing is recorded.
   */
  async begin(
    session: NewSession,
    { lapsed, lost }: BeginOptions = {},
  ): Promise<number | undefined> {
    const { id, policies, process, clock, sequence } = session;
    const { mayStartUnregistered = false, publicUrl, contact } = session;
    const lapse = "UPDATE media_head_session SET ended = 'lapsed' WHERE id = $1 AND ended IS NULL";
    const ending: Statement[] = [];
    if (lapsed !== undefined) {
      const text = `${lapse} AND sequence = $2 RETURNING id`;
      ending.push({ text, values: [lapsed.id, lapsed.sequence] });
    }
    if (lost !== undefined) ending.push({ text: lapse, values: [lost.id] });
    const restart: Statement = {
      text: `UPDATE media_head_ledger SET started = ${this.#now} WHERE started IS NULL OR $1 = 1
             OR ${this.#now} - ${this.#database.clock} >= ${MINUTE_MS}`,
      values: [lost === undefined ? 0 : 1],
    };
    const beginning: Statement = {
      text: `INSERT INTO media_head_session
               (id, policies, machine, pid, process_started, clock, began, reported, sequence,
               may_start_unregistered, public_url, contact)
             SELECT $1, $2, $3, CAST($4 AS bigint), CAST($5 AS bigint), CAST($6 AS bigint), now, now, $7,
               CAST($8 AS bigint), $9, $10
             FROM (SELECT ${this.#now} AS now) AS time WHERE true
             ON CONFLICT (id) DO UPDATE SET began = excluded.began, reported = excluded.reported,
             clock = excluded.clock, restarted = NULL RETURNING began`,
      values: [
        id,
        JSON.stringify(policies),
        process.machine ?? null,
        process.pid,
        process.started,
        clock,
        sequence,
        Number(mayStartUnregistered),
        publicUrl ?? null,
        contact ?? null,
      ],
    };
    const results = await this.#database.transact([...ending, restart, beginning], {
      isConditional: lapsed !== undefined,
      isSynced: true,
    });
    return results[ending.length + 1]?.[0]?.["began"] as number | undefined;
  }

  /**
   * Records one part of a flush: extends the session, and adds the counts to those with the same
   * key and day.
   *
   * @param session The session before this part.
   * @returns Whether the part was recorded. It is not if the session is missing, has another
   *   sequence number, has ended, or had its last report set back by a restart of the record.
   */
  async add(
    { counts, at, reported, clock, isStopped }: FlushPart,
    session: Session,
  ): Promise<boolean> {
    // A report never moves back, and never past the ledger's time: if the database's clock was set
    // back since that time was read, a gate that was asked meanwhile has yet to hear of later calls.
    const isReport = `$4 BETWEEN reported AND ${this.#now}`;
    const extension: Statement = {
      text: `UPDATE media_head_session SET sequence = sequence + 1, ended = $5,
             reported = CASE WHEN ${isReport} THEN $4 ELSE reported END,
             clock = CASE WHEN ${isReport} THEN $6 ELSE clock END,
             restarted = CASE WHEN ${isReport} THEN NULL ELSE restarted END
             WHERE id = $1 AND sequence = $2 AND ended IS NULL AND reported >= $3 RETURNING id`,
      values: [
        session.id,
        session.sequence,
        session.reported,
        reported ?? null, // and then it is no report
        isStopped ? "stopped" : null,
        clock ?? session.clock,
      ],
    };
    // Sorted, so that two servers that add the same rows cannot deadlock.
    const sorted = counts.toSorted((a, b) => keyOf(a) < keyOf(b) ? -1 : 1);
    const rows = sorted.map((count): UsageRow => ({ ...count, day: dayOf(at), last: at }));
    const additions = chunksOf(rows, this.#database.batch).map((rows) => this.#additionOf(rows));
    const [extended] = await this.#database.transact([extension, ...additions], {
      isConditional: true,
      isSynced: reported !== undefined,
    });
    return extended?.length === 1;
  }

  /** Lists the rows from a day on, by day. Reads incrementally. */
  async *usage(fromDay: string): AsyncGenerator<UsageRow> {
    const rows = pages(this.#database, (after, limit) => {
      const start = after === undefined
        ? [fromDay]
        : USAGE_KEY.map((column) => after[column] as string);
      const condition = after === undefined
        ? "day >= $1"
        : `(${KEY_COLUMNS}) > (${USAGE_KEY.map((_, at) => `$${at + 1}`).join(", ")})`;
      return {
        text: `SELECT ${KEY_COLUMNS}, calls, last FROM media_head_usage
               WHERE ${condition} ORDER BY ${KEY_COLUMNS} LIMIT $${start.length + 1}`,
        values: [...start, limit],
      };
    });
    for await (const row of rows) yield { ...row } as unknown as UsageRow;
  }

  /** Returns whether a client is on record, on any day. */
  async hasClient(client: string): Promise<boolean> {
    const text = "SELECT client FROM media_head_usage WHERE client = $1 LIMIT 1";
    return (await this.#database.query({ text, values: [client] })).length > 0;
  }

  /** Returns all sessions, in the order in which they began. */
  async sessions(): Promise<Session[]> {
    const text = `SELECT ${SESSION_COLUMNS} FROM media_head_session ORDER BY began, id`;
    return (await this.#database.query({ text })).map(sessionOf);
  }

  async session(id: string): Promise<Session | undefined> {
    const text = `SELECT ${SESSION_COLUMNS} FROM media_head_session WHERE id = $1`;
    return (await this.#database.query({ text, values: [id] })).map(sessionOf)[0];
  }

  /**
   * Returns the start of the record: the first session, the last restart, or the first day
   * retained, whichever is latest; `undefined` if there never was a session. Days are deleted after
   * the start has moved, so read it after the rows.
   */
  async started(): Promise<number | undefined> {
    const [row] = await this.#database.query({ text: "SELECT started FROM media_head_ledger" });
    return row?.["started"] as number | null ?? undefined;
  }

  /**
   * Ends sessions as gone. A session that has ended stays as it is.
   *
   * @param endedBy When their processes had ended, in milliseconds since the epoch.
   * @param lead How far the ledger's time is ahead of the operator's clock, in milliseconds.
   */
  async end(ids: readonly string[], endedBy: number, lead = 0): Promise<void> {
    const text = `UPDATE media_head_session SET ended = 'gone', ended_by = $2, lead = $3
                  WHERE id = $1 AND ended IS NULL`;
    const statements = ids.map((id) => ({ text, values: [id, endedBy, lead] }));
    await this.#database.transact(statements, { isSynced: true });
  }

  /**
   * Starts the record again, at the present time of the database's clock. Later times become that
   * time, and rows of later days become today's. Deletes nothing, and ends no session.
   *
   * @param here The clock of the operator's machine, in milliseconds since the epoch.
   * @returns The start of the record, in milliseconds since the epoch.
   */
  async restart(here: number): Promise<number> {
    const { clock: now } = await this.time();
    const today = dayOf(now);
    const key = KEY_COLUMNS.replace("day", "$1");
    const notAfter = (column: string) =>
      `${column} = CASE WHEN ${column} > $1 THEN $1 ELSE ${column} END`;
    await this.#database.transact([
      { text: "UPDATE media_head_ledger SET started = $1", values: [now] },
      {
        text: `UPDATE media_head_session SET ${notAfter("began")}, ${notAfter("reported")}
               WHERE reported > $1`,
        values: [now],
      },
      {
        text: `UPDATE media_head_session SET restarted = $1, clock = $2
               WHERE ended IS NULL OR ended_by IS NOT NULL`,
        values: [now, here],
      },
      {
        text: `INSERT INTO media_head_usage AS usage (${KEY_COLUMNS}, calls, last)
               SELECT ${key}, sum(calls), $2 FROM media_head_usage WHERE day > $1
               GROUP BY ${KEY_COLUMNS.replace("day, ", "")}
               ON CONFLICT (${KEY_COLUMNS}) DO UPDATE SET calls = usage.calls + excluded.calls,
               last = excluded.last`,
        values: [today, now],
      },
      { text: "DELETE FROM media_head_usage WHERE day > $1", values: [today] },
      { text: "UPDATE media_head_usage SET last = $1 WHERE last > $1", values: [now] },
    ], { isSynced: true });
    return now;
  }

  /**
   * Deletes the rows before a day, and the sessions that ended before it; those that are gone, if
   * they ended by both clocks. Moves the start of the record first. Deletes nothing unless a session
   * was counting a day ago: that is evidence that the time is right.
   *
   * @param now Milliseconds since the epoch.
   * @returns Whether there was such evidence.
   */
  async forget(beforeDay: string, now: number): Promise<boolean> {
    const counted = await this.#database.query({
      text: "SELECT id FROM media_head_session WHERE began <= $1 AND reported >= $2 LIMIT 1",
      values: [now - DAY_MS, now - 2 * DAY_MS],
    });
    if (counted.length === 0) return false;
    const before = Date.parse(beforeDay);
    const start = "UPDATE media_head_ledger SET started = $1 WHERE started < $1";
    await this.#database.transact([{ text: start, values: [before] }]);
    const deletion = {
      text: `DELETE FROM media_head_usage WHERE (${KEY_COLUMNS}) IN (
               SELECT ${KEY_COLUMNS} FROM media_head_usage WHERE day < $1
               ORDER BY ${KEY_COLUMNS} LIMIT $2) RETURNING day`,
      values: [beforeDay, MAX_PART_ROWS],
    };
    while ((await this.#database.transact([deletion]))[0]?.length === MAX_PART_ROWS) {
      await yieldToRequests();
    }
    const ended = `DELETE FROM media_head_session
      WHERE ended IS NOT NULL AND reported < $1 AND (ended_by IS NULL OR ended_by + lead < $1
      AND ended_by - clock + COALESCE(restarted, reported) < $1)`; // see endOf()
    await this.#database.transact([{ text: ended, values: [before] }]);
    return true;
  }

  /** Returns the statement that adds rows. Their keys must be distinct. */
  #additionOf(rows: readonly UsageRow[]): Statement {
    const columns = [...USAGE_KEY, "calls", "last"] as const;
    const types = [...USAGE_KEY.map(() => "text" as const), "bigint", "bigint"] as const;
    const all = rows.map((row) => columns.map((column) => row[column]));
    const { text, values } = this.#database.rowsOf(types, all);
    return {
      text: `INSERT INTO media_head_usage AS usage (${columns.join(", ")}) ${text}
             ON CONFLICT (${KEY_COLUMNS}) DO UPDATE SET calls = usage.calls + excluded.calls,
             last = CASE WHEN excluded.last > usage.last THEN excluded.last ELSE usage.last END`,
      values,
    };
  }
}

function sessionOf(row: Row): Session {
  return {
    id: row["id"] as string,
    policies: JSON.parse(row["policies"] as string),
    mayStartUnregistered: row["may_start_unregistered"] === 1,
    publicUrl: row["public_url"] as string | null ?? undefined,
    contact: row["contact"] as string | null ?? undefined,
    process: {
      machine: row["machine"] as string | null ?? undefined,
      pid: row["pid"] as number,
      started: row["process_started"] as number,
    },
    began: row["began"] as number,
    reported: row["reported"] as number,
    clock: row["clock"] as number,
    restarted: row["restarted"] as number | null ?? undefined,
    sequence: row["sequence"] as number,
    ended: row["ended"] as Session["ended"] | null ?? undefined,
    endedBy: row["ended_by"] as number | null ?? undefined,
    lead: row["lead"] as number | null ?? undefined,
  };
}
