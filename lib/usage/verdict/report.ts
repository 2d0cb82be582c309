/**
 * The retirement report: the calls to deprecated routes in one period, and the verdict on removing
 * the routes.
 *
 * "Calls" are requests that the removal breaks. All others are "other requests".
 */

import { WrongUsageError } from "../../errors/refused_error.ts";
import { DAY_MS, dayOf } from "../../http/timestamp.ts";
import type { RoutePolicies } from "../../lifecycle/policy.ts";
import { isPartOf } from "../../lifecycle/route_name.ts";
import { policiesUnder, type RecordedHold } from "../record/holds.ts";
import type { ClientHistory, Session, UsageRow } from "../record/records.ts";
import {
  announcedPolicies,
  judgedRoutes,
  latestSunset,
  type OtherDates,
  otherDates,
} from "./announcements.ts";
import {
  type Evidence,
  evidenceOf,
  instantOf,
  type ReadSession,
  type RecordSessions,
  type RecordSource,
} from "./evidence.ts";
import { type Gap, gapsOf, missingIn, routeStart } from "./gaps.ts";
import { type IgnoredClient, ignoredClients, requireOnRecord } from "./named_clients.ts";
import type { ProbeResult } from "./probe.ts";
import { mergedHistories, type SilentClients, silentClients } from "./rhythms.ts";
import {
  addUp,
  callsIn,
  type ClientErrors,
  type ClientUsage,
  type PhaseCalls,
  type Sums,
} from "./sums.ts";
import {
  gapsOfAll,
  judge,
  type Question,
  type RouteVerdict,
  type State,
  stateOf,
} from "./verdict.ts";

/** Calls to one route on one UTC day. */
export interface DayUsage {
  /** UTC, e.g. `2027-01-31`. */
  readonly day: string;
  /** Whether the day is on record (today: so far), but for less than 48 minutes. */
  readonly isOnRecord: boolean;
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

export interface UsageReportOptions {
  /** The number of whole UTC days in the period. */
  readonly days: number;
  /** Whether each client is asked for its longest pause, if that is longer than the period. */
  readonly isByRhythm?: boolean | undefined;
  /** The routes to report on, each with its parts. Default: the routes that processes announce. */
  readonly routes?: readonly string[] | undefined;
  /** The only client to report on. Default: every client. */
  readonly client?: string | undefined;
  /** The names of clients that do not count for the verdict. */
  readonly ignore?: readonly string[] | undefined;
  readonly probe?: ProbeResult | undefined;
}

/** The report of a period: whole UTC days, and part of the day on which it is made. */
export interface UsageReport extends SilentClients {
  /** The number of whole UTC days in the period. */
  readonly days: number;
  /** Whether each client is asked for its longest pause, if that is longer than the period. */
  readonly isByRhythm: boolean;
  readonly client: string | undefined;
  /** The first day of the period, UTC. */
  readonly from: string;
  readonly today: string;
  /**
   * The instant of the report, in milliseconds since the epoch: what was answered before it is on
   * record, or in a gap.
   */
  readonly asOf: number;
  /** The policy of each route, from the last session that announced one, under the holds on it. */
  readonly policies: RoutePolicies;
  /** The dates that running processes announce, other than those of the policies. */
  readonly otherDates: readonly OtherDates[];
  readonly routes: readonly RouteUsage[];
  /** The routes that the verdict covers. */
  readonly judged: readonly string[];
  /** The verdict on all routes. */
  readonly state: State;
  /** The verdict on each of them. */
  readonly verdicts: readonly RouteVerdict[];
  /** What is not on record of any of them, in the order in which it began. */
  readonly gaps: readonly Gap[];
  /** The first day on which the verdict on all can be clear, if it is unknown and that can be known. */
  readonly clearFrom: string | undefined;
  /** The clients of the routes, except those that are ignored; most calls first. */
  readonly clients: readonly ClientUsage[];
  /** Every client to ignore, even without calls. */
  readonly ignored: readonly IgnoredClient[];
  readonly probe: ProbeResult | undefined;
  /** The requests of each probe of a gate, and those of `lifecycle check`. None is a call. */
  readonly probes: readonly { readonly probe: string; readonly requests: number }[];
  /** For how many whole days processes retain counts, if known. */
  readonly retainDays: number | undefined;
  /** How far back calls are on record, in milliseconds since the epoch, if there are any sessions. */
  readonly onRecordSince: number | undefined;
  /** The latest sunset that is announced for a route to judge, if it has not passed. */
  readonly announcedUntil: number | undefined;
  /** The requests to the routes to judge, except calls, that were answered 4xx; most first. */
  readonly clientErrors: readonly ClientErrors[];
  /** The names of the records in which no process reports, if there are several. */
  readonly quietRecords: readonly string[];
}

/** What a report reads of a record besides its sessions. */
type RecordParts = "histories" | "usage" | "started" | "holds" | "hasClient";

/**
 * Creates the report from one record, or from several.
 *
 * @param records The sessions of each, read before.
 * @throws {RefusedError} If the client to report on is not on record.
 * @throws {WrongUsageError} If other routes are on record, but not the one given.
 */
export async function reportUsage(
  sources: readonly RecordSource<RecordParts>[],
  records: readonly RecordSessions[],
  options: UsageReportOptions,
): Promise<UsageReport> {
  const { days, client, ignore = [], isByRhythm = false, probe } = options;
  const asOf = instantOf(records);
  const period = Array.from({ length: days + 1 }, (_, at) => dayOf(asOf - (days - at) * DAY_MS));
  const [from = dayOf(asOf)] = period;
  const found = await readCalls(sources, records, { routes: options.routes, period, client });
  const { sessions, policies, judged, histories, sums, evidence } = found;
  if (client !== undefined && sums.clients.length === 0) await requireOnRecord(client, sources);
  const ignored = await ignoredClients(ignore, sums.clients, sources);

  const isCounted = (each: Pick<ClientUsage, "client">) => !ignore.includes(each.client);
  const retainDays = retainedDays(records);
  const question = { days, start: Date.parse(from), retainDays, hidden: probe?.hidden ?? [] };
  const verdicts = verdictsOn(found, question, { client, isByRhythm, isCounted });
  const { state, gaps, clearFrom, announcedUntil } = verdictOnAll(verdicts);
  return {
    ...{ days, isByRhythm, client, from, today: dayOf(asOf), asOf, policies, judged, verdicts },
    ...{ ignored, probe, probes: sums.probes, retainDays },
    otherDates: otherDates(sessions),
    routes: sums.routes.map((sum) => usageOf(sum, evidence, isCounted)),
    state,
    gaps,
    clearFrom,
    clients: sums.clients.filter(isCounted),
    due: verdicts.flatMap(({ due }) => due),
    earlier: verdicts.flatMap(({ earlier }) => earlier),
    onRecordSince: onRecordSince(evidence, histories, retainDays),
    announcedUntil,
    clientErrors: sums.clientErrors.filter((each) =>
      judged.includes(each.route) && isCounted(each)
    ),
    quietRecords: sources.length === 1 ? [] : records
      .filter(({ sessions }) => sessions.every(({ isOver }) => isOver))
      .map(({ name }) => name),
  };
}

/** What the records have: the calls, and what says which routes were counted, and when. */
interface Found {
  readonly sessions: readonly ReadSession[];
  readonly holds: readonly RecordedHold[];
  readonly policies: RoutePolicies;
  readonly judged: readonly string[];
  readonly histories: readonly ClientHistory[];
  readonly sums: Sums;
  readonly evidence: Evidence;
}

/**
 * Reads the calls of a period, or those of one client. What vouches for rows is read before them,
 * and the start of the record after them, because it moves before rows are deleted.
 */
async function readCalls(
  sources: readonly RecordSource<RecordParts>[],
  records: readonly RecordSessions[],
  { routes, period, client }: Pick<UsageReportOptions, "routes" | "client"> & {
    readonly period: readonly string[];
  },
): Promise<Found> {
  const sessions = records.flatMap(({ sessions }) => sessions);
  const holds = await holdsIn(sources);
  const policies = policiesUnder(announcedPolicies(sessions), holds);
  const judged = routesAsked(routes, judgedRoutes(sessions), policies);
  // Once no route is deprecated, the report still says who called.
  const listed = judged.length > 0 ? judged : Object.keys(policies);
  const histories = await historiesIn(sources);
  const sums = await addUp(rowsIn(sources, period[0] ?? ""), { listed, period, client });
  const started = await Promise.all(sources.map((each) => each.ledger.started()));
  const evidence = evidenceOf(records, started);
  return { sessions, holds, policies, judged, histories, sums, evidence };
}

/** Judges each route. */
function verdictsOn(
  { sessions, holds, judged, histories, sums, evidence }: Found,
  question: Question,
  { client, isByRhythm, isCounted }: Pick<UsageReport, "client" | "isByRhythm"> & {
    readonly isCounted: (each: Pick<ClientUsage, "client">) => boolean;
  },
): RouteVerdict[] {
  const { days, start, retainDays } = question;
  const rhythm = { now: evidence.asOf, days, isByRhythm, retainDays };
  const counted = histories.filter((each) =>
    isCounted(each) && (client ?? each.client) === each.client
  );
  return sums.routes.filter(({ route }) => judged.includes(route)).map(({ route, clients }) => {
    const silent = silentOn(route, clients, { histories: counted, rhythm });
    const sunset = latestSunset(sessions, route, { since: start, holds });
    const announcedUntil = sunset !== undefined && sunset > evidence.asOf ? sunset : undefined;
    const asked = { route, clients: clients.filter(isCounted), announcedUntil, ...silent };
    return judge(evidence, asked, question);
  });
}

/** Returns the verdict on all routes. */
function verdictOnAll(
  verdicts: readonly RouteVerdict[],
): Pick<UsageReport, "state" | "gaps" | "clearFrom" | "announcedUntil"> {
  const days = verdicts.filter(({ state }) => state === "unknown").map((each) => each.clearFrom);
  const sunsets = verdicts.flatMap(({ announcedUntil = [] }) => announcedUntil);
  return {
    state: stateOf(verdicts),
    gaps: gapsOfAll(verdicts),
    clearFrom: days.includes(undefined) ? undefined : days.toSorted().at(-1),
    announcedUntil: sunsets.length === 0 ? undefined : Math.max(...sunsets),
  };
}

/** Reads the holds in all records. Whoever reports is held by those of its own record only. */
async function holdsIn(sources: readonly RecordSource<"holds">[]): Promise<RecordedHold[]> {
  const read = await Promise.all(sources.map(({ ledger }) => ledger.holds()));
  return read.flatMap(({ holds }) => holds);
}

async function historiesIn(
  sources: readonly RecordSource<"histories">[],
): Promise<readonly ClientHistory[]> {
  const read = await Promise.all(sources.map(({ ledger }) => ledger.histories()));
  return mergedHistories(read);
}

/** Reads the rows of all records from a day on. */
async function* rowsIn(
  sources: readonly RecordSource<"usage">[],
  from: string,
): AsyncGenerator<UsageRow> {
  for (const { ledger } of sources) yield* ledger.usage(from);
}

/**
 * Returns the routes to judge.
 *
 * @param asked The routes asked for, each of which takes its parts along.
 * @throws {WrongUsageError} If one is not on record, though others are.
 */
function routesAsked(
  asked: readonly string[] | undefined,
  announced: readonly string[],
  policies: RoutePolicies,
): string[] {
  if (asked === undefined) return [...announced];
  const names = Object.keys(policies);
  const unknown = asked.find((route) => !names.some((name) => isPartOf(route, name)));
  if (unknown !== undefined && names.length > 0) {
    const known = names.map((name) => `"${name}"`).join(" or ");
    throw new WrongUsageError(`route "${unknown}" was never counted, expected ${known}`);
  }
  if (names.length === 0) return [...new Set(asked)];
  return names.filter((name) => asked.some((route) => isPartOf(route, name)));
}

/** Divides the clients that called a route, but not in the period. */
function silentOn(
  route: string,
  called: readonly ClientUsage[],
  { histories, rhythm }: {
    readonly histories: readonly ClientHistory[];
    readonly rhythm: Parameters<typeof silentClients>[1];
  },
): SilentClients {
  const names = new Set(called.map(({ client }) => client));
  const others = histories.filter((each) => each.route === route && !names.has(each.client));
  return silentClients(others, rhythm);
}

function usageOf(
  { route, days, otherRequests, clients }: Sums["routes"][number],
  evidence: Evidence,
  isCounted: (client: ClientUsage) => boolean,
): RouteUsage {
  const [first] = days;
  const began = routeStart(evidence, route) ?? Infinity;
  const start = Date.parse(first?.day ?? "");
  const gaps = gapsOf(evidence, route, { start, since: start });
  return {
    route,
    calls: callsIn(days),
    otherRequests,
    days: days.map((each) => ({
      ...each,
      isOnRecord: isOnRecord(each.day, { began, gaps, evidence }),
    })),
    clients: clients.filter(isCounted),
  };
}

/** Returns whether a day is on record but for a thirtieth, as a period has to be for a verdict. */
function isOnRecord(
  day: string,
  { began, gaps, evidence: { asOf } }: {
    /** Since when the route is on record, in milliseconds since the epoch. */
    readonly began: number;
    readonly gaps: readonly Gap[];
    readonly evidence: Evidence;
  },
): boolean {
  const start = Date.parse(day);
  const end = Math.min(start + DAY_MS, asOf);
  const before = Math.max(0, Math.min(began, end) - start);
  return before + missingIn(gaps, { start, end }) < DAY_MS / 30;
}

/** Returns for how many days processes retain counts, by the shortest if they differ. */
function retainedDays(records: readonly RecordSessions[]): number | undefined {
  const sessions: readonly Session[] = records.flatMap(({ sessions }) =>
    sessions.filter(({ isOver }) => !isOver)
  );
  const last = records.flatMap(({ sessions }) => sessions)
    .toSorted((a, b) => a.reported - b.reported).slice(-1);
  const days = (sessions.length > 0 ? sessions : last).map(({ retainDays }) => retainDays);
  return days.length === 0 ? undefined : Math.min(...days);
}

/**
 * Returns how far back calls are on record: to the first session; or where counts are deleted since,
 * to the first day on which a client called.
 */
function onRecordSince(
  { sessions, asOf }: Evidence,
  histories: readonly ClientHistory[],
  retainDays = Infinity,
): number | undefined {
  const counted = sessions[0]?.counted;
  if (counted === undefined || asOf - counted < retainDays * DAY_MS) return counted;
  return Math.min(counted, ...histories.map(({ first }) => Date.parse(first)));
}
