/** What one record, or several, say of the processes that counted. */

import { RefusedError } from "../../errors/refused_error.ts";
import { formatInstant } from "../../http/timestamp.ts";
import type { Ledger } from "../record/ledger.ts";
import {
  isOver,
  lagOf,
  type LedgerTime,
  type Session,
  SHORTEST_GAP_MS,
} from "../record/records.ts";

/** A record, and its name for people, without credentials. */
export interface RecordSource<Part extends keyof Ledger = keyof Ledger> {
  readonly ledger: Pick<Ledger, Part>;
  readonly name: string;
}

/** A session as it was read. */
export interface ReadSession extends Session {
  /** Whether it ended, or wrote nothing for a minute. */
  readonly isOver: boolean;
}

/** The sessions of one record. */
export interface RecordSessions {
  readonly name: string;
  /** All sessions, in the order in which they began. */
  readonly sessions: readonly ReadSession[];
  /** The times of the ledger, read before the sessions. */
  readonly time: LedgerTime;
  /** The difference between this machine's clock and the database's, in milliseconds. */
  readonly offset: number;
}

/** Reads the sessions of a record. Read its rows afterwards: what sessions report is among them. */
export async function readSessions(
  { ledger, name }: RecordSource<"time" | "sessions">,
): Promise<RecordSessions> {
  const asked = Date.now();
  const time = await ledger.time();
  const offset = time.databaseTime - (asked + Date.now()) / 2;
  const sessions = await ledger.sessions();
  const read = sessions.map((session) => ({ ...session, isOver: isOver(session, time.now) }));
  return { name, sessions: read, time, offset };
}

/** Reads the sessions of several records, whose verdict is one. */
export async function readAllSessions(
  sources: readonly RecordSource<"time" | "sessions">[],
): Promise<RecordSessions[]> {
  const records: RecordSessions[] = [];
  for (const source of sources) records.push(await readSessions(source));
  requireDistinct(records);
  return records;
}

/**
 * @throws {RefusedError} If the clocks of two databases differ by a minute or more, or two records
 *   have a session in common, because one is a copy of the other.
 */
function requireDistinct(records: readonly RecordSessions[]): void {
  const [first, ...others] = records;
  const found = new Map<string, string>();
  for (const { name, sessions, time, offset } of records) {
    const off = offset - (first?.offset ?? offset);
    if (Math.abs(off) >= SHORTEST_GAP_MS) {
      const here = others.length > 0 ? first?.name : name;
      throw new RefusedError(
        `the clock of ${name} says ${formatInstant(time.databaseTime)}, which is ` +
          `${Math.round(Math.abs(off) / 1_000)} s ${
            off > 0 ? "ahead of" : "behind"
          } that of ${here}; ` +
          "correct the clock that is wrong",
      );
    }
    for (const { id } of sessions) {
      const other = found.get(id);
      if (other !== undefined) {
        throw new RefusedError(
          `session ${id} is in ${other} and in ${name}: one is a copy of the other; ` +
            "leave out the copy",
        );
      }
      found.set(id, name);
    }
  }
}

/** The evidence of what the records have, and what they do not. */
export interface Evidence {
  /** The sessions of all records, in the order in which they began. */
  readonly sessions: readonly CountingSession[];
  /**
   * The instant of the verdict, in milliseconds since the epoch: what was answered before it is on
   * record, or in a gap. It is the oldest report of a running process.
   */
  readonly asOf: number;
  /** The records whose database's clock is a minute or more behind the record's time. */
  readonly ahead: readonly { readonly name: string; readonly time: LedgerTime }[];
}

/** A session, and since when its record has what it counted. */
export interface CountingSession extends ReadSession {
  /** `began`, or later if the record starts later. Without calls from before, it vouches for nothing. */
  readonly counted: number;
  /** When its process began its next session, if it did. */
  readonly continued: number | undefined;
}

/** Returns the instant of a verdict on the records. */
export function instantOf(records: readonly RecordSessions[]): number {
  const reports = records.flatMap(({ sessions }) =>
    sessions.filter(({ isOver }) => !isOver).map(({ reported }) => reported)
  );
  return reports.length > 0
    ? Math.min(...reports)
    : Math.max(...records.map(({ time }) => time.now));
}

/**
 * Returns the evidence in records.
 *
 * @param started Since when each record has what it counted, read after its rows; `undefined` if that
 *   is from its first session on.
 */
export function evidenceOf(
  records: readonly RecordSessions[],
  started: readonly (number | undefined)[],
): Evidence {
  const sessions = records.flatMap(({ sessions }, index) => {
    const next = new Map<string, number>();
    return sessions.toReversed().map((session): CountingSession => {
      const { began, opened } = session;
      const continued = next.get(opened);
      next.set(opened, began);
      return { ...session, counted: Math.max(began, started[index] ?? began), continued };
    });
  });
  return {
    sessions: sessions.sort((a, b) => a.counted - b.counted || a.began - b.began),
    asOf: instantOf(records),
    ahead: records.filter(({ time }) => lagOf(time) >= SHORTEST_GAP_MS),
  };
}
