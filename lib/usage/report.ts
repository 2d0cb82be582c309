/**
 * The retirement report: the calls to deprecated routes in one period, and whether the routes can
 * be removed on that evidence.
 *
 * "Calls" are requests that removal breaks; all others are "other requests".
 */

import { PROBE } from "./client_names.ts";
import { contradictions } from "./dates.ts";
import { FLUSH_INTERVAL_MS } from "./recorder.ts";
import { RefusedError } from "../input/refused_error.ts";
import type { Phase } from "../lifecycle/policy.ts";
import { DAY_MS, dayOf } from "./day.ts";
import type { Ledger } from "./ledger.ts";
import {
  lagOf,
  type LedgerTime,
  MINUTE_MS,
  type RoutePolicies,
  type Session,
  type UsageRow,
} from "./records.ts";
import {
  completeSince,
  type Doubt,
  type Evidence,
  isAwaited,
  isSilent,
  judge,
  type ProbeResult,
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
  /** The first day of the period with a call. */
  readonly first: string;
  /** When the last call was recorded, in milliseconds since the epoch. */
  readonly last: number;
  readonly routes: readonly string[];
  readonly phases: Readonly<Partial<Record<Phase, number>>>;
  /** The calls in each brownout, in chronological order. */
  readonly brownouts: readonly { readonly start: string; readonly calls: number }[];
  /**
   * The releases of an app, or the apps of any other client; most calls first. Not every call has
   * one, and not every one is recorded.
   */
  readonly releases: readonly ReleaseUsage[];
}

export type ReleaseUsage = Pick<UsageRow, "release" | "calls" | "last">;

/** Requests that are no calls, because a probe of a gate or the library's checker sent them. */
export interface ProbeUsage {
  readonly probe: string;
  readonly requests: number;
}

/** How sentences name a program's command and settings. */
export interface ProgramNames {
  /** The command as it is typed, e.g. `deno task media usage`. */
  readonly command: string;
  /** How to have routes probed, e.g. "set PUBLIC_URL". */
  readonly howToProbe: string;
  /** How to have them not probed, e.g. "set PUBLIC_URL= for this command". */
  readonly howNotToProbe: string;
  /** The setting of the days to retain, e.g. `USAGE_DAYS`. */
  readonly retainSetting: string;
}

export interface UsageReportOptions {
  /** The routes to report on; by default those that servers announce. */
  readonly routes?: readonly string[] | undefined;
  /** Whole UTC days of the period. */
  readonly days: number;
  /** The only client to report on; every client by default. */
  readonly client?: string | undefined;
  /** The names of clients that do not count for the verdict. */
  readonly ignore?: readonly string[] | undefined;
  /** The calls that the verdict allows; 0 by default. */
  readonly atMost?: number | undefined;
  /** Whether the operator vouches for stops. */
  readonly trustStops?: boolean | undefined;
  /** The findings of a probe. */
  readonly probe?: ProbeResult | undefined;
  /** How sentences name the program's command and settings. */
  readonly program: ProgramNames;
  /** Whole days that servers retain, if that is known. */
  readonly usageDays?: number | undefined;
  /** All sessions, as they were read by {@linkcode waitForReports}. */
  readonly sessions: readonly Session[];
  /** The moment of the question, by the ledger's time, in milliseconds since the epoch. */
  readonly now: number;
}

/** The report of a period: a number of whole UTC days, and today so far. */
export interface UsageReport
  extends Pick<UsageReportOptions, "days" | "client" | "now" | "usageDays" | "probe" | "program"> {
  /** The policies that the process that registered last announces. */
  readonly policies: RoutePolicies;
  /** A line for each contradiction: other dates that are announced. */
  readonly contradictions: readonly string[];
  readonly from: string;
  readonly today: string;
  readonly routes: readonly RouteUsage[];
  /** The routes that the verdict is on. */
  readonly judged: readonly string[];
  /** The clients of the routes; most calls first; without those that are ignored. */
  readonly clients: readonly ClientUsage[];
  /** Clients that do not count for the verdict, even without calls. */
  readonly ignored: readonly Pick<ClientUsage, "client" | "calls">[];
  readonly probes: readonly ProbeUsage[];
  /** The calls that the verdict allows. */
  readonly atMost: number;
  /** Since when the record is complete, in milliseconds since the epoch; `undefined` if it is not. */
  readonly completeSince: number | undefined;
  readonly verdict: Verdict;
  /** When the verdict can be clear, if it is unknown and that can be said. */
  readonly recovery: Recovery | undefined;
}

/** When an unknown verdict can be clear. */
export interface Recovery {
  /** A day, e.g. `2027-01-31`. */
  readonly from: string;
  /** Whole days for which the record is complete. */
  readonly complete: number;
}

/** Milliseconds between two checks for a server's report. */
const POLL_INTERVAL_MS = 200;

/**
 * Waits until every session has reported the calls before the moment of the question, for two flushes
 * at most after the database's clock has reached that moment. Sessions that are silent are not awaited.
 *
 * @param onWait Called once with the ids of the sessions to wait for, if any.
 * @returns All sessions, in the order in which they began.
 */
export async function waitForReports(
  ledger: Pick<Ledger, "sessions" | "time">,
  asked: LedgerTime,
  onWait: (sessions: readonly string[]) => void,
): Promise<readonly Session[]> {
  const limit = lagOf(asked) < MINUTE_MS ? lagOf(asked) + 2 * FLUSH_INTERVAL_MS : 0;
  const deadline = performance.now() + limit;
  for (let isFirst = true;; isFirst = false) {
    const sessions = await ledger.sessions();
    const awaited = sessions.filter((each) => isAwaited(each, asked.now) && !isSilent(each, asked));
    if (awaited.length === 0 || performance.now() >= deadline) return sessions;
    if (isFirst) onWait(awaited.map(({ id }) => id));
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

/**
 * Creates the report from a ledger.
 *
 * @throws {RefusedError} If the only client to report on is not on record, or a route is not.
 */
export async function reportUsage(
  ledger: Pick<Ledger, "usage" | "hasClient" | "started" | "time">,
  options: UsageReportOptions,
): Promise<UsageReport> {
  const { days, client, now, usageDays, sessions, probe, program } = options;
  const { ignore = [], atMost = 0, trustStops = false } = options;
  const period = Array.from({ length: days + 1 }, (_, ago) => dayOf(now - (days - ago) * DAY_MS));
  const [from, today] = [period[0] as string, dayOf(now)];
  const policies = announcedPolicies(sessions);
  const judged = options.routes ?? judgedRoutes(sessions);
  // Once no route is deprecated any more, the report still says who called.
  const listed = judged.length > 0 ? judged : Object.keys(policies);
  // In this order: sessions vouch for rows, so they are read before them; the start of the record
  // moves before days are deleted, so it is read last.
  const time = await ledger.time();
  const tallies = await addUp(ledger, { from, today, client, listed });
  const evidence: Evidence = { sessions, started: await ledger.started(), asked: now, time };
  const unknown = judged.find((route) => !Object.hasOwn(policies, route));
  if (unknown !== undefined) {
    const known = Object.keys(policies).map((route) => `"${route}"`).join(" or ");
    throw new RefusedError(`route "${unknown}" was never counted, expected ${known || "none yet"}`);
  }
  const isKnown = client === undefined || tallies.clients.has(client);
  if (!isKnown && !await ledger.hasClient(client)) {
    throw new RefusedError(
      `No client "${client}" on record; use the report's name, e.g. "app curl"`,
    );
  }

  const routes = [...tallies.routes].map(([route, { calls, otherRequests }]): RouteUsage => {
    const since = completeSince(evidence, [route], { trustStops }) ?? Infinity;
    return {
      route,
      calls,
      otherRequests,
      days: period.map((day) => {
        const { calls, byPhase } = tallies.days.get(`${route} ${day}`) ?? new Tally();
        return { day, isWhole: since <= Date.parse(day), calls, byPhase };
      }),
    };
  });
  const clients = [...tallies.clients].map(clientUsage)
    .filter(({ client, calls }) => calls > 0 && !ignore.includes(client))
    .sort((a, b) => b.calls - a.calls || (a.client < b.client ? -1 : 1));
  const question = {
    routes: judged,
    from: Date.parse(from),
    trustStops,
    hidden: probe?.hidden ?? [],
  };
  const verdict: Verdict = judged.length > 0 && callsIn(clients) > atMost
    ? { verdict: "called" }
    : judge(evidence, question);
  return {
    days,
    client,
    from,
    today,
    now,
    routes,
    judged,
    clients,
    atMost,
    policies,
    usageDays,
    probe,
    program,
    ignored: ignore.map((client) => ({ client, calls: tallies.clients.get(client)?.calls ?? 0 })),
    probes: [...tallies.probes].map(([probe, requests]) => ({ probe, requests })),
    completeSince: completeSince(evidence, judged, { trustStops }),
    contradictions: contradictions(policies, sessions),
    verdict,
    recovery: verdict.verdict !== "unknown" || verdict.hidden.length > 0
      ? undefined
      : recoveryFrom(verdict.doubts, options),
  };
}

/**
 * Returns from which day on a verdict can be clear without anybody's word, and for how many whole days
 * the record is complete now; `undefined` if that cannot be said.
 */
export function recoveryFrom(
  doubts: readonly Doubt[],
  { now, days, usageDays }: Pick<UsageReportOptions, "now" | "days" | "usageDays">,
): Recovery | undefined {
  if (doubts.length === 0 || (usageDays ?? days) < days || doubts.some(({ isOpen }) => isOpen)) {
    return undefined;
  }
  const firstDay = Math.ceil(Math.max(...doubts.map(({ until }) => until)) / DAY_MS);
  return { from: dayOf((firstDay + days) * DAY_MS), complete: Math.floor(now / DAY_MS) - firstDay };
}

/** Returns what is announced for each route: by the session that began last, or that had it last. */
export function announcedPolicies(sessions: readonly Session[]): RoutePolicies {
  return Object.assign({}, ...sessions.map(({ policies }) => policies));
}

/** Returns the routes of open sessions; if none is open, those of the session that ended last. */
export function judgedRoutes(sessions: readonly Session[]): string[] {
  const open = sessions.filter(({ ended }) => ended === undefined);
  const last = sessions.toSorted((a, b) => a.reported - b.reported).slice(-1);
  return Object.keys(announcedPolicies(open.length > 0 ? open : last));
}

/** Adds up the rows of some routes by route, by route and day, and by client and release. */
async function addUp(
  ledger: Pick<Ledger, "usage">,
  { client, from, today, listed }: Pick<UsageReport, "client" | "from" | "today"> & {
    readonly listed: readonly string[];
  },
) {
  const tallies = {
    routes: new Map(listed.map((route) => [route, new Tally()])),
    days: new Map<string, Tally>(),
    clients: new Map<string, Tally>(),
    probes: new Map<string, number>(),
  };
  for await (const row of ledger.usage(from)) {
    const ofRoute = tallies.routes.get(row.route);
    if (ofRoute === undefined || client !== undefined && row.client !== client) continue;
    if (row.client.startsWith(PROBE)) {
      tallies.probes.set(row.client, (tallies.probes.get(row.client) ?? 0) + row.calls);
      continue;
    }
    const day = row.day < today ? row.day : today; // the database's clock was ahead
    const ofDay = getOrAdd(tallies.days, `${row.route} ${day}`);
    for (const each of [getOrAdd(tallies.clients, row.client), ofDay, ofRoute]) each.add(row);
  }
  return tallies;
}

function clientUsage([client, { calls, first, last, ...tally }]: [string, Tally]): ClientUsage {
  return {
    client,
    calls,
    first,
    last,
    routes: [...tally.routes].sort(),
    phases: tally.byPhase,
    brownouts: [...tally.brownouts].sort(([a], [b]) => a < b ? -1 : 1)
      .map(([start, calls]) => ({ start, calls })),
    releases: [...tally.releases.values()].sort((a, b) => b.calls - a.calls || b.last - a.last),
  };
}

class Tally {
  calls = 0;
  otherRequests = 0;
  first = "";
  last = -Infinity;
  readonly byPhase: Partial<Record<Phase, number>> = {};
  readonly routes = new Set<string>();
  readonly brownouts = new Map<string, number>();
  readonly releases = new Map<string, ReleaseUsage>();

  add({ route, day, phase, brownout, impact, calls, last, release }: UsageRow): void {
    if (impact === "none") {
      this.otherRequests += calls;
      return;
    }
    this.calls += calls;
    this.byPhase[phase] = (this.byPhase[phase] ?? 0) + calls;
    if (this.first === "" || day < this.first) this.first = day;
    this.last = Math.max(this.last, last);
    this.routes.add(route);
    if (brownout !== "") {
      this.brownouts.set(brownout, (this.brownouts.get(brownout) ?? 0) + calls);
    }
    if (release === "") return;
    const before = this.releases.get(release) ?? { calls: 0, last };
    const sum = { calls: before.calls + calls, last: Math.max(before.last, last) };
    this.releases.set(release, { release, ...sum });
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
