/**
 * The retirement report: the calls to deprecated routes in one period, and the verdict on removing
 * the routes.
 *
 * "Calls" are requests that the removal breaks. All others are "other requests".
 */

import { WrongUsageError } from "../../errors/refused_error.ts";
import type { RoutePolicies } from "../../lifecycle/policy.ts";
import { DAY_MS, dayOf } from "../../http/timestamp.ts";
import { policiesUnder } from "../record/holds.ts";
import type { Ledger } from "../record/ledger.ts";
import { type ClientHistory, isOpen, type Session } from "../record/records.ts";
import { announcedPolicies, judgedRoutes, type OtherDates, otherDates } from "./announcements.ts";
import { completeSince, type Evidence } from "./doubts.ts";
import { type IgnoredClient, ignoredClients, requireOnRecord } from "./named_clients.ts";
import type { ProbeResult } from "./probe.ts";
import type { PeriodLengths } from "./verdict.ts";
import { type SilentClients, silentClients } from "./rhythms.ts";
import { judgeRoutes, type Verdicts } from "./route_verdicts.ts";
import { addUp, callsIn, type ClientErrors, type ClientUsage, type PhaseCalls } from "./sums.ts";
import { HEARTBEAT_LIMIT_MS, type SessionsAndIntents } from "./waiting.ts";

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

export interface UsageReportOptions extends Pick<PeriodLengths, "days">, SessionsAndIntents {
  /** Whether each client is asked for its longest pause, if that is longer than the period. */
  readonly isByRhythm?: boolean | undefined;
  /** The routes to report on. Default: the routes that servers announce. */
  readonly routes?: readonly string[] | undefined;
  /** The only client to report on. Default: every client. */
  readonly client?: string | undefined;
  /** The names of clients that do not count for the verdict. */
  readonly ignore?: readonly string[] | undefined;
  /** The number of calls that the verdict allows. Default: 0. */
  readonly atMost?: number | undefined;
  /** Whether the operator vouches for all stops, and for what is like them. */
  readonly trustStops?: boolean | undefined;
  readonly probe?: ProbeResult | undefined;
  /**
   * Whether running servers had time to record the calls before the instant of the verdict. A
   * report waits for nobody: it takes what they have recorded in the last two flushes for complete.
   */
  readonly isGate?: boolean | undefined;
  /** The instant of the verdict, by the ledger's time, in milliseconds since the epoch. */
  readonly now: number;
}

/** The report of a period: whole UTC days, and part of the day on which it is made. */
export interface UsageReport extends
  Pick<
    UsageReportOptions,
    "days" | "client" | "now" | "probe"
  >,
  Pick<PeriodLengths, "retainDays">,
  SilentClients,
  Verdicts {
  /** Whether each client is asked for its longest pause, if that is longer than the period. */
  readonly isByRhythm: boolean;
  /**
   * The policy of each route, from the last session that announced one, under the holds on it; of a
   * report on one client, as it applies to that client.
   */
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
  /** The requests of each probe of a gate, and those of `lifecycle check`. None is a call. */
  readonly probes: readonly { readonly probe: string; readonly requests: number }[];
  /** The number of calls that the verdict allows. */
  readonly atMost: number;
  /**
   * Since when the record is complete, in milliseconds since the epoch; `undefined` if it is not.
   */
  readonly completeSince: number | undefined;
  /** How far back calls are on record, in milliseconds since the epoch, if there are any sessions. */
  readonly onRecordSince: number | undefined;
  /**
   * The latest sunset that is announced for a route to judge, to everybody or to one client, if it has
   * not passed.
   */
  readonly announcedUntil: number | undefined;
  /** The requests to the routes to judge, except calls, that were answered 4xx; most first. */
  readonly clientErrors: readonly ClientErrors[];
  /**
   * The judged routes that processes may serve where the ledger does not take the calls. Their
   * verdicts rest on there being no such calls, beyond the sessions that the doubts name.
   */
  readonly servedUnrecorded: readonly string[];
}

/**
 * Creates the report from a ledger.
 *
 * @throws {RefusedError} If the client to report on is not on record, or the database is a replica.
 * @throws {WrongUsageError} If other routes are on record, but not the one given.
 */
export async function reportUsage(
  ledger: RecordReader & Pick<Ledger, "hasClient">,
  options: UsageReportOptions,
): Promise<UsageReport> {
  const { days, client, now, probe, isByRhythm = false } = options;
  const { sessions, intents, isGate = false } = options;
  const { ignore = [], atMost = 0, trustStops = false } = options;
  const from = dayOf(now - days * DAY_MS);
  const period = Array.from({ length: days + 1 }, (_, ago) => dayOf(now - (days - ago) * DAY_MS));
  const start = Date.parse(from);
  const { holds } = await ledger.holds();
  const policies = policiesUnder(announcedPolicies(sessions), holds);
  const judged = [...new Set(options.routes ?? judgedRoutes(sessions))];
  requireCounted(judged, policies);
  // Once no route is deprecated, the report still says who called.
  const listed = judged.length > 0 ? judged : Object.keys(policies);
  const { sums, histories, started, ...read } = await readRecord(ledger, from, {
    listed,
    period,
    client,
  });
  if (client !== undefined && sums.clients.length === 0) await requireOnRecord(client, ledger);
  const ignored = await ignoredClients(ignore, sums.clients, ledger);

  const settledSince = isGate ? now : now - HEARTBEAT_LIMIT_MS;
  const evidence: Evidence = {
    ...{ sessions, intents, judgedAt: now, settledSince, started, ...read },
  };
  const isCounted = ({ client }: Pick<ClientUsage, "client">) => !ignore.includes(client);
  const retainDays = retainedDays(sessions);
  const lengths = { days, retainDays };
  const silentOn = (route: string, clients: readonly ClientUsage[]) => {
    const called = new Set(clients.map(({ client }) => client));
    const others = histories.filter((each) =>
      each.route === route && !called.has(each.client) && isCounted(each) &&
      (client === undefined || each.client === client)
    );
    return silentClients(others, { now, days, isByRhythm, retainDays });
  };
  const announcedUntil = (route: string) => {
    const { sunsetAt = 0 } = policies[route] ?? {};
    return sunsetAt > now ? sunsetAt : undefined;
  };
  const routes = sums.routes.map(({ route, days, otherRequests, clients }): RouteUsage => {
    const since = completeSince(evidence, [route], trustStops) ?? Infinity;
    return {
      route,
      calls: callsIn(days),
      otherRequests,
      days: days.map((each) => ({ ...each, isWhole: since <= Date.parse(each.day) })),
      clients: clients.filter(isCounted),
    };
  });
  const { verdict, verdicts, unknown, recovery } = judgeRoutes(
    evidence,
    sums.routes.filter(({ route }) => judged.includes(route)).map(({ route, clients }) => ({
      route,
      clients: clients.filter(isCounted),
      ...silentOn(route, clients),
      announcedUntil: announcedUntil(route),
    })),
    { from: start, atMost, trustStops, hidden: probe?.hidden ?? [], lengths },
  );
  const sunsets = verdicts.flatMap(({ announcedUntil = [] }) => announcedUntil);
  return {
    days,
    client,
    from,
    today: dayOf(now),
    now,
    policies,
    retainDays,
    isByRhythm,
    judged,
    clients: sums.clients.filter(isCounted),
    ignored,
    atMost,
    probe,
    probes: sums.probes,
    verdict,
    verdicts,
    due: verdicts.flatMap(({ due }) => due),
    earlier: verdicts.flatMap(({ earlier }) => earlier),
    announcedUntil: sunsets.length === 0 ? undefined : Math.max(...sunsets),
    clientErrors: sums.clientErrors.filter((each) =>
      judged.includes(each.route) && isCounted(each)
    ),
    onRecordSince: onRecordSince(evidence.started, { now, retainDays, histories }),
    unknown,
    routes,
    completeSince: completeSince(evidence, judged, trustStops),
    servedUnrecorded: judged.filter((route) =>
      sessions.some(({ mayServeUnrecorded, policies, reported, ended }) =>
        mayServeUnrecorded === true && Object.hasOwn(policies, route) &&
        (reported >= start || ended !== "stopped")
      )
    ),
    otherDates: otherDates(sessions),
    recovery,
  };
}

/** Reads what a report needs besides sessions and intents. */
type RecordReader = Pick<
  Ledger,
  "histories" | "usage" | "started" | "time" | "timeline" | "holds"
>;

/** Reads a ledger from a day on, after its sessions and intents. */
async function readRecord(
  ledger: RecordReader,
  from: string,
  question: Parameters<typeof addUp>[1],
) {
  // The order matters. Sessions and intents vouch for rows, so they are read before rows. The start of
  // the record moves before days are deleted, so it is read afterwards. If the timeline is then still
  // that of the sessions, all of this is.
  const time = await ledger.time();
  const histories = await ledger.histories(); // a call that is recorded later is among the rows
  const sums = await addUp(ledger.usage(from), question);
  const started = await ledger.started();
  const timeline = await ledger.timeline();
  return { time, histories, sums, started, timeline };
}

/** Returns for how many days servers retain counts, by the shortest if they differ. */
function retainedDays(sessions: readonly Session[]): number | undefined {
  const open = sessions.filter((session) => isOpen(session));
  const last = sessions.toSorted((a, b) => a.reported - b.reported).slice(-1);
  const days = (open.length > 0 ? open : last).map(({ retainDays }) => retainDays);
  return days.length === 0 ? undefined : Math.min(...days);
}

/**
 * Returns how far back calls are on record: to the start of the record; or where counts are deleted
 * since, to the first day on which a client called.
 */
function onRecordSince(
  started: number | undefined,
  { now, retainDays = Infinity, histories }: {
    readonly now: number;
    readonly retainDays: number | undefined;
    readonly histories: readonly ClientHistory[];
  },
): number | undefined {
  const isDeleted = started !== undefined && now - started >= retainDays * DAY_MS;
  if (!isDeleted) return started;
  return Math.min(started, ...histories.map(({ first }) => Date.parse(first)));
}

/**
 * Checks that routes are on record, if any is.
 *
 * @throws {WrongUsageError} If one is not.
 */
function requireCounted(routes: readonly string[], policies: RoutePolicies): void {
  const unknown = routes.find((route) => !Object.hasOwn(policies, route));
  const known = Object.keys(policies).map((route) => `"${route}"`).join(" or ");
  if (unknown === undefined || known === "") return;
  throw new WrongUsageError(`route "${unknown}" was never counted, expected ${known}`);
}
