/** Waiting until running servers have recorded the calls before a verdict. */

import { isPartOf } from "../../lifecycle/route_name.ts";
import { FLUSH_INTERVAL_MS } from "../record/flush_schedule.ts";
import type { Ledger } from "../record/ledger.ts";
import {
  type Intent,
  isRunning,
  isSettled,
  lagOf,
  type LedgerTime,
  type Session,
  SHORTEST_GAP_MS,
} from "../record/records.ts";

/** Milliseconds between two looks at the ledger. */
const POLL_INTERVAL_MS = 200;

/** How long a running server may take to record what it has counted, in milliseconds. */
export const HEARTBEAT_LIMIT_MS = 2 * FLUSH_INTERVAL_MS;

/** The sessions of a ledger, in the order in which they began, and the intents. */
export interface SessionsAndIntents {
  readonly sessions: readonly Session[];
  readonly intents: readonly Intent[];
}

/** Reads the sessions and the intents. Read the rows of the ledger afterwards. */
export async function readSessions(
  ledger: Pick<Ledger, "sessions" | "intents">,
): Promise<SessionsAndIntents> {
  const sessions = await ledger.sessions();
  return { sessions, intents: await ledger.intents() };
}

/**
 * Waits until every running server that holds an intent has sent a heartbeat after an instant, with
 * no call in flight. Waits for two flushes at most, after the database's clock has reached the
 * instant.
 *
 * @param time The times of the ledger at that instant.
 */
export async function waitForHeartbeats(
  ledger: Pick<Ledger, "sessions" | "intents">,
  time: LedgerTime,
  { routes, onWait }: {
    /** The routes whose intents matter. Default: all. */
    readonly routes: readonly string[] | undefined;
    /** Called once with the sessions to wait for, if any. */
    readonly onWait: (sessions: readonly Session[]) => void;
  },
): Promise<SessionsAndIntents> {
  const limit = lagOf(time) < SHORTEST_GAP_MS ? lagOf(time) + HEARTBEAT_LIMIT_MS : 0;
  let isFirst = true;
  return await poll(limit, () => readSessions(ledger), ({ sessions, intents }) => {
    const open = intents.filter((intent) =>
      !isSettled(intent, time.now) &&
      (routes?.some((route) => isPartOf(route, intent.route)) ?? true)
    );
    const awaited = sessions.filter((session) =>
      isRunning(session, time.now) && open.some((intent) => intent.session === session.id)
    );
    if (isFirst && limit > 0 && awaited.length > 0) onWait(awaited);
    isFirst = false;
    return awaited.length === 0;
  });
}

/** Reads until a condition is true, for `limit` milliseconds at most. Returns what was read last. */
export async function poll<Result>(
  limit: number,
  read: () => Promise<Result>,
  isDone: (result: Result) => boolean,
): Promise<Result> {
  const deadline = performance.now() + limit;
  while (true) {
    const result = await read();
    if (isDone(result) || performance.now() >= deadline) return result;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}
