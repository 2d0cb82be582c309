/**
 * The retirement report: the calls to deprecated routes in one period, and the verdict on removing
 * the routes.
 *
 * "Calls" are requests that the removal breaks. All others are "other requests".
 */

import { FLUSH_INTERVAL_MS } from "../record/flush_schedule.ts";
import { RefusedError, WrongUsageError } from "../../errors/refused_error.ts";
import type { Policy, RoutePolicies } from "../../lifecycle/policy.ts";
import { DAY_MS, dayOf } from "../record/day.ts";
import type { Ledger } from "../record/ledger.ts";
import { addUp, callsIn, type ClientUsage, type PhaseCalls } from "./sums.ts";
import { lagOf, type LedgerTime, MINUTE_MS, type Session } from "../record/records.ts";
import {
  completeSince,
  type Doubt,
  type Evidence,
  type HiddenCalls,
  isAwaited,
  isSilent,
  judge,
  mayBeServedUnregistered,
  type ProbeResult,
  type UnknownVerdict,
  type Verdict,
} from "./verdict.ts";

/** Calls to one route on one UTC day. */
export interface DayUsage {
  /** UTC, e.g. `2027-01-31`. */
  readonly day: string;
  /** Whether the record of the day is complete (for today, so far). */
  readonly isWhole: boolean;
  readonly calls: number;
  readonly byPhase: Readonly<PhaseCalls>;
}

export interface RouteUsage {
  readonly route: string;
  readonly calls: number;
  readonly otherRequests: number;
  /** Every day of the period, even without calls. The day of the report comes last. */
  readonly days: readonly DayUsage[];
  /** The clients of the route, except those that are ignored; most calls first. */
  readonly clients: readonly ClientUsage[];
}

/** The verdict on one route. It is what `--route` with this route says. */
export type RouteVerdict = Verdict & {
  readonly route: string;
  /** The number of calls, except those of clients that are ignored. */
  readonly calls: number;
  readonly clients: readonly Pick<ClientUsage, "client" | "calls" | "last">[];
  /** The first day on which an unknown verdict can be clear, if it can be known. */
  readonly recovery: string | undefined;
};

/** A client to ignore. */
export interface IgnoredClient extends Pick<ClientUsage, "client" | "calls"> {
  /** Whether the record has calls of the client, in the period or before. */
  readonly isOnRecord: boolean;
  /** The client on record that may be meant, e.g. `app Overcast` for `Overcast`. */
  readonly meant: string | undefined;
}

/** The names of a program's command and settings, for sentences. */
export interface ProgramNames {
  /** The command as it is typed, e.g. `deno task media usage`. */
  readonly command: string;
  /** The instruction to have routes probed, e.g. "set PUBLIC_URL". */
  readonly howToProbe: string;
  /** The instruction to leave the probe out, e.g. "set PUBLIC_URL= for this command". */
  readonly howNotToProbe: string;
  /** The setting of the days to retain, e.g. `USAGE_DAYS`. */
  readonly retainSetting: string;
}

export interface UsageReportOptions {
  /** The routes to report on. Default: the routes that servers announce. */
  readonly routes?: readonly string[] | undefined;
  /** The number of whole UTC days in the period. */
  readonly days: number;
  /** The only client to report on. Default: every client. */
  readonly client?: string | undefined;
  /** The names of clients that do not count for the verdict. */
  readonly ignore?: readonly string[] | undefined;
  /** The number of calls that the verdict allows. Default: 0. */
  readonly atMost?: number | undefined;
  /** Whether the operator vouches for all stops. */
  readonly trustStops?: boolean | undefined;
  readonly probe?: ProbeResult | undefined;
  /** Whether the gate would probe. */
  readonly canProbe?: boolean | undefined;
  readonly program: ProgramNames;
  /** The number of whole days that servers retain, if known. */
  readonly usageDays?: number | undefined;
  /** All sessions, from {@linkcode waitForReports}. */
  readonly sessions: readonly Session[];
  /** The instant of the verdict, by the ledger's time, in milliseconds since the epoch. */
  readonly now: number;
}

/** The dates of a policy. */
export type PolicyDates = Pick<Policy, "deprecatedAt" | "sunsetAt" | "brownouts">;

/** The dates that a running server announces for routes, other than those of the report. */
export interface OtherDates {
  readonly routes: readonly string[];
  /** The dates of the report. */
  readonly announced: PolicyDates;
  readonly session: Pick<Session, "id" | "process">;
  /** The dates that the session announces. */
  readonly others: PolicyDates;
}

/** The report of a period: whole UTC days, and part of the day on which it is made. */
export interface UsageReport extends
  Pick<
    UsageReportOptions,
    "days" | "client" | "now" | "usageDays" | "probe" | "canProbe" | "program"
  > {
  /** The policy of each route, from the last session that announced one. */
  readonly policies: RoutePolicies;
  /** The dates that running servers announce, other than those of the policies. */
  readonly otherDates: readonly OtherDates[];
  readonly from: string;
  readonly today: string;
  readonly routes: readonly RouteUsage[];
  /** The routes that the verdict covers. */
  readonly judged: readonly string[];
  /** The clients of the routes, except those that are ignored; most calls first. */
  readonly clients: readonly ClientUsage[];
  /** Every client to ignore, even without calls. */
  readonly ignored: readonly IgnoredClient[];
  /** Requests that are no calls, because a probe of a gate or the library's checker sent them. */
  readonly probes: readonly { readonly probe: string; readonly requests: number }[];
  /** The number of calls that the verdict allows. */
  readonly atMost: number;
  /**
   * Since when the record is complete, in milliseconds since the epoch; `undefined` if it is not.
   */
  readonly completeSince: number | undefined;
  readonly verdict: Verdict;
  /** The verdict on each of the judged routes. */
  readonly verdicts: readonly RouteVerdict[];
  /**
   * The judged routes that processes may have served unregistered. Their verdicts rest on no such
   * process having ended unregistered, and none running unregistered now.
   */
  readonly servedUnregistered: readonly string[];
  /** The verdict on all routes that are unknown. Others may be called. */
  readonly unknown: UnknownVerdict | undefined;
  /** The first day on which an unknown verdict can be clear, if it can be known. */
  readonly recovery: string | undefined;
}

/** Milliseconds between two checks for a server's report. */
const POLL_INTERVAL_MS = 200;

/**
 * Waits until every session has reported the calls before an instant, for at most two flushes after
 * the database's clock has reached the instant. Silent sessions are not awaited.
 *
 * @param time The times of the ledger at that instant.
 * @param onWait Called once with the sessions to wait for, if any.
 * @returns All sessions, in the order in which they began.
 */
export async function waitForReports(
  ledger: Pick<Ledger, "sessions" | "time">,
  time: LedgerTime,
  onWait: (sessions: readonly Session[]) => void,
): Promise<readonly Session[]> {
  const limit = lagOf(time) < MINUTE_MS ? lagOf(time) + 2 * FLUSH_INTERVAL_MS : 0;
  const deadline = performance.now() + limit;
  for (let isFirst = true;; isFirst = false) {
    const sessions = await ledger.sessions();
    const awaited = sessions.filter((each) => isAwaited(each, time.now) && !isSilent(each, time));
    if (awaited.length === 0 || performance.now() >= deadline) return sessions;
    if (isFirst) onWait(awaited);
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

/**
 * Creates the report from a ledger.
 *
 * @throws {RefusedError} If the client to report on is not on record.
 * @throws {WrongUsageError} If other routes are on record, but not the one given.
 */
export async function reportUsage(
  ledger: Pick<Ledger, "usage" | "hasClient" | "started" | "time">,
  options: UsageReportOptions,
): Promise<UsageReport> {
  const { days, client, now, usageDays, sessions, probe, canProbe, program } = options;
  const { ignore = [], atMost = 0, trustStops = false } = options;
  const period = Array.from({ length: days + 1 }, (_, ago) => dayOf(now - (days - ago) * DAY_MS));
  const from = period[0] as string;
  const today = dayOf(now);
  const policies = announcedPolicies(sessions);
  const judged = [...new Set(options.routes ?? judgedRoutes(sessions))];
  const unknown = judged.find((route) => !Object.hasOwn(policies, route));
  const known = Object.keys(policies).map((route) => `"${route}"`).join(" or ");
  if (unknown !== undefined && known !== "") {
    throw new WrongUsageError(`route "${unknown}" was never counted, expected ${known}`);
  }
  // Once no route is deprecated, the report still says who called.
  const listed = judged.length > 0 ? judged : Object.keys(policies);
  // The order matters. Sessions vouch for rows, so sessions are read before rows. The start of the
  // record moves before days are deleted, so it is read last.
  const time = await ledger.time();
  const sums = await addUp(ledger.usage(from), { listed, period, client });
  const evidence: Evidence = { sessions, started: await ledger.started(), judgedAt: now, time };
  if (client !== undefined && sums.clients.length === 0 && !await ledger.hasClient(client)) {
    const meant = await meantBy(client, ledger);
    const remedy = meant === undefined
      ? `use the report's name, e.g. "app curl"`
      : `did you mean "${meant}"?`;
    throw new RefusedError(`No client "${client}" on record; ${remedy}`);
  }

  const isCounted = ({ client }: ClientUsage) => !ignore.includes(client);
  const clients = sums.clients.filter(isCounted);
  const ignored = await Promise.all(ignore.map(async (client): Promise<IgnoredClient> => {
    const calls = callsIn(sums.clients.filter((each) => each.client === client));
    const isOnRecord = calls > 0 || await ledger.hasClient(client);
    const meant = isOnRecord ? undefined : await meantBy(client, ledger);
    return { client, calls, isOnRecord, meant };
  }));
  const routes = sums.routes.map(({ route, days, otherRequests, clients }): RouteUsage => {
    const since = completeSince(evidence, [route], { trustStops }) ?? Infinity;
    return {
      route,
      calls: callsIn(days),
      otherRequests,
      days: days.map((each) => ({ ...each, isWhole: since <= Date.parse(each.day) })),
      clients: clients.filter(isCounted),
    };
  });
  const start = Date.parse(from);
  const judgeAll = (routes: readonly string[], hidden: readonly HiddenCalls[]) =>
    judge(evidence, { routes, from: start, trustStops, hidden });
  const hidden = probe?.hidden ?? [];
  const hiddenOn = (routes: readonly string[]) =>
    hidden.filter(({ route }) => routes.includes(route));
  const verdicts = (judged.length > 0 ? routes : []).map(({ route, clients }): RouteVerdict => {
    const calls = callsIn(clients);
    const verdict = calls > atMost ? CALLED : judgeAll([route], hiddenOn([route]));
    const callers = clients.map(({ client, calls, last }) => ({ client, calls, last }));
    return { route, calls, clients: callers, ...verdict, recovery: recoveryOf(verdict, options) };
  });
  const verdict = judged.length > 0 && callsIn(clients) > atMost
    ? CALLED
    : judgeAll(judged, hidden);
  const open = verdicts.filter(({ state }) => state === "unknown").map(({ route }) => route);
  const rest = verdict.state === "called" && open.length > 0
    ? judgeAll(open, hiddenOn(open))
    : verdict;
  return {
    days,
    client,
    from,
    today,
    now,
    policies,
    usageDays,
    program,
    judged,
    clients,
    ignored,
    atMost,
    probe,
    canProbe,
    probes: sums.probes,
    verdict,
    verdicts,
    unknown: rest.state === "unknown" ? rest : undefined,
    routes,
    completeSince: completeSince(evidence, judged, { trustStops }),
    servedUnregistered: judged.filter((route) =>
      mayBeServedUnregistered(evidence, route, Date.parse(from))
    ),
    otherDates: otherDates(policies, sessions),
    recovery: recoveryOf(verdict, options),
  };
}

const CALLED = { state: "called" } as const;

/** The kinds of names that clients have, as they begin. */
const KINDS = ["app", "id", "site"] as const;

/** Returns the client on record whose name lacks only its kind, if there is one. */
async function meantBy(
  name: string,
  ledger: Pick<Ledger, "hasClient">,
): Promise<string | undefined> {
  for (const kind of KINDS) {
    if (await ledger.hasClient(`${kind} ${name}`)) return `${kind} ${name}`;
  }
  return undefined;
}

/** Returns the first day on which a verdict can be clear, if it is unknown and that can be known. */
export function recoveryOf(
  verdict: Verdict,
  options: Pick<UsageReportOptions, "days" | "usageDays">,
): string | undefined {
  return verdict.state !== "unknown" || verdict.hidden.length > 0
    ? undefined
    : recoveryFrom(verdict.doubts, options);
}

/**
 * Returns the first day on which a verdict can be clear without anybody's word; `undefined` if it
 * cannot be known.
 */
export function recoveryFrom(
  doubts: readonly Doubt[],
  { days, usageDays }: Pick<UsageReportOptions, "days" | "usageDays">,
): string | undefined {
  if ((usageDays ?? days) < days || doubts.some(({ isOpen }) => isOpen)) return undefined;
  const last = doubts.at(-1); // the one that ends last
  return last && dayOf((Math.ceil(last.until / DAY_MS) + days) * DAY_MS);
}

/** Returns the policy of each route from the session that began last, preferring running servers. */
export function announcedPolicies(sessions: readonly Session[]): RoutePolicies {
  // Object.assign() would take the name "__proto__" for a prototype.
  return Object.fromEntries(
    runningLast(sessions).flatMap(({ policies }) => Object.entries(policies)),
  );
}

/** Returns the session that began last, preferring running servers, if there is one. */
export function latestSession(sessions: readonly Session[]): Session | undefined {
  return runningLast(sessions).at(-1);
}

/** Lists the sessions of running servers after all others. */
function runningLast(sessions: readonly Session[]): Session[] {
  const latest = Math.max(...sessions.map(({ reported }) => reported));
  const isRunning = ({ ended, reported }: Session) =>
    ended === undefined && latest - reported < MINUTE_MS;
  return [...sessions.filter((session) => !isRunning(session)), ...sessions.filter(isRunning)];
}

/** Returns the routes of open sessions; if none is open, those of the session that ended last. */
export function judgedRoutes(sessions: readonly Session[]): string[] {
  const open = sessions.filter(({ ended }) => ended === undefined);
  const last = sessions.toSorted((a, b) => a.reported - b.reported).slice(-1);
  return Object.keys(announcedPolicies(open.length > 0 ? open : last));
}

/** Lists each case of other dates that a running server announces, once, with its routes. */
function otherDates(policies: RoutePolicies, sessions: readonly Session[]): OtherDates[] {
  const cases = new Map<string, { route: string; dates: Omit<OtherDates, "routes"> }>();
  for (const session of sessions.filter(({ ended }) => ended === undefined)) {
    const { id, process } = session;
    for (const [route, policy] of Object.entries(session.policies)) {
      const announced = datesOf(policies[route] ?? policy);
      const others = datesOf(policy);
      if (JSON.stringify(announced) === JSON.stringify(others)) continue;
      const dates = { announced, session: { id, process }, others };
      cases.set(JSON.stringify([route, others]), { route, dates });
    }
  }
  const found = new Map<string, OtherDates>();
  for (const { route, dates } of cases.values()) {
    const key = JSON.stringify(dates);
    found.set(key, { ...dates, routes: [...found.get(key)?.routes ?? [], route] });
  }
  return [...found.values()];
}

/** Returns the dates of a policy. Dates that are equal are equal as JSON. */
function datesOf({ deprecatedAt, sunsetAt, brownouts }: Policy): PolicyDates {
  return { deprecatedAt, sunsetAt, brownouts: brownouts.map(({ start, end }) => ({ start, end })) };
}
