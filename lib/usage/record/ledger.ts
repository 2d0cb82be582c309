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
import { RefusedError } from "../../errors/refused_error.ts";
import { additionOf, clientDaysOf, daysAdditionOf, jsonOf, KEY_COLUMNS } from "./additions.ts";
import { DAY_MS, dayNumberOf, dayOf } from "../../http/timestamp.ts";
import { HOLD_COLUMNS, type ReadHolds, readHolds, type RecordedHold } from "./holds.ts";
import { PATIENCE_MS } from "./intents.ts";
import {
  type ClientHistory,
  type FlushPart,
  type HeartbeatIntents,
  type Intent,
  keyOf,
  LEASE_MS,
  type LedgerTime,
  MAX_PART_ROWS,
  type Session,
  SHORTEST_GAP_MS,
  USAGE_KEY,
  type UsageRow,
} from "./records.ts";

const SESSION_COLUMNS =
  "id, policies, unmounted, may_serve_unrecorded, public_url, contact, retain_days, " +
  "machine, pid, process_started, began, reported, timeline, sequence, ended";

/** The limit on the holds that are read at once: those that end last. */
const MAX_HOLDS = 1_000;

/** The facts with which a session begins. */
export type NewSession = Omit<Session, "began" | "reported" | "timeline" | "ended">;

/** The routes of a process, by whether they are mounted. */
export type Mounts = Pick<Session, "policies" | "unmounted">;

/** The effects of a new session on the process's previous one, and on the record. */
export interface BeginOptions {
  /** The process's previous session, to lapse. If its sequence number differs, nothing is done. */
  readonly lapsed?: Session | undefined;
  /** The process's previous session, if the ledger lost its state: the record starts again. */
  readonly lost?: Session | undefined;
}

export interface BegunSession {
  readonly began: number;
  readonly timeline: string;
  /** The ids of the intents that it has from its previous session. */
  readonly intents: readonly string[];
}

/** The times of a ledger when a part was recorded, and with a heartbeat the holds. */
interface AddedPart extends LedgerTime {
  readonly holds?: ReadHolds;
}

/** The days on which clients called are retained this many times as long as counts. */
const HISTORY_FACTOR = 3;

/**
 * A ledger in the tables `media_head_ledger`, `media_head_usage`, `media_head_day`,
 * `media_head_session`, `media_head_intent` and `media_head_hold`. Every method throws {@linkcode StorageError} if the engine fails.
 */
export class Ledger {
  readonly #database: Database;
  /** The ledger's time as an SQL expression. */
  readonly #now: string;

  /** @param database Closed by the caller. */
  constructor(database: Database) {
    this.#database = database;
    const { currentTime } = database;
    this.#now = `(SELECT CASE WHEN max(reported) > ${currentTime} THEN max(reported)
          ELSE ${currentTime} END
        FROM media_head_session)`;
  }

  /** The holds that have begun, as JSON, as an SQL expression. */
  get #holds(): string {
    return `(SELECT ${this.#database.listOf(HOLD_COLUMNS)}
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
   * Returns the database's timeline. It changes when the database is restored or fails over, where
   * the engine can tell.
   *
   * @throws {RefusedError} If the database is a replica, which may be behind.
   */
  async timeline(): Promise<string> {
    const text = `SELECT ${this.#database.timeline} AS timeline`;
    const timeline = (await this.#database.query({ text }))[0]?.["timeline"];
    if (typeof timeline === "string") return timeline;
    throw new RefusedError("the database is a replica, which may be behind; expected the primary");
  }

  /**
   * Begins a session now. The record starts with the first session. It starts again, a lease later
   * than now, if a session was lost, or if the database's clock is a minute or more behind the
   * ledger's time: by then, no intent that was lost is in use any more. A session that is sent again
   * begins again. It takes the intents of the previous session, and renews them.
   *
   * @returns `undefined` if the session to lapse has another sequence number or has ended. In that
   *   case, nothing is recorded.
   */
  async begin(
    session: NewSession,
    { lapsed, lost }: BeginOptions = {},
  ): Promise<BegunSession | undefined> {
    const { id, policies, process, sequence } = session;
    const { mayServeUnrecorded = false, publicUrl, contact, retainDays } = session;
    const lapse = "UPDATE media_head_session SET ended = 'lapsed' WHERE id = $1 AND ended IS NULL";
    const ending: Statement[] = [];
    if (lapsed !== undefined) {
      const text = `${lapse} AND sequence = $2 RETURNING id`;
      ending.push({ text, values: [lapsed.id, lapsed.sequence] });
    }
    if (lost !== undefined) ending.push({ text: lapse, values: [lost.id] });
    const first: Statement = {
      text: `UPDATE media_head_ledger SET started = ${this.#now} WHERE started IS NULL`,
    };
    const restart: Statement = {
      text: `UPDATE media_head_ledger
             SET started = CASE WHEN started > ${this.#now} + ${LEASE_MS} THEN started
                           ELSE ${this.#now} + ${LEASE_MS} END
             WHERE $1 = 1 OR ${this.#now} - ${this.#database.currentTime} >= ${SHORTEST_GAP_MS}`,
      values: [lost === undefined ? 0 : 1],
    };
    const beginning: Statement = {
      text: `INSERT INTO media_head_session
               (id, policies, machine, pid, process_started, began, reported, timeline, sequence,
               may_serve_unrecorded, public_url, contact, retain_days, unmounted)
             SELECT $1, $2, $3, CAST($4 AS bigint), CAST($5 AS bigint), now, now,
               ${this.#database.timeline}, $6, CAST($7 AS bigint), $8, $9, CAST($10 AS bigint),
               $11
             FROM (SELECT ${this.#now} AS now) AS time WHERE true
             ON CONFLICT (id) DO UPDATE SET began = excluded.began, reported = excluded.reported,
             timeline = excluded.timeline, policies = excluded.policies,
             unmounted = excluded.unmounted
             RETURNING began, timeline`,
      values: [
        id,
        JSON.stringify(policies),
        process.machine ?? null,
        process.pid,
        process.started,
        sequence,
        Number(mayServeUnrecorded),
        publicUrl ?? null,
        contact ?? null,
        retainDays,
        jsonOf(session.unmounted),
      ],
    };
    const taking: Statement = {
      text: `UPDATE media_head_intent SET session = $1, until = ${this.#now} + ${LEASE_MS},
             sequence = CASE WHEN session = $1 THEN sequence ELSE 0 END
             WHERE session IN ($1, $2) RETURNING id`,
      values: [id, (lapsed ?? lost)?.id ?? id],
    };
    const statements = [...ending, first, restart, beginning, taking];
    const results = await this.#database.transact(statements, {
      isConditional: lapsed !== undefined,
      isSynced: true,
    });
    const [begun] = results.at(ending.length + 2) ?? [];
    if (begun === undefined) return undefined;
    return {
      began: begun["began"] as number,
      timeline: begun["timeline"] as string,
      intents: (results.at(ending.length + 3) ?? []).map(({ id }) => id as string),
    };
  }

  /**
   * Records which routes a session has mounted, from its beginning on.
   *
   * @returns Whether the session was there, and had not ended.
   */
  async mount({ id }: Pick<Session, "id">, mounts: Mounts): Promise<boolean> {
    const { policies, unmounted } = mounts;
    const update: Statement = {
      text: `UPDATE media_head_session SET policies = $2, unmounted = $3
             WHERE id = $1 AND ended IS NULL RETURNING id`,
      values: [id, JSON.stringify(policies), jsonOf(unmounted)],
    };
    const [updated] = await this.#database.transact([update], { isSynced: true });
    return updated?.length === 1;
  }

  /**
   * Records one part of a flush: extends the session, and adds the counts to those with the same
   * key and day. A heartbeat also changes the intents, and is dated with the ledger's time.
   *
   * @param session The session before this part.
   * @param livedUntil The process has not lived through the ledger's time from this instant on, so
   *   a heartbeat then is not recorded.
   * @returns The times of the ledger, and with a heartbeat the holds, if the part was recorded. It
   *   is not if the session is missing, has another sequence number, has ended, or had its last
   *   heartbeat set back by a restart of the record; nor is a heartbeat on another timeline of the
   *   database, or if the ledger's time was set back since the heartbeat was written.
   */
  async add(
    { counts, at, heartbeat }: FlushPart,
    session: Session,
    livedUntil: number,
  ): Promise<AddedPart | undefined> {
    const { batch, currentTime, timeline } = this.#database;
    const isHeartbeat = heartbeat !== undefined;
    const isStopped = heartbeat?.isStopped ?? false;
    const extension: Statement = {
      text: `UPDATE media_head_session SET sequence = sequence + 1
             ${isHeartbeat ? `, ended = $4, reported = ${this.#now}` : ""}
             WHERE id = $1 AND sequence = $2 AND ended IS NULL AND reported >= $3
             ${isHeartbeat ? `AND timeline = ${timeline} AND ${this.#now} BETWEEN $5 AND $6` : ""}
             RETURNING reported, ${currentTime} AS database_time${
        isHeartbeat ? `, ${this.#holds} AS holds` : ""
      }`,
      values: [
        session.id,
        session.sequence,
        session.reported,
        ...isHeartbeat
          ? [isStopped ? "stopped" : null, heartbeat.intents?.at ?? 0, Math.ceil(livedUntil) - 1]
          : [],
      ],
    };
    // Sorted, so that two servers that add the same rows cannot deadlock.
    const sorted = counts.toSorted((a, b) => keyOf(a) < keyOf(b) ? -1 : 1);
    const rows = sorted.map((count): UsageRow => ({ ...count, day: dayOf(at), last: at }));
    const statements = [
      extension,
      ...chunksOf(rows, batch).map((rows) => additionOf(this.#database, rows)),
      ...chunksOf(clientDaysOf(rows), batch).map((days) => daysAdditionOf(this.#database, days)),
      ...heartbeat?.intents === undefined
        ? []
        : this.#changesOf(heartbeat.intents, session, isStopped),
    ];
    const [extended] = statements.length === 1 && !isStopped // an idle process, in one round trip
      ? [await this.#database.write(extension)]
      : await this.#database.transact(statements, { isConditional: true, isSynced: isStopped });
    const row = extended?.[0];
    if (row === undefined) return undefined;
    const [databaseTime, reported] = [row["database_time"] as number, row["reported"] as number];
    // The clock may have gone on since a heartbeat was dated. The next is compared with that date.
    if (!isHeartbeat) return { databaseTime, now: Math.max(databaseTime, reported) };
    return { databaseTime, now: reported, holds: holdsIn(row) };
  }

  /** Returns the statements that change the intents of a session. */
  #changesOf(
    { at, sequence, kept, settled, renewed }: HeartbeatIntents,
    { id }: Session,
    isStopped: boolean,
  ): Statement[] {
    const listOf = (ids: readonly string[], from: number) =>
      `(${ids.map((_, index) => `$${from + index}`).join(", ")})`;
    const changes: Statement[] = [];
    if (settled.length > 0) {
      const text = `UPDATE media_head_intent SET settled = $1 WHERE id IN ${listOf(settled, 2)}`;
      changes.push({ text, values: [at, ...settled] });
    }
    if (renewed.length > 0) {
      const text = `UPDATE media_head_intent SET until = ${this.#now} + ${LEASE_MS}
                    WHERE id IN ${listOf(renewed, 1)}`;
      changes.push({ text, values: renewed });
    }
    // Not those that are written while the heartbeat is under way. No clock tells them apart,
    // because clocks can be set back. After the end of the session, none is written.
    const end = isStopped ? Number.MAX_SAFE_INTEGER : sequence;
    const others = kept.length > 0 ? `AND id NOT IN ${listOf(kept, 3)}` : "";
    const text = `DELETE FROM media_head_intent WHERE session = $1 AND sequence < $2 ${others}`;
    changes.push({ text, values: [id, end, ...kept] });
    return changes;
  }

  /**
   * Writes an intent from now on, unless the session has changed since the process last knew it.
   * A flush under way changes it, so that an intent which lands late is void.
   *
   * @returns The holds, if it was written.
   */
  async intend(
    { id, route }: Pick<Intent, "id" | "route">,
    session: Session,
  ): Promise<ReadHolds | undefined> {
    const { timeline, unlessLocked } = this.#database;
    const insertion: Statement = {
      text: `INSERT INTO media_head_intent (id, session, sequence, route, since, until)
             SELECT $1, id, sequence, $2, ${this.#now}, ${this.#now} + ${LEASE_MS} FROM media_head_session
             WHERE id = $3 AND sequence = $4 AND ended IS NULL AND timeline = ${timeline}
             ${unlessLocked} RETURNING ${this.#holds} AS holds`,
      values: [id, route, session.id, session.sequence],
    };
    // One that took longer would keep a connection from the requests to other paths.
    const options = { isSynced: true, timeout: PATIENCE_MS };
    const [written] = await this.#database.transact([insertion], options);
    return written?.[0] && holdsIn(written[0]);
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

  /** Returns all intents, in the order in which they were written. */
  async intents(): Promise<Intent[]> {
    const text = `SELECT id, session, route, since, until, settled FROM media_head_intent
                  ORDER BY since, id`;
    const rows = await this.#database.query({ text });
    return rows.map((row) => ({
      id: row["id"] as string,
      session: row["session"] as string,
      route: row["route"] as string,
      since: row["since"] as number,
      until: row["until"] as number,
      settled: row["settled"] as number | null ?? undefined,
    }));
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

  /**
   * Returns the calls that the removal breaks, from a day on, to any routes but those given: how many
   * by each client, and when the last one was recorded.
   */
  async callsToOthers(
    routes: readonly string[],
    fromDay: string,
  ): Promise<Pick<UsageRow, "route" | "client" | "calls" | "last">[]> {
    const others = routes.length === 0
      ? ""
      : `AND route NOT IN (${routes.map((_, at) => `$${at + 2}`).join(", ")})`;
    const text = `SELECT route, client, CAST(sum(calls) AS bigint) AS calls, max(last) AS last
                  FROM media_head_usage WHERE day >= $1 AND impact = 'breaking' ${others}
                  GROUP BY route, client ORDER BY route, client`;
    const rows = await this.#database.query({ text, values: [fromDay, ...routes] });
    return rows.map((row) => ({
      route: row["route"] as string,
      client: row["client"] as string,
      calls: row["calls"] as number,
      last: row["last"] as number,
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
   * Starts the record again, a lease later than the present time of the database's clock: by then,
   * no intent that was lost is in use any more. Instants later than the present become the present:
   * a hold that was to begin later lasts as long as it would have, intents last a lease from now at
   * most, and rows of later days become today's. Deletes nothing, and ends no session.
   *
   * @returns The start of the record, in milliseconds since the epoch.
   */
  async restart(): Promise<number> {
    const { databaseTime: now } = await this.time();
    const today = dayOf(now);
    const start = now + LEASE_MS;
    const key = KEY_COLUMNS.replace("day", "$1");
    const notAfter = (column: string, limit = "$1") =>
      `${column} = CASE WHEN ${column} > ${limit} THEN ${limit} ELSE ${column} END`;
    const results = await this.#database.transact([
      { // a start that is further ahead came from a clock that was wrong
        text: "UPDATE media_head_ledger SET started = $1 RETURNING started",
        values: [start],
      },
      {
        text: `UPDATE media_head_session SET ${notAfter("began")}, ${notAfter("reported")}
               WHERE reported > $1`,
        values: [now],
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
      {
        text: `INSERT INTO media_head_day AS earlier (day, route, client, calls)
               SELECT CAST($1 AS bigint), route, client, sum(calls) FROM media_head_day WHERE day > $1
               GROUP BY route, client
               ON CONFLICT (day, route, client)
               DO UPDATE SET calls = earlier.calls + excluded.calls`,
        values: [dayNumberOf(now)],
      },
      { text: "DELETE FROM media_head_day WHERE day > $1", values: [dayNumberOf(now)] },
      {
        text: `UPDATE media_head_intent SET ${notAfter("since")}, ${notAfter("settled")},
               ${notAfter("until", "$2")} WHERE until > $2 OR since > $1 OR settled > $1`,
        values: [now, start],
      },
      {
        text: `UPDATE media_head_hold SET ${notAfter("since")}, ${notAfter("released")},
               until = CASE WHEN since > $1 THEN until - since + $1 ELSE until END
               WHERE since > $1 OR released > $1`,
        values: [now],
      },
    ], { isSynced: true });
    return results[0]?.[0]?.["started"] as number;
  }

  /**
   * Deletes the rows before a day, the sessions without an intent whose last heartbeat was before
   * it, and the intents and holds that ended before it. The days on which clients called are
   * retained {@linkcode HISTORY_FACTOR} times as long. Moves the start of the record first. Deletes
   * nothing unless a session was counting a day ago: that is evidence that the time is right.
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
    await this.#deleteBefore("media_head_usage", KEY_COLUMNS, beforeDay);
    const retained = dayNumberOf(now) - dayNumberOf(before);
    const firstDay = dayNumberOf(now) - retained * HISTORY_FACTOR;
    await this.#deleteBefore("media_head_day", "day, route, client", firstDay);
    await this.#database.transact([
      { text: "DELETE FROM media_head_intent WHERE until < $1", values: [before] },
      { text: "DELETE FROM media_head_hold WHERE until < $1", values: [before] },
      {
        text: `DELETE FROM media_head_session WHERE reported < $1
               AND id NOT IN (SELECT session FROM media_head_intent)`,
        values: [before],
      },
    ]);
    return true;
  }

  /** Deletes the rows of a table before a day, a few at a time. */
  async #deleteBefore(table: string, key: string, day: string | number): Promise<void> {
    const deletion = {
      text: `DELETE FROM ${table} WHERE (${key}) IN (
               SELECT ${key} FROM ${table} WHERE day < $1 ORDER BY ${key} LIMIT $2) RETURNING day`,
      values: [day, MAX_PART_ROWS],
    };
    while ((await this.#database.transact([deletion]))[0]?.length === MAX_PART_ROWS) {
      await yieldToRequests();
    }
  }
}

function holdsIn(row: Row): ReadHolds {
  return readHolds(JSON.parse(row["holds"] as string));
}

function sessionOf(row: Row): Session {
  return {
    id: row["id"] as string,
    policies: JSON.parse(row["policies"] as string),
    unmounted: row["unmounted"] === null ? undefined : JSON.parse(row["unmounted"] as string),
    mayServeUnrecorded: row["may_serve_unrecorded"] === 1,
    publicUrl: row["public_url"] as string | null ?? undefined,
    contact: row["contact"] as string | null ?? undefined,
    retainDays: row["retain_days"] as number,
    process: {
      machine: row["machine"] as string | null ?? undefined,
      pid: row["pid"] as number,
      started: row["process_started"] as number,
    },
    began: row["began"] as number,
    reported: row["reported"] as number,
    timeline: row["timeline"] as string,
    sequence: row["sequence"] as number,
    ended: row["ended"] as Session["ended"] | null ?? undefined,
  };
}
