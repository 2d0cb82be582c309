/** How late caches follow a change of phase, by requests all the time. */

import { requestRaw } from "./raw_http.ts";

/** What is requested of a cache, all the time. */
export interface Poll {
  readonly cache: string;
  readonly port: number;
  readonly method: string;
  readonly target: string;
  readonly fields?: Readonly<Record<string, string>>;
}

/** A phase: when it begins, and the statuses that it answers with. Times are in milliseconds. */
interface Phase {
  readonly start: number;
  readonly statuses: readonly number[];
}

/** Milliseconds between the requests of a poll. */
const PAUSE = 200;

/** How a cache followed: how many milliseconds late at most, and how many responses it sent. */
export interface Lateness {
  late: number;
  responses: number;
}

/**
 * Requests until some seconds after the last phase has begun, and returns for each cache how late it
 * followed the phases.
 */
export async function latenessOf(
  polls: readonly Poll[],
  phases: readonly Phase[],
): Promise<Map<string, Lateness>> {
  const all = new Map(polls.map(({ cache }) => [cache, { late: 0, responses: 0 }]));
  const end = Math.max(...phases.map(({ start }) => start)) + 5_000;
  await Promise.all(polls.map(async ({ cache, port, method, target, fields }) => {
    const own = all.get(cache) ?? { late: 0, responses: 0 };
    for (let sent; (sent = Date.now()) < end;) {
      own.responses++;
      const { status } = await requestRaw(port, method, target, fields);
      const [phase, after] = [sent, Date.now()]
        .map((time) => phases.findLast(({ start }) => start <= time));
      // Between two phases, either is right.
      if (phase !== undefined && phase === after && !phase.statuses.includes(status)) {
        own.late = Math.max(own.late, sent - phase.start);
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }));
  return all;
}
