/**
 * The retirement report: what the ledger says of the calls of deprecated routes, and whether they
 * can be removed on its evidence.
 */

import type { Usage, Watch } from "../storage/ledger.ts";
import type { Interval, Phase, Policy } from "./policy.ts";
import { GAP } from "./recorder.ts";

const DAY = 86_400_000;

/** Calls of one route in one UTC day. */
export interface DayUsage {
  /** e.g. `2027-01-31` */
  readonly day: string;
  readonly calls: number;
  readonly byPhase: Readonly<Partial<Record<Phase, number>>>;
}

/** Calls of one route in the period. */
export interface RouteUsage {
  readonly route: string;
  readonly calls: number;
  /** In a period of the same length before. */
  readonly previousCalls: number;
  /** Every day of the period, also those without calls. */
  readonly days: readonly DayUsage[];
}

/** Calls of one client in the period. */
export interface ClientUsage {
  readonly client: string;
  readonly calls: number;
  readonly previousCalls: number;
  /** Milliseconds since the epoch, as is `last`; within the period. */
  readonly first: number;
  readonly last: number;
  readonly routes: readonly string[];
}

/** The report of a period: whole UTC days, of which the last is today. */
export interface Report {
  readonly from: string;
  readonly to: string;
  readonly calls: number;
  readonly previousCalls: number;
  readonly routes: readonly RouteUsage[];
  /** Most calls first. */
  readonly clients: readonly ClientUsage[];
  /** Whole days until the sunset, negative after it; `undefined` without a date. */
  readonly daysToSunset: number | undefined;
  readonly policy: Policy;
}

/** What a report is made of. */
export interface ReportOptions {
  /** The deprecated routes, so that one without calls is told of as well. */
  readonly routes: readonly string[];
  readonly policy: Policy;
  /** The length of the period. */
  readonly days: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The first day that a report of so many days needs, the period before it included. */
export function firstDayFor(days: number, now: number): string {
  return dayOf(now - (2 * days - 1) * DAY);
}

/** Makes a report. Lines of days before {@linkcode firstDayFor} are passed over. */
export async function reportUsage(
  lines: AsyncIterable<Usage>,
  { routes, policy, days, now }: ReportOptions,
): Promise<Report> {
  const period = Array.from({ length: days }, (_, index) => dayOf(now - (days - 1 - index) * DAY));
  const [from, to] = [period[0] as string, period.at(-1) as string];
  const previousFrom = firstDayFor(days, now);
  const byRoute = new Map(routes.map((route) => [route, new RouteTally()]));
  const byClient = new Map<string, ClientTally>();

  for await (const line of lines) {
    if (line.day < previousFrom || line.day > to) continue;
    const route = getOrAdd(byRoute, line.route, () => new RouteTally());
    const client = getOrAdd(byClient, line.client, () => new ClientTally());
    const isPrevious = line.day < from;
    route.add(line, isPrevious);
    client.add(line, isPrevious);
  }

  const routeUsages = [...byRoute].map(([route, tally]) => tally.usage(route, period));
  return {
    from,
    to,
    calls: sum(routeUsages, ({ calls }) => calls),
    previousCalls: sum(routeUsages, ({ previousCalls }) => previousCalls),
    routes: routeUsages,
    clients: [...byClient].filter(([, { calls }]) => calls > 0)
      .map(([client, tally]) => tally.usage(client))
      .sort((a, b) => b.calls - a.calls || (a.client < b.client ? -1 : 1)),
    daysToSunset: policy.sunsetAt === undefined
      ? undefined
      : Math.trunc((policy.sunsetAt - now) / DAY),
    policy,
  };
}

/** Whether removal is safe, on the evidence of the ledger. */
export type Verdict =
  | { readonly verdict: "clear" }
  | { readonly verdict: "called"; readonly clients: readonly ClientUsage[] }
  /** Nothing is known of some stretches of time, so that nothing can be said. */
  | { readonly verdict: "unknown"; readonly gaps: readonly Interval[] };

/** What is judged. */
export interface JudgeOptions {
  /** The length of the time that must have passed without a call. */
  readonly days: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Judges whether no deprecated route was called in the last days, and servers were counting all
 * that time. A call decides even where there are gaps.
 *
 * @param lines At least those of the days since `now - days`.
 */
export async function judge(
  lines: AsyncIterable<Usage>,
  watches: readonly Watch[],
  { days, now }: JudgeOptions,
): Promise<Verdict> {
  const start = now - days * DAY;
  const byClient = new Map<string, ClientTally>();
  for await (const line of lines) {
    if (line.last < start) continue;
    getOrAdd(byClient, line.client, () => new ClientTally()).add(line, false);
  }
  if (byClient.size > 0) {
    const clients = [...byClient].map(([client, tally]) => tally.usage(client));
    return { verdict: "called", clients: clients.sort((a, b) => b.last - a.last) };
  }
  const gaps = gapsBetween(watches, { start, end: now });
  return gaps.length > 0 ? { verdict: "unknown", gaps } : { verdict: "clear" };
}

/** The stretches longer than {@linkcode GAP} in which no server was counting. */
function gapsBetween(watches: readonly Watch[], { start, end }: Interval): Interval[] {
  const gaps = [];
  let covered = start;
  for (const { from, until } of watches.toSorted((a, b) => a.from - b.from)) {
    if (from >= end) break;
    if (from - covered > GAP) gaps.push({ start: covered, end: from });
    covered = Math.max(covered, until);
  }
  if (end - covered > GAP) gaps.push({ start: covered, end });
  return gaps;
}

class RouteTally {
  #previousCalls = 0;
  readonly #days = new Map<string, Partial<Record<Phase, number>>>();

  add({ day, phase, calls }: Usage, isPrevious: boolean): void {
    if (isPrevious) {
      this.#previousCalls += calls;
      return;
    }
    const byPhase = getOrAdd(this.#days, day, (): Partial<Record<Phase, number>> => ({}));
    byPhase[phase] = (byPhase[phase] ?? 0) + calls;
  }

  usage(route: string, period: readonly string[]): RouteUsage {
    const days = period.map((day) => {
      const byPhase = this.#days.get(day) ?? {};
      return { day, byPhase, calls: sum(Object.values(byPhase), (calls) => calls) };
    });
    const calls = sum(days, ({ calls }) => calls);
    return { route, calls, previousCalls: this.#previousCalls, days };
  }
}

class ClientTally {
  calls = 0;
  #previousCalls = 0;
  #first = Infinity;
  #last = -Infinity;
  readonly #routes = new Set<string>();

  add({ route, calls, first, last }: Usage, isPrevious: boolean): void {
    if (isPrevious) {
      this.#previousCalls += calls;
      return;
    }
    this.calls += calls;
    this.#first = Math.min(this.#first, first);
    this.#last = Math.max(this.#last, last);
    this.#routes.add(route);
  }

  usage(client: string): ClientUsage {
    return {
      client,
      calls: this.calls,
      previousCalls: this.#previousCalls,
      first: this.#first,
      last: this.#last,
      routes: [...this.#routes].sort(),
    };
  }
}

function dayOf(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10);
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, value = make());
  return value;
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0);
}
