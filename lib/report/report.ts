/**
 * The retirement report: the calls to deprecated routes in one period, and whether the routes can
 * be removed on that evidence.
 *
 * "Calls" are requests that removal breaks; all others are "other requests".
 */

import type { RoutePolicies, UsageRow } from "../storage/ledger/ledger.ts";
import type { Ledger } from "../storage/ledger/sql_ledger.ts";
import type { Interval, Phase, Policy } from "../lifecycle/policy.ts";
import { RefusedError } from "../input/refused_error.ts";
import { contradictions } from "../usage/dates.ts";
import { DAY_MS, dayOf } from "../usage/day.ts";
import { FLUSH_INTERVAL_MS, HEARTBEAT_TIMEOUT_MS } from "../usage/recorder.ts";
import { gapsIn, isAhead, judge, recordedSince, running, type Verdict } from "./verdict.ts";

/** Calls to one route on one UTC day. */
export interface DayUsage {
  /** e.g. `2027-01-31` */
  readonly day: string;
  /** Whether the record of the day is complete; for today, so far. */
  readonly isWhole: boolean;
  readonly calls: number;
  readonly byPhase: Readonly<Partial<Record<Phase, number>>>;
}

/** Calls to one route in the period. */
export interface RouteUsage {
  readonly route: string;
  readonly calls: number;
  readonly otherRequests: number;
  /** Every day of the period, even without calls; today last. */
  readonly days: readonly DayUsage[];
}

/** Calls by one client in the period. */
export interface ClientUsage {
  readonly client: string;
  readonly calls: number;
  /** Over the whole record, not just the period. Milliseconds since the epoch, like `last`. */
  readonly first: number;
  readonly last: number;
  readonly routes: readonly string[];
  /** The calls by phase. */
  readonly phases: Readonly<Partial<Record<Phase, number>>>;
  /** The beginnings of the brownouts in which it called. */
  readonly brownouts: readonly number[];
}

/** What to report on. */
export interface UsageReportOptions {
  /** The deprecated routes, so that the report includes those without calls. */
  readonly routes: readonly string[];
  /** The dates in the environment of the command, by route. */
  readonly environment?: Readonly<Record<string, Partial<Policy>>>;
  /** Whole UTC days of the period. */
  readonly days: number;
  /** The only client to report on; every client by default. */
  readonly client?: string | undefined;
  /** The names of clients that do not count for the verdict. */
  readonly ignore?: readonly string[] | undefined;
  /** The calls that the verdict allows; 0 by default. */
  readonly atMost?: number | undefined;
  /** Whether nothing else served, and nothing was restored, while servers were stopped. */
  readonly trustStops?: boolean | undefined;
  /** The time of the report, in milliseconds since the epoch. */
  readonly now: number;
}

/** The report of a period: a number of whole UTC days, and today so far. */
export interface UsageReport extends Pick<UsageReportOptions, "days" | "client" | "now"> {
  /** What is announced: by the server that was the last to start. */
  readonly policies: RoutePolicies;
  /** A line for each of the other dates that were announced, or are in the environment. */
  readonly contradictions: readonly string[];
  /** The first day. */
  readonly from: string;
  readonly today: string;
  readonly calls: number;
  readonly otherRequests: number;
  readonly routes: readonly RouteUsage[];
  /** Most calls first; without those that are ignored. */
  readonly clients: readonly ClientUsage[];
  /** Clients that do not count for the verdict, even without calls. */
  readonly ignored: readonly Pick<ClientUsage, "client" | "calls">[];
  /** The calls that the verdict allows. */
  readonly atMost: number;
  /** The start of the record, in milliseconds since the epoch; `undefined` if there is none. */
  readonly recordedSince: number | undefined;
  readonly verdict: Verdict;
}

/** Milliseconds between two looks for a server's report. */
const POLL_INTERVAL_MS = 200;

/**
 * Waits until every server has reported what it counted before a time: two flushes at most, and not
 * for those that have long been silent.
 *
 * @param onWait Called once with the names of the servers to wait for, if any.
 */
export async function reported(
  ledger: Pick<Ledger, "heartbeats" | "time">,
  asked: number,
  onWait: (servers: readonly string[]) => void,
): Promise<void> {
  const deadline = performance.now() + 2 * FLUSH_INTERVAL_MS;
  for (let isFirst = true; performance.now() < deadline; isFirst = false) {
    const heartbeats = await ledger.heartbeats();
    const { now } = await ledger.time(); // a report beyond it is none: the clock was set back
    const awaited = running(heartbeats).filter(({ until }) =>
      Math.abs(asked - until) <= HEARTBEAT_TIMEOUT_MS && (until < asked || until > now)
    );
    if (awaited.length === 0) return;
    if (isFirst) onWait(awaited.map(({ server }) => server));
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

/**
 * Creates the report from a ledger.
 *
 * @throws {RefusedError} If the only client to report on never sent a request.
 */
export async function reportUsage(
  ledger: Pick<Ledger, "usage" | "heartbeats" | "keptFrom" | "time">,
  { routes, environment, days, client: only, now, ignore = [], atMost = 0, trustStops = false }:
    UsageReportOptions,
): Promise<UsageReport> {
  const [from, today] = [dayOf(now - days * DAY_MS), dayOf(now)];
  const byRoute = new Map(routes.map((route) => [route, new Totals()]));
  const byClient = new Map<string, Totals>();

  // In this order: heartbeats vouch for rows, so they are read before them; deletions are announced
  // before they happen, so they are read last.
  const heartbeats = await ledger.heartbeats();
  const read = await ledger.time();
  const latest = heartbeats.findLast((heartbeat) => !isAhead(heartbeat, read.now));
  const policies = latest?.policies ?? {};
  const counted = [...new Set([...routes, ...Object.keys(policies)])];
  for await (const row of ledger.usage("")) {
    if (only !== undefined && row.client !== only) continue;
    const client = getOrAdd(byClient, row.client, () => new Totals());
    const isCall = row.impact === "breaking";
    if (isCall) client.first = Math.min(client.first, row.first);
    if (row.day < from) continue;
    const route = getOrAdd(byRoute, row.route, () => new Totals());
    const day = row.day < today ? row.day : today; // a server's clock may be ahead
    for (const totals of [route, client]) totals.add(row, day, policies[row.route]);
  }
  if (only !== undefined && byClient.size === 0) {
    throw new RefusedError(`client "${only}" is not on record, expected a name as in the report`);
  }
  const coverage = { heartbeats, keptFrom: await ledger.keptFrom() };
  const gapsOf = (interval: Interval, routes = counted) =>
    gapsIn(coverage, { ...interval, routes }, read.now);
  const daysOf = (route: string, totals: Totals) =>
    Array.from({ length: days + 1 }, (_, index): DayUsage => {
      const day = dayOf(now - (days - index) * DAY_MS);
      const start = Date.parse(day);
      const end = Math.min(start + DAY_MS, now - 2 * FLUSH_INTERVAL_MS);
      const isWhole = gapsOf({ start, end }, [route]).length === 0;
      return { day, isWhole, ...totals.on(day) };
    });
  const routeUsages = [...byRoute].map(([route, totals]): RouteUsage => ({
    route,
    calls: totals.calls,
    otherRequests: totals.otherRequests,
    days: daysOf(route, totals),
  }));
  const clients = [...byClient].filter(([name, { calls }]) => calls > 0 && !ignore.includes(name))
    .map(([client, totals]): ClientUsage => ({
      client,
      calls: totals.calls,
      first: totals.first,
      last: totals.last,
      routes: [...totals.routes].sort(),
      phases: totals.byPhase,
      brownouts: [...totals.brownouts].sort((a, b) => a - b),
    }))
    .sort((a, b) => b.calls - a.calls || (a.client < b.client ? -1 : 1));
  const gaps = gapsOf({ start: Date.parse(from), end: now });
  return {
    ...{ days, client: only, from, today, now },
    calls: callsIn(routeUsages),
    otherRequests: routeUsages.reduce((sum, { otherRequests }) => sum + otherRequests, 0),
    routes: routeUsages,
    clients,
    ignored: ignore.map((client) => ({ client, calls: byClient.get(client)?.calls ?? 0 })),
    atMost,
    recordedSince: recordedSince(coverage),
    policies,
    contradictions: contradictions(policies, heartbeats, environment),
    verdict: callsIn(clients) > atMost ? { verdict: "called" } : judge(gaps, trustStops),
  };
}

/** Calls, and the phases in which they came. */
class Calls {
  calls = 0;
  readonly byPhase: Partial<Record<Phase, number>> = {};

  count({ phase, calls }: UsageRow): void {
    this.calls += calls;
    this.byPhase[phase] = (this.byPhase[phase] ?? 0) + calls;
  }
}

/** The calls to a route, or by a client. */
class Totals extends Calls {
  otherRequests = 0;
  first = Infinity;
  last = -Infinity;
  readonly routes = new Set<string>();
  readonly brownouts = new Set<number>();
  readonly #days = new Map<string, Calls>();

  add(row: UsageRow, day: string, policy: Policy | undefined): void {
    const { route, phase, impact, calls, first, last } = row;
    if (impact === "none") {
      this.otherRequests += calls;
      return;
    }
    this.count(row);
    getOrAdd(this.#days, day, () => new Calls()).count(row);
    this.last = Math.max(this.last, last);
    this.routes.add(route);
    for (const { start, end } of phase === "brownout" ? policy?.brownouts ?? [] : []) {
      if ([first, last].some((instant) => start <= instant && instant < end)) {
        this.brownouts.add(start);
      }
    }
  }

  on(day: string): Calls {
    return this.#days.get(day) ?? new Calls();
  }
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, value = make());
  return value;
}

/** Returns the sum of the calls. */
export function callsIn(usages: readonly { readonly calls: number }[]): number {
  return usages.reduce((sum, { calls }) => sum + calls, 0);
}
