/**
 * The ledger, in an SQL database. Any number of servers can share one. Every driver passes
 * `tests/usage/record/ledger_suite.ts`.
 */

import { type Database, pages, type Row, type Statement } from "../../database/sql/database.ts";
import { DAY_MS, dayNumberOf, dayOf } from "../../http/timestamp.ts";
import type { RoutePolicies } from "../../lifecycle/policy.ts";
import { additionsOf, KEY_COLUMNS } from "./additions.ts";
import { HOLD_COLUMNS, type ReadHolds, readHolds, type RecordedHold } from "./holds.ts";
import {
  type ClientHistory,
  type LedgerTime,
  MAX_PART_ROWS,
  type Part,
  type Session,
  type SessionFacts,
  SHORTEST_GAP_MS,
  USAGE_KEY,
  type UsageRow,
} from "./records.ts";

/** The limit on the holds that are read at once: those that end last. */
const MAX_HOLDS = 1_000;

/** The days on which clients called are retained this many times as long as counts. */
const HISTORY_FACTOR = 3;

/** A session to begin. */
export interface NewSession extends SessionFacts, Pick<Session, "id" | "policies"> {
  /**
   * The session before it, as the process has written it, if there is one. If the ledger does not have
   * it so, it has lost calls.
   */
  readonly continued: Pick<Session, "id" | "sequence"> | undefined;
  /** When the process opened the record, by the ledger's time, or before. */
  readonly start: number;
  /**
   * Whether the database's clock is a minute or more behind the ledger's time. Then instants that are
   * ahead of it become the time at which this is written, and the record starts again.
   */
  readonly isClockBehind: boolean;
}

/** What is known of a session that has begun. */
type Begun = { readonly holds: ReadHolds } & Pick<Session, "lost">;

/**
 * A ledger in the tables `media_head_ledger`, `media_head_usage`, `media_head_day`,
 * `media_head_session` and `media_head_hold`. Every method throws {@linkcode StorageError} if the
 * engine fails.
 */
export class Ledger {
  readonly #database: Database;
  /** The ledger's time as an SQL expression. */
  readonly #now: string;
  /** The holds that have begun, as JSON, as an SQL expression. */
  readonly #holds: string;

  /** @param database Closed by the caller. */
  constructor(database: Database) {
    this.#database = database;
    const { currentTime } = database;
    this.#now = `(SELECT CASE WHEN max(reported) > ${currentTime} THEN max(reported)
          ELSE ${currentTime} END
        FROM media_head_session)`;
    this.#holds = `(SELECT ${database.listOf(HOLD_COLUMNS)}
        FROM (SELECT * FROM media_head_hold WHERE since <= ${this.#now}
          ORDER BY until DESC, id LIMIT ${MAX_HOLDS}) AS latest)`;
  }

  async time(): Promise<LedgerTime> {
    const { currentTime } = this.#database;
    const text =
      `SELECT ${currentTime} AS database_time, max(reported) AS latest FROM media_head_session`;
    const [row] = await this.#database.query({ text });
    const databaseTime = row?.["database_time"] as number;
    const latest = row?.["latest"] as number | null ?? 0;
    return { databaseTime, now: Math.max(databaseTime, latest) };
  }

  /**
   * Begins a session with its first part, and ends those that its process began before. Does nothing
   * if it has begun already.
   *
   * @returns The holds, and since when calls are lost, if it has begun now.
   */
  async begin(session: NewSession, part: Part): Promise<Begun | undefined> {
    const { id, opened, process, policies, onDemand, publicUrl, contact, retainDays } = session;
    const { continued, start, isClockBehind } = session;
    const { before, isLast, isStopped } = part;
    const values: (string | number | null)[] = [];
    const text = (value: string | null) => `$${values.push(value)}`;
    const number = (value: number) => `CAST($${values.push(value)} AS bigint)`;
    const [openedText, beforeNumber, startNumber] = [text(opened), number(before), number(start)];
    const columns = {
      id: text(id),
      opened: openedText,
      machine: text(process.machine ?? null),
      pid: number(process.pid),
      process_started: number(process.started),
      policies: text(JSON.stringify(policies)),
      on_demand: number(Number(onDemand)),
      public_url: text(publicUrl ?? null),
      contact: text(contact ?? null),
      retain_days: number(retainDays),
      began: "now",
      // Until the first heartbeat is written as a whole, nothing vouches for what was answered since the
      // last report.
      reported: `CASE WHEN ${number(Number(isLast))} = 1 AND ${beforeNumber} BETWEEN earlier AND now
                   THEN ${beforeNumber} ELSE earlier END`,
      written: "now",
      sequence: "1",
      ended: text(isLast && isStopped ? "stopped" : null),
      lost: continued === undefined ? "CAST(NULL AS bigint)" : `CASE WHEN NOT EXISTS (
                   SELECT 1 FROM media_head_session
                   WHERE id = ${text(continued.id)} AND sequence = ${number(continued.sequence)}
                 ) THEN earlier END`,
    };
    const insertion: Statement = {
      text: `INSERT INTO media_head_session (${Object.keys(columns).join(", ")})
             SELECT ${Object.values(columns).join(", ")}
             FROM (
               SELECT now, coalesce(
                 (SELECT max(reported) FROM media_head_session WHERE opened = ${openedText}),
                 CASE WHEN ${startNumber} < now THEN ${startNumber} ELSE now END
               ) AS earlier
               FROM (SELECT ${this.#now} AS now) AS time
             ) AS times WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING lost, ${this.#holds} AS holds`,
      values,
    };
    // Whatever has begun: one that this ends although it lands late is continued in another one.
    const ending: Statement = {
      text: `UPDATE media_head_session SET ended = 'continued'
             WHERE opened = $1 AND id <> $2 AND ended IS NULL`,
      values: [opened, id],
    };
    const statements = [
      insertion,
      ending,
      ...additionsOf(this.#database, this.#now, part.counts),
      ...isClockBehind ? bringingBack(this.#database) : [],
    ];
    const [begun] = await this.#database.transact(statements, { isConditional: true });
    return begun?.[0] && { holds: holdsIn(begun[0]), lost: lostIn(begun[0]) };
  }

  /**
   * Adds a part to a session.
   *
   * @param session The session before this part.
   * @param policies The policies that the session announces from its beginning on, if they change.
   * @returns The holds, if the part was written. It is not if the session is missing, has another
   *   sequence number or has ended, nor if the machine slept.
   */
  async write(
    { counts, before, lived, isLast, isStopped }: Part,
    session: Pick<Session, "id" | "sequence">,
    policies: RoutePolicies | undefined,
  ): Promise<ReadHolds | undefined> {
    const time = "CAST($5 AS bigint)";
    const reporting = `, ended = $4, reported = CASE WHEN ${time} BETWEEN reported AND ${this.#now}
      THEN ${time} ELSE reported END`;
    const hasLived = `AND ${time} - reported < CAST($6 AS bigint)`;
    const update: Statement = {
      text: `UPDATE media_head_session SET sequence = sequence + 1, written = ${this.#now},
               policies = coalesce($3, policies)
               ${isLast ? reporting : ""}
             WHERE id = $1 AND sequence = $2 AND ended IS NULL ${isLast ? hasLived : ""}
             RETURNING ${this.#holds} AS holds`,
      values: [
        session.id,
        session.sequence,
        policies === undefined ? null : JSON.stringify(policies),
        ...isLast ? [isStopped ? "stopped" : null, before, lived + SHORTEST_GAP_MS] : [],
      ],
    };
    const statements = [update, ...additionsOf(this.#database, this.#now, counts)];
    const [updated] = await this.#database.transact(statements, { isConditional: true });
    return updated?.[0] && holdsIn(updated[0]);
  }

  /** Returns the holds that have begun, with those that are over: of very many, those that end last. */
  async holds(): Promise<ReadHolds> {
    const [row] = await this.#database.query({ text: `SELECT ${this.#holds} AS holds` });
    return row === undefined ? readHolds([]) : holdsIn(row);
  }

  /** Records a hold from now on. */
  async hold(
    { route, until, because }: Pick<RecordedHold, "route" | "until" | "because">,
  ): Promise<RecordedHold> {
    const id = crypto.randomUUID();
    const insertion: Statement = {
      text: `INSERT INTO media_head_hold (id, route, since, until, because)
             SELECT $1, $2, now, CAST($3 AS bigint), $4 FROM (SELECT ${this.#now} AS now) AS time
             RETURNING since`,
      values: [id, route ?? null, until, because],
    };
    const [rows] = await this.#database.transact([insertion], { isSynced: true });
    const since = rows?.[0]?.["since"] as number;
    return { id, route, since, until, released: undefined, because };
  }

  /**
   * Releases holds now.
   *
   * @param ids The ids of the holds. Those that are over, or released already, stay as they are.
   * @returns The ids of those that were released.
   */
  async release(ids: readonly string[]): Promise<string[]> {
    const list = ids.map((_, at) => `$${at + 1}`).join(", ");
    const update: Statement = {
      text: `UPDATE media_head_hold SET released = ${this.#now}
             WHERE id IN (${list}) AND released IS NULL AND until > ${this.#now} RETURNING id`,
      values: ids,
    };
    const [rows = []] = await this.#database.transact([update], { isSynced: true });
    return rows.map(({ id }) => id as string);
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

  /** Returns the names of the clients that have called since a day. */
  async clientsSince(day: string): Promise<string[]> {
    const text = "SELECT DISTINCT client FROM media_head_day WHERE day >= $1";
    const rows = await this.#database.query({ text, values: [dayNumberOf(Date.parse(day))] });
    return rows.map(({ client }) => client as string);
  }

  /**
   * Returns the calls that the removal breaks, from a day on, to any routes but those given: how many
   * by each client, and on which day the last was recorded.
   */
  async callsToOthers(
    routes: readonly string[],
    fromDay: string,
  ): Promise<Pick<ClientHistory, "route" | "client" | "calls" | "last">[]> {
    const others = routes.length === 0
      ? ""
      : `AND route NOT IN (${routes.map((_, at) => `$${at + 2}`).join(", ")})`;
    const text = `SELECT route, client, CAST(sum(calls) AS bigint) AS calls, max(day) AS last
                  FROM media_head_day WHERE day >= $1 ${others}
                  GROUP BY route, client ORDER BY route, client`;
    const values = [dayNumberOf(Date.parse(fromDay)), ...routes];
    return (await this.#database.query({ text, values })).map((row) => ({
      route: row["route"] as string,
      client: row["client"] as string,
      calls: row["calls"] as number,
      last: dayOf(row["last"] as number * DAY_MS),
    }));
  }

  /** Returns the days on which each client called each route, where there are any. */
  async histories(): Promise<ClientHistory[]> {
    const text = `
      SELECT route, client, count(*) AS days, CAST(sum(calls) AS bigint) AS calls,
        min(day) AS first, max(day) AS last, max(pause) AS pause,
        max(CASE WHEN is_last = 1 THEN calls END) AS last_calls
      FROM (
        SELECT route, client, day, calls, day - lag(day) OVER pauses AS pause,
          CASE WHEN lead(day) OVER pauses IS NULL THEN 1 ELSE 0 END AS is_last
        FROM media_head_day WINDOW pauses AS (PARTITION BY route, client ORDER BY day)
      ) AS days GROUP BY route, client`;
    const rows = await this.#database.query({ text });
    return rows.map((row) => ({
      route: row["route"] as string,
      client: row["client"] as string,
      calls: row["calls"] as number,
      days: row["days"] as number,
      first: dayOf(row["first"] as number * DAY_MS),
      last: dayOf(row["last"] as number * DAY_MS),
      lastCalls: row["last_calls"] as number,
      pause: row["pause"] as number | null ?? undefined,
    }));
  }

  /** Returns whether a client is on record, on any day. */
  async hasClient(client: string): Promise<boolean> {
    const text = `SELECT client FROM media_head_usage WHERE client = $1
                  UNION SELECT client FROM media_head_day WHERE client = $1 LIMIT 1`;
    return (await this.#database.query({ text, values: [client] })).length > 0;
  }

  /** Returns all sessions, in the order in which they began. Reads incrementally. */
  async sessions(): Promise<Session[]> {
    const rows = pages(this.#database, (after, limit) => {
      const start = after === undefined ? [] : [after["began"], after["id"]] as const;
      const condition = after === undefined ? "" : "WHERE (began, id) > ($1, $2)";
      return {
        text: `SELECT * FROM media_head_session ${condition}
               ORDER BY began, id LIMIT $${start.length + 1}`,
        values: [...start, limit] as (string | number)[],
      };
    });
    const sessions: Session[] = [];
    for await (const row of rows) sessions.push(sessionOf(row));
    return sessions;
  }

  async session(id: string): Promise<Session | undefined> {
    const text = "SELECT * FROM media_head_session WHERE id = $1";
    return (await this.#database.query({ text, values: [id] })).map(sessionOf)[0];
  }

  /**
   * Returns the instant before which the record has nothing: the first day retained, or the last time
   * at which the record started again; `undefined` if neither has been. Days are deleted after it has
   * moved, so read it after the rows.
   */
  async started(): Promise<number | undefined> {
    const [row] = await this.#database.query({ text: "SELECT started FROM media_head_ledger" });
    return row?.["started"] as number | null ?? undefined;
  }

  /**
   * Deletes some of the rows before a day, of the sessions whose last report was before it, and of the
   * holds that ended before it. The days on which clients called are retained
   * {@linkcode HISTORY_FACTOR} times as long. Moves the start of the record first. Deletes nothing
   * unless a session was counting a day ago: that is evidence that the time is right.
   *
   * @param now Milliseconds since the epoch.
   * @returns Whether all is deleted, or there was no such evidence.
   */
  async forget(beforeDay: string, now: number): Promise<"done" | "more" | "refused"> {
    const counted = await this.#database.query({
      text: "SELECT id FROM media_head_session WHERE began <= $1 AND reported >= $2 LIMIT 1",
      values: [now - DAY_MS, now - 2 * DAY_MS],
    });
    if (counted.length === 0) return "refused";
    const before = Date.parse(beforeDay);
    const retained = dayNumberOf(now) - dayNumberOf(before);
    const firstDay = dayNumberOf(now) - retained * HISTORY_FACTOR;
    const [, ...deleted] = await this.#database.transact([
      {
        text: `UPDATE media_head_ledger SET started = $1
               WHERE started IS NULL OR started < $1 RETURNING id`,
        values: [before],
      },
      deletionOf("media_head_usage", KEY_COLUMNS, "day", beforeDay),
      deletionOf("media_head_day", "day, route, client", "day", firstDay),
      deletionOf("media_head_hold", "id", "until", before),
      deletionOf("media_head_session", "id", "reported", before),
    ]);
    return deleted.some(({ length }) => length === MAX_PART_ROWS) ? "more" : "done";
  }
}

/** Returns the statement that deletes the first rows of a table before a limit, a few at a time. */
function deletionOf(table: string, key: string, column: string, limit: string | number): Statement {
  return {
    text: `DELETE FROM ${table} WHERE (${key}) IN (
             SELECT ${key} FROM ${table} WHERE ${column} < $1 ORDER BY ${key} LIMIT $2)
           RETURNING ${column}`,
    values: [limit, MAX_PART_ROWS],
  };
}

/**
 * Returns the statements that start the record again, because its time was ahead. Later instants become
 * the database's time: a hold that was to begin later lasts as long as it would have, and rows of later
 * days become today's. They delete nothing, and end no session.
 */
function bringingBack(
  { currentTime, dayOf }: Pick<Database, "currentTime" | "dayOf">,
): Statement[] {
  const now = "(SELECT started FROM media_head_ledger)"; // the same in every statement
  const [today, dayNumber] = [dayOf(now), `${now} / ${DAY_MS}`];
  const notAfter = (column: string) =>
    `${column} = CASE WHEN ${column} > ${now} THEN ${now} ELSE ${column} END`;
  const otherColumns = KEY_COLUMNS.replace("day, ", "");
  return [
    `UPDATE media_head_ledger SET started = ${currentTime}`,
    `UPDATE media_head_session SET ${
      ["began", "reported", "written", "lost"].map(notAfter).join(", ")
    } WHERE written > ${now} OR began > ${now}`,
    `INSERT INTO media_head_usage AS usage (${KEY_COLUMNS}, calls, last)
     SELECT ${today}, ${otherColumns}, sum(calls), ${now} FROM media_head_usage WHERE day > ${today}
     GROUP BY ${otherColumns}
     ON CONFLICT (${KEY_COLUMNS}) DO UPDATE SET calls = usage.calls + excluded.calls,
     last = excluded.last`,
    `DELETE FROM media_head_usage WHERE day > ${today}`,
    `UPDATE media_head_usage SET last = ${now} WHERE last > ${now}`,
    `INSERT INTO media_head_day AS earlier (day, route, client, calls)
     SELECT ${dayNumber}, route, client, sum(calls) FROM media_head_day WHERE day > ${dayNumber}
     GROUP BY route, client
     ON CONFLICT (day, route, client)
     DO UPDATE SET calls = earlier.calls + excluded.calls`,
    `DELETE FROM media_head_day WHERE day > ${dayNumber}`,
    `UPDATE media_head_hold SET ${notAfter("since")}, ${notAfter("released")},
     until = CASE WHEN since > ${now} THEN until - since + ${now} ELSE until END
     WHERE since > ${now} OR released > ${now}`,
  ].map((text) => ({ text }));
}

function holdsIn(row: Row): ReadHolds {
  return readHolds(JSON.parse(row["holds"] as string));
}

function lostIn(row: Row): Session["lost"] {
  return row["lost"] as number | null ?? undefined;
}

function sessionOf(row: Row): Session {
  return {
    id: row["id"] as string,
    opened: row["opened"] as string,
    process: {
      machine: row["machine"] as string | null ?? undefined,
      pid: row["pid"] as number,
      started: row["process_started"] as number,
    },
    policies: JSON.parse(row["policies"] as string),
    onDemand: row["on_demand"] === 1,
    publicUrl: row["public_url"] as string | null ?? undefined,
    contact: row["contact"] as string | null ?? undefined,
    retainDays: row["retain_days"] as number,
    began: row["began"] as number,
    reported: row["reported"] as number,
    written: row["written"] as number,
    sequence: row["sequence"] as number,
    ended: row["ended"] as Session["ended"] | null ?? undefined,
    lost: lostIn(row),
  };
}
