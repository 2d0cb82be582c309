/**
 * The retirement report: the calls to deprecated routes in one period, and whether the routes can
 * be removed on that evidence.
 *
 * "Calls" are requests that removal breaks; all others are "other requests".
 */

import type { Heartbeat, ReleaseRow, RoutePolicies, UsageRow } from "../storage/ledger/records.ts";
import type { Ledger } from "../storage/ledger/ledger.ts";
import type { Interval, Phase, Policy } from "../lifecycle/policy.ts";
import { RefusedError } from "../input/refused_error.ts";
import { OWN_CLIENTS } from "../usage/client_names.ts";
import { contradictions } from "../usage/dates.ts";
import { DAY_MS, dayOf } from "../storage/ledger/day.ts";
import { FLUSH_INTERVAL_MS, HEARTBEAT_TIMEOUT_MS } from "../usage/recorder.ts";
import {
  gapsIn,
  type HiddenCalls,
  isAhead,
  judge,
  recordedSince,
  running,
  stillSilent,
  type Verdict,
} from "./verdict.ts";

/** Calls to one route on one UTC day. */
export interface DayUsage {
  /** e.g. `2027-01-31` */
  readonly day: string;
  /** Whether the record of the day is complete; for today, so far. */
  readonly isWhole: boolean;
  readonly calls: number;
  readonly byPhase: Readonly<Partial<Record<Phase, number>>>;
}

export interface RouteUsage {
  readonly route: string;
  readonly calls: number;
  readonly otherRequests: number;
  /** Every day of the period, even without calls; today last. */
  readonly days: readonly DayUsage[];
}

export interface ClientUsage {
  readonly client: string;
  readonly calls: number;
  /** Over the whole record, not just the period. Milliseconds since the epoch, like `last`. */
  readonly first: number;
  readonly last: number;
  readonly routes: readonly string[];
  readonly phases: Readonly<Partial<Record<Phase, number>>>;
  /** The brownouts in which it called. */
  readonly brownouts: readonly Interval[];
  /** Most calls first. Not every call has a release, and not every release is recorded. */
  readonly releases: readonly ReleaseUsage[];
}

export type ReleaseUsage = Pick<ReleaseRow, "release" | "calls" | "last">;

export interface UsageReportOptions {
  /** The deprecated routes, so that the report includes those without calls. */
  readonly routes: readonly string[];
  /** Whole UTC days of the period. */
  readonly days: number;
  /** The only client to report on; every client by default. */
  readonly client?: string | undefined;
  /** The names of clients that do not count for the verdict, besides our own. */
  readonly ignore?: readonly string[] | undefined;
  /** The calls that the verdict allows; 0 by default. */
  readonly atMost?: number | undefined;
  /** Whether nothing else served, and nothing was restored, while servers were stopped. */
  readonly trustStops?: boolean | undefined;
  /** The public URL through which the gate has asked, and what it did not learn there. */
  readonly publicUrl?: string | undefined;
  readonly hidden?: readonly HiddenCalls[] | undefined;
  /** Whole days that servers retain. */
  readonly usageDays: number;
  /** The time of the report, in milliseconds since the epoch. */
  readonly now: number;
}

/** The report of a period: a number of whole UTC days, and today so far. */
export interface UsageReport
  extends Pick<UsageReportOptions, "days" | "client" | "now" | "publicUrl"> {
  /** What the server that started last announces. */
  readonly policies: RoutePolicies;
  /** A line for each contradiction: other dates that are announced. */
  readonly contradictions: readonly string[];
  readonly from: string;
  readonly today: string;
  readonly routes: readonly RouteUsage[];
  /** The routes that the verdict is on: deprecated here, or on a server that is running. */
  readonly judged: readonly string[];
  /** The clients of these routes; most calls first; without those that are ignored. */
  readonly clients: readonly ClientUsage[];
  /** Clients that do not count for the verdict, even without calls. */
  readonly ignored: readonly Pick<ClientUsage, "client" | "calls">[];
  /** The calls that the verdict allows. */
  readonly atMost: number;
  /** The start of the record, in milliseconds since the epoch; `undefined` if there is none. */
  readonly recordedSince: number | undefined;
  readonly verdict: Verdict;
  /** When the verdict can be clear, if it is unknown and that can be said. */
  readonly recovery: ReturnType<typeof recoveryOf>;
}

/** Milliseconds between two checks for a server's report. */
const POLL_INTERVAL_MS = 200;

/**
 * Waits until every server has reported the calls that it counted before a certain time, for two
 * flushes at most. Servers that have long been silent are not awaited.
 *
 * @param onWait Called once with the names of the servers to wait for, if any.
 */
export async function waitForReports(
  ledger: Pick<Ledger, "heartbeats" | "time">,
  asked: number,
  onWait: (servers: readonly string[]) => void,
): Promise<void> {
  const deadline = performance.now() + 2 * FLUSH_INTERVAL_MS;
  for (let isFirst = true; performance.now() < deadline; isFirst = false) {
    const heartbeats = await ledger.heartbeats();
    const { now } = await ledger.time(); // a later heartbeat does not count: the clock was set back
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
  ledger: Pick<Ledger, "usage" | "releases" | "heartbeats" | "keptFrom" | "time">,
  options: UsageReportOptions,
): Promise<UsageReport> {
  const { days, client, now, publicUrl, hidden = [] } = options;
  const { ignore = [], atMost = 0, trustStops = false } = options;
  const period = Array.from({ length: days + 1 }, (_, ago) => dayOf(now - (days - ago) * DAY_MS));
  const [from, today] = [period[0] as string, dayOf(now)];
  // In this order: heartbeats vouch for rows, so they are read before them; deletions are announced
  // before they happen, so they are read last.
  const heartbeats = await ledger.heartbeats();
  const read = await ledger.time();
  const valid = heartbeats.filter((each) => !isAhead(each, read.now));
  const policies = announcedPolicies(valid);
  const judged = [
    ...new Set([...options.routes, ...Object.keys(announcedPolicies(running(valid)))]),
  ];
  const tallies = await addUp(ledger, { ...options, from, today, policies, judged });
  const coverage = { heartbeats, keptFrom: await ledger.keptFrom() };
  const gapsOf = (routes: readonly string[], day: string, end = Date.parse(day) + DAY_MS) =>
    gapsIn(coverage, { routes, start: Date.parse(day), end }, read.now);

  const flushed = now - 2 * FLUSH_INTERVAL_MS;
  const routes = [...tallies.routes].map(([route, { calls, otherRequests }]): RouteUsage => ({
    ...{ route, calls, otherRequests },
    days: period.map((day) => {
      const { calls, byPhase } = tallies.days.get(`${route} ${day}`) ?? new Tally();
      const end = day === today ? flushed : undefined;
      return { day, isWhole: gapsOf([route], day, end).length === 0, calls, byPhase };
    }),
  }));
  const called = [...tallies.clients].map(clientUsage).filter(({ calls }) => calls > 0);
  const ours = called.map(({ client }) => client).filter((name) => OWN_CLIENTS.includes(name));
  const ignored = client === undefined ? [...new Set([...ignore, ...ours])] : [];
  const clients = called.filter(({ client }) => !ignored.includes(client))
    .sort((a, b) => b.calls - a.calls || (a.client < b.client ? -1 : 1));
  const gone = valid.filter(({ end, until, declaredAt = until }) =>
    end === "gone" && declaredAt >= Date.parse(from)
  );
  const verdict: Verdict = judged.length === 0
    ? { verdict: "unknown", gaps: [], hidden: [] }
    : callsIn(clients) > atMost
    ? { verdict: "called" }
    : judge(gapsOf(judged, from, now), hidden, { trustStops, gone });
  return {
    ...{ days, client, from, today, now, routes, judged, clients, atMost, policies, publicUrl },
    ignored: ignored.map((client) => ({ client, calls: tallies.clients.get(client)?.calls ?? 0 })),
    recordedSince: recordedSince(coverage),
    contradictions: contradictions(policies, heartbeats),
    verdict,
    recovery: recoveryOf(verdict, options),
  };
}

/**
 * Returns from which day on an unknown verdict can be clear without anybody's word, and for how many
 * whole days the record is complete now; `undefined` if that cannot be said.
 */
function recoveryOf(verdict: Verdict, { now, days, usageDays }: UsageReportOptions) {
  if (verdict.verdict !== "unknown" || verdict.hidden.length > 0 || usageDays < days) return;
  const { gaps } = verdict;
  if (gaps.length === 0 || stillSilent(gaps).length > 0) return;
  const firstDay = Math.ceil(Math.max(...gaps.map(({ end }) => end)) / DAY_MS); // after the gaps
  const from = dayOf((firstDay + days) * DAY_MS);
  return { from, complete: Math.floor(now / DAY_MS) - firstDay };
}

/** Returns what the servers announce for each route: the one that started last, or that had it last. */
export function announcedPolicies(heartbeats: readonly Heartbeat[]): RoutePolicies {
  return Object.assign({}, ...heartbeats.map(({ policies }) => policies));
}

/** Adds up the rows of a ledger by route, by route and day, and by client and release. */
async function addUp(
  ledger: Pick<Ledger, "usage" | "releases">,
  { routes, client, from, today, policies, judged }:
    & Pick<UsageReport, "from" | "today" | "policies" | "judged">
    & Pick<UsageReportOptions, "routes" | "client">,
) {
  const tallies = {
    routes: new Map(routes.map((route) => [route, new Tally()])),
    days: new Map<string, Tally>(),
    clients: new Map<string, Tally>(),
  };
  // Before the rows of usage, which have the same calls and any that follow.
  for await (const { client: name, release, calls, last } of ledger.releases(from)) {
    if (client !== undefined && name !== client) continue;
    const { releases } = getOrAdd(tallies.clients, name);
    const before = releases.get(release) ?? { calls: 0, last };
    const sum = { calls: before.calls + calls, last: Math.max(before.last, last) };
    releases.set(release, { release, ...sum });
  }
  for await (const row of ledger.usage("")) {
    if (client !== undefined && row.client !== client) continue;
    const isJudged = judged.length === 0 || judged.includes(row.route);
    const ofClient = isJudged ? getOrAdd(tallies.clients, row.client) : new Tally();
    if (row.impact === "breaking") ofClient.first = Math.min(ofClient.first, row.first);
    if (row.day < from) continue;
    const day = row.day < today ? row.day : today; // a server's clock may be ahead
    const ofDay = getOrAdd(tallies.days, `${row.route} ${day}`);
    for (const each of [ofClient, ofDay, getOrAdd(tallies.routes, row.route)]) {
      each.add(row, policies[row.route]?.brownouts);
    }
  }
  if (client !== undefined && tallies.clients.size === 0) {
    throw new RefusedError(`client "${client}" is not on record, expected a name as in the report`);
  }
  return tallies;
}

function clientUsage([client, { calls, first, last, ...tally }]: [string, Tally]): ClientUsage {
  return {
    ...{ client, calls, first, last },
    routes: [...tally.routes].sort(),
    phases: tally.byPhase,
    brownouts: [...tally.brownouts].sort((a, b) => a.start - b.start),
    releases: [...tally.releases.values()].sort((a, b) => b.calls - a.calls || b.last - a.last),
  };
}

class Tally {
  calls = 0;
  otherRequests = 0;
  first = Infinity;
  last = -Infinity;
  readonly byPhase: Partial<Record<Phase, number>> = {};
  readonly routes = new Set<string>();
  readonly brownouts = new Set<Interval>();
  readonly releases = new Map<string, ReleaseUsage>();

  add({ route, phase, impact, calls, first, last }: UsageRow, brownouts: Policy["brownouts"] = []) {
    if (impact === "none") {
      this.otherRequests += calls;
      return;
    }
    this.calls += calls;
    this.byPhase[phase] = (this.byPhase[phase] ?? 0) + calls;
    this.last = Math.max(this.last, last);
    this.routes.add(route);
    for (const brownout of phase === "brownout" ? brownouts : []) {
      const { start, end } = brownout;
      if ([first, last].some((at) => start <= at && at < end)) this.brownouts.add(brownout);
    }
  }
}

function getOrAdd(tallies: Map<string, Tally>, key: string): Tally {
  const tally = tallies.get(key) ?? new Tally();
  tallies.set(key, tally);
  return tally;
}

export function callsIn(usages: readonly { readonly calls: number }[]): number {
  return usages.reduce((sum, { calls }) => sum + calls, 0);
}
