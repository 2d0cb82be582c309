/** The sentences of the retirement report, for text and page. */

import type { DayUsage, RouteUsage, UsageReport } from "../verdict/report.ts";
import { callsIn, type ClientUsage } from "../verdict/sums.ts";
import { DAY_MS } from "../record/day.ts";
import { formatInstant } from "../../http/timestamp.ts";
import type { Interval } from "../../lifecycle/instant.ts";
import { PHASES, type Policy } from "../../lifecycle/policy.ts";
import { MINUTE_MS } from "../record/records.ts";
import { sessionText } from "../record/session_name.ts";
import type { Trusted } from "../verdict/verdict.ts";
import type { PolicyDates } from "../verdict/announcements.ts";
import { recoveryFrom, recoveryOf } from "../verdict/recovery.ts";
import type { IgnoredClient } from "../verdict/named_clients.ts";
import type { Doubt } from "../verdict/doubts.ts";

/** The limit on lines in a list, or names in a cell. The JSON has them all. Routes have no limit. */
export const MAX_LISTED = 25;

/** The limit on names in a sentence, and on routes whose days without calls are shown. */
export const MAX_IN_DETAIL = 5;

export function titleText(report: UsageReport): string {
  return `Calls${byText(report)} to deprecated routes`;
}

function byText({ client }: UsageReport): string {
  return client === undefined ? "" : ` by ${client}`;
}

/**
 * Formats the period, up to the time of the report, e.g. "2027-06-08 to 2027-06-15T12:00:00Z (7 whole
 * days and part of 2027-06-15, UTC)".
 */
export function periodText({ from, days, today, now }: UsageReport): string {
  const length = `${plural(days, "whole day")} and part of ${today}, UTC`;
  return `${from} to ${formatInstant(now)} (${length})`;
}

/** Says when a report was made, because it may be kept. */
export function madeText({ now }: UsageReport): string {
  return `Made at ${formatInstant(now)}.`;
}

/** Returns whether a report has so many routes that they are not shown in detail. */
export function hasManyRoutes({ routes }: Pick<UsageReport, "routes">): boolean {
  return routes.length > MAX_IN_DETAIL;
}

/** Names routes, e.g. "/v1/songs and /v1/albums", or counts them, e.g. "40 routes". */
function routesText(routes: readonly string[]): string {
  return routes.length > MAX_IN_DETAIL ? plural(routes.length, "route") : routes.join(" and ");
}

/** Formats the requests to a route, e.g. "5 calls and 1 other request". */
export function requestsText({ calls, otherRequests }: RouteUsage): string {
  const others = otherRequests > 0 ? ` and ${plural(otherRequests, "other request")}` : "";
  return plural(calls, "call") + others;
}

export function verdictText(report: UsageReport): string {
  const { verdict, clients, ignored, atMost, judged } = report;
  if (judged.length === 0) return "Unknown: no server deprecates a route, so there is no verdict.";
  const to = ` to ${routesText(judged)}${byText(report)}`;
  const span = `from ${periodText(report)}`;
  const none = ignored.some(({ calls }) => calls > 0) ? "no other calls" : "no calls";
  const calls = clients.length === 0 ? none : plural(callsIn(clients), "call");
  switch (verdict.state) {
    case "clear": {
      const allowed = clients.length === 0 ? "" : `, at most ${count(atMost)} allowed,`;
      const words = wordsText(verdict.trusted);
      const trust = words === "" ? "" : `, on your word ${words}`;
      return `Clear${trust}: ${calls}${to}${allowed} ${span}, and the record is complete.`;
    }
    case "called": {
      const latest = clients.reduce((a, b) => b.last > a.last ? b : a);
      const called = judged.filter((route) => clients.some(({ routes }) => routes.includes(route)));
      const isOfOne = report.client !== undefined;
      const by = isOfOne ? byText(report) : ` by ${plural(clients.length, "client")}`;
      const lastBy = isOfOne ? "" : ` by ${latest.client}`;
      return `Still called: ${calls} to ${routesText(called)}${by} ${span}, ` +
        `the last${lastBy} recorded at ${formatInstant(latest.last)}.`;
    }
    case "unknown":
      return `Unknown: ${calls}${to} counted ${span}, but some may be missing.`;
  }
}

/** Says which words of the operator a clear verdict rests on, e.g. "that during …"; or nothing. */
export function wordsText({ stops, gone }: Trusted): string {
  const words: string[] = [];
  if (stops.length > 0) {
    words.push(
      `that during ${plural(stops.length, "stop")} (${totalText(stops)}) nothing else served, ` +
        "nothing was restored and no clock was wrong",
    );
  }
  if (gone.length > 0) words.push(`of when ${plural(gone.length, "dead server")} had ended`);
  return words.join(", and ");
}

/** Lists the basis of a verdict, and what it leaves out. */
export function basisLines(report: UsageReport): string[] {
  const { ignored } = report;
  return [
    ...trustLines(report),
    ...ignored.map((each) => `Ignored: ${each.client} (${ignoredText(each)})`),
    ...probeLines(report),
    ...otherDatesLines(report),
    ...unregisteredLines(report),
    coverageText(report),
  ];
}

/** Says for which routes running servers announce other dates than those of the report. */
export function otherDatesLines({ otherDates }: Pick<UsageReport, "otherDates">): string[] {
  return otherDates.map(({ routes, announced, session, others }) => {
    const announce = routes.length === 1 ? "announces" : "announce";
    return `${routes.join(", ")} ${announce} ${datesText(announced)}; ` +
      `but ${sessionText(session)}: ${datesText(others)}`;
  });
}

function datesText({ deprecatedAt, sunsetAt, brownouts }: PolicyDates): string {
  return [
    `deprecation ${formatInstant(deprecatedAt)}`,
    sunsetAt === undefined ? "no sunset" : `sunset ${formatInstant(sunsetAt)}`,
    ...brownouts.map(({ start, end }) => `brownout ${formatInstant(start)}/${formatInstant(end)}`),
  ].join(", ");
}

/** Says what the verdict on routes rests on that processes may serve unregistered. */
function unregisteredLines({ servedUnregistered, judged }: UsageReport): string[] {
  if (servedUnregistered.length === 0) return [];
  const routes = servedUnregistered.length === judged.length
    ? ""
    : ` on ${servedUnregistered.join(" and ")}`;
  return [
    `The verdict${routes} rests on no process having ended unregistered, and none running ` +
    "unregistered: the application may start without its record (required: false).",
  ];
}

function ignoredText({ calls, isOnRecord, meant }: IgnoredClient): string {
  if (isOnRecord) return plural(calls, "call");
  return meant === undefined ? "not on record" : `not on record; did you mean "${meant}"?`;
}

/** Lists what clear verdicts trust beyond the record. It is the same for all of them. */
function trustLines({ verdict, verdicts, from }: UsageReport): string[] {
  const clear = [verdict, ...verdicts].find((each) => each.state === "clear");
  if (clear === undefined) return [];
  const { stops, gone } = clear.trusted;
  const [moreStops, moreGone] = [stops.slice(MAX_LISTED), gone.slice(MAX_LISTED)];
  const words = wordsText(clear.trusted);
  const lines = clear === verdict || words === ""
    ? []
    : [`Routes are clear on your word ${words}.`];
  lines.push(
    ...stops.slice(0, MAX_LISTED).map(({ start, end }) =>
      `Trusted: ${intervalText(start, end)} without a server`
    ),
  );
  if (moreStops.length > 0) {
    lines.push(
      `Trusted: ${plural(moreStops.length, "more stop")} (${totalText(moreStops)} in all)`,
    );
  }
  for (const { reported, endedBy = reported, ...session } of gone.slice(0, MAX_LISTED)) {
    const times = `ended by ${formatInstant(endedBy)}, last report at ${formatInstant(reported)}`;
    const isInPeriod = reported + MINUTE_MS > Date.parse(from);
    const loss = isInPeriod ? ". Calls within a minute of that report may be missing" : "";
    lines.push(`Declared gone: ${sessionText(session)}, ${times}${loss}`);
  }
  if (moreGone.length > 0) lines.push(`Declared gone: ${plural(moreGone.length, "more session")}`);
  return lines;
}

/** Says which calls a verdict covers, and whether a probe found a cache. */
function coverageText({ probe, canProbe, program }: UsageReport): string {
  const covered = "The verdict covers the calls that reached the servers. ";
  if (probe === undefined) {
    const remedy = canProbe
      ? "the gate (--gate DAYS) checks for one."
      : `${program.howToProbe}, and the gate checks for one.`;
    return `${covered}A cache in front may hide others: ${remedy}`;
  }
  const { url, probed, hidden } = probe;
  if (hidden.length > 0 || probed.length === 0) {
    return `${covered}A cache in front may hide others.`;
  }
  const routes = routesText(probed);
  return `${covered}A probe of ${routes} through ${url} found no cache that hides others.`;
}

/** Reports the requests of probes, if any, so that no caller can hide among them. */
function probeLines({ probes }: UsageReport): string[] {
  if (probes.length === 0) return [];
  const requests = probes.reduce((sum, { requests }) => sum + requests, 0);
  return [
    `Not counted as calls: ${plural(requests, "request")} by ${plural(probes.length, "probe")}`,
  ];
}

/**
 * Formats the phases in which a client called, e.g. "deprecated; 5 calls in the brownout of
 * 2027-06-10T09:00:00Z". A client that called only in brownouts may have followed dead links.
 */
export function phasesText({ phases, brownouts }: ClientUsage): string {
  const texts = brownouts.map(({ start, calls }) =>
    `${plural(calls, "call")} in the brownout of ${formatInstant(Date.parse(start))}`
  );
  return PHASES.filter((phase) => phases[phase] !== undefined)
    .flatMap((phase) => phase === "brownout" ? texts : [phase]).join("; ");
}

/**
 * Formats the releases of an app, e.g. "3.0.1 (5 calls), 2.9.4 (3)", or the apps of any other
 * client. A single release of an app is left out.
 */
function releasesText({ client, releases }: ClientUsage): string {
  if (client.startsWith("app ") && releases.length < 2) return "";
  const listed = releases.slice(0, MAX_LISTED).map(({ release, calls }, at) =>
    `${release} (${at === 0 ? plural(calls, "call") : count(calls)})`
  );
  const more = releases.length - listed.length;
  return listed.join(", ") + (more > 0 ? `, and ${count(more)} more` : "");
}

/** Formats a client's calls, e.g. "app curl, 1 call, last recorded at … (deprecated)". */
function clientLine(usage: ClientUsage): string {
  const { client, calls, last } = usage;
  const called = `${plural(calls, "call")}, last recorded at ${formatInstant(last)}`;
  return `${client}, ${called} (${phasesText(usage)})`;
}

/** Formats clients as lines. */
export function clientLines(clients: readonly ClientUsage[]): string[] {
  const lines = clients.slice(0, MAX_LISTED).map(clientLine);
  const more = clients.length - lines.length;
  return more > 0 ? [...lines, `and ${plural(more, "more client")}`] : lines;
}

/** Returns the columns of a table of clients that are not empty. */
export function columnsOf(clients: readonly ClientUsage[]): Column[] {
  return COLUMNS.filter(([, cellOf]) => clients.some((client) => cellOf(client) !== ""));
}

type Column = readonly [title: string, cellOf: (usage: ClientUsage) => string];

const COLUMNS: readonly Column[] = [
  ["Client", ({ client }) => client],
  ["Calls", ({ calls }) => count(calls)],
  ["First call", ({ first }) => first],
  ["Last recorded on", ({ last }) => formatInstant(last)],
  [
    "Routes",
    ({ routes }) =>
      routes.length > MAX_IN_DETAIL ? plural(routes.length, "route") : routes.join(", "),
  ],
  ["Phases", phasesText],
  ["Releases or apps", releasesText],
];

/** Explains the verdict "unknown": each reason, the words that would help, and the wait. */
export function doubtLines(report: UsageReport): string[] {
  const { verdict, unknown, judged, program: { command } } = report;
  if (unknown === undefined) return [];
  const { hidden, doubts, remedy: { gone, trustStops, left } } = unknown;
  const recovery = recoveryOf(unknown, report);
  const isOnAll = verdict === unknown;
  const [it, they] = isOnAll ? ["this", "the verdict"] : ["the unknown routes", "they"];
  const isOfRoute = (route: string) => report.judged.length > 1 && report.judged.includes(route);
  const causes = [ // routeLines() lists those that concern one route
    ...hidden.filter(({ route }) => !isOfRoute(route))
      .map(({ route, reason }) => `${route}: ${reason}`),
    ...doubts.filter((doubt) => doubt.reason !== "not counted" || !isOfRoute(doubt.route))
      .map((doubt) => capitalized(doubtText(doubt, report))),
  ];
  const lines = causes.slice(0, MAX_LISTED);
  if (causes.length > lines.length) lines.push(`and ${count(causes.length - lines.length)} more`);
  if (judged.length === 0) return lines; // nothing would make a verdict on no route clear
  const declaration = `--gone ${gone.map(({ id }) => id).join(" ")} --ended TIME`;
  if (gone.length > 0) {
    lines.push(
      "A silent server may still be answering calls. Once its process has ended, run: " +
        `${command} ${declaration}`,
      "TIME is a time by which it had certainly ended, e.g. `2027-06-30T09:00:00Z`, as its supervisor's " +
        "log has it, or now if nobody knows better",
    );
  }
  const isSilent = (id: string) => gone.some((session) => session.id === id);
  if (doubts.some((doubt) => doubt.reason === "silent" && !isSilent(doubt.session))) {
    lines.push(
      "A server that has been silent for less than a minute may still report: ask again a minute later.",
    );
  }
  const day = hidden.length > 0 ? undefined : recoveryFrom(left, report);
  if (left.length < doubts.length && (day === undefined || day !== recovery)) {
    const words: string[] = [];
    if (gone.length > 0) words.push(declaration);
    if (trustStops) words.push("--trust-stops");
    const rest = day === undefined ? "would still be unknown" : `could be clear from ${day}`;
    const result = left.length + hidden.length === 0 ? "would be clear" : rest;
    const time = gone.length > 0 ? ", and TIME is within a minute of its last report" : "";
    lines.push(`With \`${words.join(" ")}\`, if that is true${time}, ${it} ${result}.`);
    if (recovery !== undefined) {
      lines.push(`Without it, ${they} cannot be clear before ${recovery}.`);
    }
  } else if (recovery !== undefined) {
    const subject = isOnAll ? "The verdict" : "The unknown routes";
    lines.push(`${subject} cannot be clear before ${recovery}.`);
  }
  return lines;
}

/** Formats why a route is unknown, e.g. "the record starts at 2027-06-10T09:00:00Z". */
export function doubtText(doubt: Doubt, { usageDays, days, program }: UsageReport): string {
  const { command, retainSetting } = program;
  const until = formatInstant(doubt.until);
  const name = "session" in doubt ? sessionText({ ...doubt, id: doubt.session }) : "";
  switch (doubt.reason) {
    case "started":
      if (doubt.isOpen) return "no server has registered yet";
      return usageDays !== undefined && usageDays < days
        ? `the record starts at ${until}: ${retainSetting}=${usageDays} deletes earlier days, so raise it`
        : `the record starts at ${until}`;
    case "stop":
      return `${intervalText(doubt.start, doubt.until)}: no server was running (see --trust-stops)`;
    case "silent":
      return `${name} has not reported since ${formatInstant(doubt.reported)}`;
    case "cut off":
      return `until ${until}, ${name} may have answered calls: it last reported at ` +
        `${formatInstant(doubt.reported)}, and had ended by ${formatInstant(doubt.endedBy)}`;
    case "not counted":
      return doubt.isOpen
        ? `${name} does not count ${doubt.route}: deprecate it on every server, or ` +
          "delete it on every server"
        : `until ${until}, ${name} did not count ${doubt.route}`;
    case "ahead":
      return `the latest report is dated ${formatInstant(doubt.then)}: the database's clock was ` +
        `ahead then, or has fallen behind since. If it is right, run: ${command} --restart`;
  }
}

/** Returns a text that begins a sentence. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Formats an interval with its length, e.g. "2027-06-10T09:00:00Z to … (10 min)". */
function intervalText(start: number, end: number): string {
  return `${formatInstant(start)} to ${formatInstant(end)} (${durationText(end - start)})`;
}

/** Formats how long stops took together, e.g. "3 h 10 min". */
export function totalText(stops: readonly Interval[]): string {
  return durationText(stops.reduce((sum, { start, end }) => sum + end - start, 0));
}

export function sunsetText({ sunsetAt }: Partial<Policy> = {}): string {
  return `Sunset: ${sunsetAt === undefined ? "no date set" : formatInstant(sunsetAt)}.`;
}

/** Formats a duration to the minute, e.g. "3 h 10 min". */
function durationText(milliseconds: number): string {
  const minutes = Math.round(milliseconds / 60_000);
  return minutes < 60
    ? `${minutes} min`
    : `${count(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}

/** Says since when the record is complete. */
export function sinceText({ completeSince, now }: UsageReport): string {
  return completeSince === undefined
    ? `The record is not complete: calls may be missing, up to ${formatInstant(now)}.`
    : `The record is complete since ${formatInstant(completeSince)}; earlier calls may be missing.`;
}

/** The note on a day whose count may be too low. */
export const INCOMPLETE = "incomplete record";

/** Lists what qualifies the calls of a day: brownouts, and an incomplete record. */
export function notesOf(
  { day, byPhase, isWhole }: DayUsage,
  { brownouts = [] }: Partial<Policy> = {},
): string[] {
  const start = Date.parse(day);
  const known = brownouts.filter((each) => each.start < start + DAY_MS && start < each.end)
    .map((each) => `brownout of ${formatInstant(each.start)}`);
  const unknown = byPhase.brownout === undefined ? [] : ["brownout"];
  return [...(known.length > 0 ? known : unknown), ...(isWhole ? [] : [INCOMPLETE])];
}

/** The sentences that explain what is counted. */
export const RULES = [
  "A call is a request that the removal of its path affects. Calls answered by a cache are not" +
  " counted.",
  "Other requests fail anyway, like those for something that is not there, or are OPTIONS that were" +
  " not refused.",
  "A brownout is a short planned outage that warns clients of the removal.",
];

/** Formats a number with separators, regardless of the locale. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** Formats a count with its noun, e.g. "1 call", "1,000 calls". */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}
