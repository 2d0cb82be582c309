/** The verdicts on removing deprecated routes: on each of them, and on all together. */

import { DAY_MS, dayOf } from "../../http/timestamp.ts";
import {
  hasMounted,
  type LedgerTime,
  MOUNTING_MS,
  type ProcessIdentity,
} from "../record/records.ts";
import { counts, type Gap, gapsOf, limitOf, mergedGaps, missingIn, routeStart } from "./gaps.ts";
import type { CountingSession, Evidence } from "./evidence.ts";
import type { HiddenCalls } from "./hidden_calls.ts";
import type { SilentClients } from "./rhythms.ts";
import { callsIn, type ClientUsage } from "./sums.ts";

/**
 * Whether a route may be deleted, in order of precedence:
 * - `called`: calls in the period are on record, or a client is due to call again;
 * - `unknown`: no calls are on record, but too much may be missing;
 * - `announced`: like `clear`, but a sunset that has not passed is announced;
 * - `clear`: it may be deleted.
 */
const STATES = ["called", "unknown", "announced", "clear"] as const;

export type State = typeof STATES[number];

/** Why a verdict is unknown. Somebody can mend it, or wait for it. */
export type Cause =
  & {
    /**
     * The first day on which the verdict can be clear, UTC, if that can be known: where something has
     * to be done, if it is done now.
     */
    readonly clearFrom: string | undefined;
  }
  & (
    /** The record of the route is younger than the period. Without `since`, there is none. */
    | {
      readonly cause: "too young";
      readonly since: number | undefined;
      /** Whether processes retain counts for as long as the period. */
      readonly isRetained: boolean;
    }
    /** No process counts the route now, nor since that instant. */
    | { readonly cause: "no process"; readonly since: number }
    /** A process that reports now counts other routes, and not this one. */
    | {
      readonly cause: "not counted";
      readonly session: string;
      readonly process: ProcessIdentity;
    }
    /** The clock of a record's database is a minute or more behind the record's time. */
    | { readonly cause: "clock behind"; readonly record: string; readonly time: LedgerTime }
    /** The gate's probe found that calls may not reach the processes. */
    | { readonly cause: "hidden"; readonly hidden: HiddenCalls }
    /** The gaps in the period take too much of it. */
    | { readonly cause: "gaps"; readonly missingMs: number; readonly limitMs: number }
  );

/** The verdict on one route. It is what `--route` with this route says. */
export interface RouteVerdict extends SilentClients {
  readonly route: string;
  readonly state: State;
  /** The number of calls in the period, except those of clients that are ignored. */
  readonly calls: number;
  readonly clients: readonly Pick<ClientUsage, "client" | "calls" | "last">[];
  /** The latest sunset that a session in the period announced; `undefined` once it has passed. */
  readonly announcedUntil: number | undefined;
  /** Why the verdict is unknown, or would be without calls. */
  readonly causes: readonly Cause[];
  /** What is not on record, in the order in which it began. */
  readonly gaps: readonly Gap[];
  /** The first day on which an unknown verdict can be clear, if that can be known. */
  readonly clearFrom: string | undefined;
}

/** What a verdict on one route is about. Clients that are ignored are left out. */
interface JudgedRoute extends SilentClients, Pick<RouteVerdict, "route" | "announcedUntil"> {
  readonly clients: readonly ClientUsage[];
}

/** What is asked of a route. */
export interface Question {
  /** The number of whole days in the period. */
  readonly days: number;
  /** The start of the period, in milliseconds since the epoch. */
  readonly start: number;
  /** The number of whole days for which processes retain counts, if known. */
  readonly retainDays: number | undefined;
  readonly hidden: readonly HiddenCalls[];
}

/** Returns the verdict on a route, as of the last reports of the processes. */
export function judge(evidence: Evidence, asked: JudgedRoute, question: Question): RouteVerdict {
  const { route, clients, due, earlier, announcedUntil } = asked;
  const since = Math.min(question.start, ...[...due, ...earlier].map(({ since }) => since));
  const gaps = gapsOf(evidence, route, { start: question.start, since });
  const causes = causesOf(evidence, route, gaps, question);
  const days = causes.map(({ clearFrom }) => clearFrom);
  const state = clients.length + due.length > 0
    ? "called"
    : causes.length > 0
    ? "unknown"
    : announcedUntil !== undefined
    ? "announced"
    : "clear";
  return {
    route,
    state,
    calls: callsIn(clients),
    clients: clients.map(({ client, calls, last }) => ({ client, calls, last })),
    due,
    earlier,
    announcedUntil,
    causes,
    gaps,
    clearFrom: days.includes(undefined) ? undefined : days.toSorted().at(-1),
  };
}

/** Returns the state of several verdicts together: the first that applies; unknown without any. */
export function stateOf(verdicts: readonly Pick<RouteVerdict, "state">[]): State {
  return STATES.find((each) => verdicts.some(({ state }) => state === each)) ?? "unknown";
}

/** Returns the gaps of several routes, each once. */
export function gapsOfAll(verdicts: readonly Pick<RouteVerdict, "gaps">[]): Gap[] {
  return mergedGaps(verdicts.flatMap(({ gaps }) => gaps));
}

function causesOf(
  evidence: Evidence,
  route: string,
  gaps: readonly Gap[],
  question: Question,
): Cause[] {
  const { sessions, asOf, ahead } = evidence;
  const { days, start, retainDays = days, hidden } = question;
  const causes: Cause[] = [];
  const began = routeStart(evidence, route);
  const isRetained = retainDays >= days;
  if (began === undefined || began > start || !isRetained) {
    const clearFrom = isRetained ? firstWholeDay(began ?? asOf, days) : undefined;
    causes.push({ cause: "too young", since: began, isRetained, clearFrom });
  }
  const counting = sessions.filter((session) => counts(session, route));
  const last = counting.toSorted((a, b) => a.reported - b.reported).at(-1);
  const running = sessions.filter((session) => !session.isOver);
  const isCounted = running.some((session) => counts(session, route));
  if (last !== undefined && !isCounted && !last.onDemand) {
    const clearFrom = dayWithout(gaps, asOf, days);
    causes.push({ cause: "no process", since: last.reported, clearFrom });
  }
  for (const session of running.filter((session) => leavesOut(session, route, asOf))) {
    const { id, process } = session;
    const clearFrom = dayWithout(gaps, asOf, days);
    causes.push({ cause: "not counted", session: id, process, clearFrom });
  }
  for (const { name: record, time } of ahead) {
    const clearFrom = firstWholeDay(time.databaseTime, days); // where the record starts again
    causes.push({ cause: "clock behind", record, time, clearFrom });
  }
  for (const each of hidden) {
    if (each.route === route) causes.push({ cause: "hidden", hidden: each, clearFrom: undefined });
  }
  const [missingMs, limitMs] = [missingIn(gaps, { start, end: asOf }), limitOf(days)];
  if (missingMs >= limitMs) {
    causes.push({ cause: "gaps", missingMs, limitMs, clearFrom: dayWithout(gaps, asOf, days) });
  }
  return causes;
}

/** Returns whether a process that reports counts other routes, and had time to mount this one. */
function leavesOut(session: CountingSession, route: string, asOf: number): boolean {
  return hasMounted(session) && !Object.hasOwn(session.policies, route) &&
    asOf - session.began >= MOUNTING_MS;
}

/** Returns the first day whose period of whole days begins at an instant, or later. */
function firstWholeDay(instant: number, days: number): string {
  return dayOf((Math.ceil(instant / DAY_MS) + days) * DAY_MS);
}

/** Returns the first day, from today on, whose period has few enough gaps if there are no others. */
function dayWithout(gaps: readonly Gap[], asOf: number, days: number): string {
  let day = Math.floor(asOf / DAY_MS);
  while (missingIn(gaps, { start: (day - days) * DAY_MS, end: asOf }) >= limitOf(days)) day++;
  return dayOf(day * DAY_MS);
}
