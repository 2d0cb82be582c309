/**
 * An older record, of this schema or of version 9: what a copy reads of it, and how it is closed.
 *
 * To close a record is to rename its sessions, in one transaction: each id begins with that of the
 * copy. So no process finds its own session there any more, of whichever release it is. It registers
 * as in a database that was restored, and its later calls are apart from what is copied.
 */

import type { Database, Row } from "../../database/sql/database.ts";
import type { PostgresOptions } from "../../database/postgres/client.ts";
import type { DatabasePlace } from "../../database/place.ts";
import type { SqliteRuntime } from "../../database/sqlite/runtime.ts";
import { type ClientDay, KEY_COLUMNS } from "../record/additions.ts";
import type { RecordedHold } from "../record/holds.ts";
import { Ledger } from "../record/ledger.ts";
import { openLedgerDatabase } from "../record/open_ledger.ts";
import {
  type Intent,
  type LedgerTime,
  MAX_PART_ROWS,
  type Session,
  SHORTEST_GAP_MS,
  type UsageRow,
} from "../record/records.ts";
import { COPIED_LEDGER } from "../record/schema.ts";
import { readVersion9, type Silence } from "./version_9.ts";

/** Stands between the id of a copy and that of a session. No other id has it. */
const SEPARATOR = "/";

/** The values by which the records of a table are sorted. */
export type Key = readonly (string | number)[];

/** How a record was closed. */
export interface Closing {
  /** The id of the copy. */
  readonly id: string;
  /** The name of the record into which it was copied. */
  readonly into: string;
  /** When, by the time of the record that was closed, in milliseconds since the epoch. */
  readonly at: number;
}

/**
 * An older record, apart from its rows. Once it is closed, the sessions are as they were then. A
 * process that comes back may delete intents, but starts the record again before.
 */
export interface OldState {
  readonly closing: Closing | undefined;
  /** Its sessions, in the order in which they began. */
  readonly sessions: readonly Session[];
  readonly intents: readonly Intent[];
  /** The sessions of schema 9 that may have answered calls after their last heartbeat. */
  readonly silences: readonly Silence[];
  readonly time: LedgerTime;
  readonly timeline: string;
}

export class OldRecord {
  /** The name of the record, for people. */
  readonly name: string;
  readonly #database: Database;
  readonly #ledger: Ledger;
  readonly #version: number;

  constructor(name: string, database: Database, version: number) {
    this.name = name;
    this.#database = database;
    this.#ledger = new Ledger(database);
    this.#version = version;
  }

  /** Whether it has the days on which clients called, besides the rows. */
  get hasDays(): boolean {
    return this.#version > 9;
  }

  /**
   * Reads everything but rows.
   *
   * @throws {RefusedError} If the database is a replica.
   */
  async read(): Promise<OldState> {
    const timeline = await this.#ledger.timeline();
    const { sessions, silences } = this.#version === 9
      ? await readVersion9(this.#database)
      : { sessions: await this.#ledger.sessions(), silences: [] };
    const intents = this.#version === 9 ? [] : await this.#ledger.intents();
    const time = await this.#ledger.time();
    const closing = closingIn(sessions);
    if (closing === undefined) return { closing, sessions, intents, silences, time, timeline };
    const isClosed = ({ id }: { readonly id: string }) => id.startsWith(closing.id + SEPARATOR);
    return {
      closing,
      sessions: sessions.filter(isClosed).map((each) => ({ ...each, id: ownId(each.id) })),
      intents,
      silences: silences.filter(({ session }) => isClosed({ id: session }))
        .map((each) => ({ ...each, session: ownId(each.session) })),
      time,
      timeline: sessions.find(({ id }) => id === closing.id)?.timeline ?? timeline,
    };
  }

  /**
   * Closes the record, unless it is closed already, or a process that has not stopped sent it a
   * heartbeat within the last minute.
   *
   * @param id The id of the copy.
   * @param into The name of the record into which it is copied.
   */
  async close(id: string, into: string): Promise<void> {
    const { currentTime, timeline } = this.#database;
    const now = `(SELECT CASE WHEN max(reported) > ${currentTime} THEN max(reported)
      ELSE ${currentTime} END
      FROM media_head_session)`;
    const isClosing = "EXISTS (SELECT id FROM media_head_session WHERE id = $1)";
    const own = this.#version === 9 ? { columns: "clock", values: "now" } : {
      columns: "timeline, may_serve_unrecorded, retain_days",
      values: `${timeline}, 0, (SELECT min(retain_days) FROM media_head_session)`,
    };
    await this.#database.transact([
      // One command at a time, and after the heartbeats and intents in progress.
      { text: "UPDATE media_head_ledger SET schema = schema" },
      { text: "UPDATE media_head_session SET sequence = sequence WHERE ended IS NULL" },
      {
        text: `INSERT INTO media_head_session (id, policies, machine, pid, process_started, began,
                 reported, sequence, ended, ${own.columns})
               SELECT $1, '{}', $2, 0, now, now, now, 0, 'stopped', ${own.values}
               FROM (SELECT ${now} AS now) AS time
               WHERE NOT EXISTS (SELECT id FROM media_head_session WHERE id LIKE '%${SEPARATOR}%')
               AND NOT EXISTS (SELECT id FROM media_head_session
                 WHERE ended IS NULL AND now - reported < ${SHORTEST_GAP_MS})`,
        values: [id, into],
      },
      {
        text: `UPDATE media_head_session SET id = $2 || id WHERE id <> $1 AND ${isClosing}`,
        values: [id, id + SEPARATOR],
      },
    ], { isSynced: true });
  }

  /**
   * Returns the start of the record. Days are deleted after it has moved, so read it after the rows.
   */
  started(): Promise<number | undefined> {
    return this.#ledger.started();
  }

  /** Returns the holds. Schema 9 has none. */
  async holds(): Promise<readonly RecordedHold[]> {
    return this.#version === 9 ? [] : (await this.#ledger.holds()).holds;
  }

  /** Returns the number of rows. */
  async count(): Promise<number> {
    const text = "SELECT count(*) AS count FROM media_head_usage";
    return Number((await this.#database.query({ text }))[0]?.["count"]);
  }

  /** Returns the rows after a key, at most {@linkcode MAX_PART_ROWS}. An empty key is before all. */
  async rowsAfter(after: Key): Promise<UsageRow[]> {
    const selection = `SELECT ${KEY_COLUMNS}, calls, last FROM media_head_usage`;
    const rows = await this.#pageAfter(selection, KEY_COLUMNS, after);
    return rows.map((row) => ({ ...row }) as unknown as UsageRow);
  }

  /** Returns the days of clients after a key. */
  async daysAfter(after: Key): Promise<ClientDay[]> {
    const selection = "SELECT day, route, client, calls FROM media_head_day";
    const rows = await this.#pageAfter(selection, "day, route, client", after);
    return rows.map((row) => ({ ...row }) as unknown as ClientDay);
  }

  #pageAfter(selection: string, key: string, after: Key): Promise<readonly Row[]> {
    const list = after.map((_, at) => `$${at + 1}`).join(", ");
    const condition = after.length === 0 ? "" : `WHERE (${key}) > (${list})`;
    const text = `${selection} ${condition} ORDER BY ${key} LIMIT ${MAX_PART_ROWS}`;
    return this.#database.query({ text, values: after });
  }
}

/** Returns how a record was closed, if it was. */
export function closingIn(sessions: readonly Session[]): Closing | undefined {
  const [id] = sessions.find(({ id }) => id.includes(SEPARATOR))?.id.split(SEPARATOR) ?? [];
  const marked = sessions.find((session) => session.id === id);
  if (id === undefined || marked === undefined) return undefined;
  return { id, into: marked.process.machine ?? "another record", at: marked.began };
}

function ownId(id: string): string {
  return id.slice(id.indexOf(SEPARATOR) + 1);
}

/**
 * Opens a record to copy.
 *
 * @param name Its name, for people.
 * @throws {StorageError} If the database fails, or its schema cannot be read.
 */
export async function openOldRecord(
  place: DatabasePlace,
  name: string,
  options: PostgresOptions & { readonly runtime: () => SqliteRuntime },
): Promise<{ record: OldRecord; close(): Promise<void> }> {
  const { database, close } = await openLedgerDatabase(place, COPIED_LEDGER, options);
  try {
    const [row] = await database.query({ text: "SELECT schema FROM media_head_ledger" });
    return { record: new OldRecord(name, database, row?.["schema"] as number), close };
  } catch (error) {
    await close();
    throw error;
  }
}
