/** The sentences of the retirement report, shared by text and page. */

import {
  callsIn,
  type ClientUsage,
  type DayUsage,
  type RouteUsage,
  type UsageReport,
} from "./report.ts";
import { distanceText } from "../documents/notice_html.ts";
import { DAY_MS } from "../storage/ledger/day.ts";
import { formatInstant, PHASES, type Policy } from "../lifecycle/policy.ts";
import { RESTORED } from "./declarations.ts";
import { type Gap, stillSilent } from "./verdict.ts";

/** The maximum number of clients, of releases of one, or of gaps listed; the JSON has all. */
export const MAX_LISTED = 25;

export function titleText(report: UsageReport): string {
  return `Calls${byText(report)} to deprecated routes`;
}

function byText({ client }: UsageReport): string {
  return client === undefined ? "" : ` by ${client}`;
}

/** Formats the period, e.g. "2027-06-08 to now (7 whole days and today so far, UTC)". */
export function periodText({ from, days }: UsageReport): string {
  return `${from} to now (${plural(days, "whole day")} and today so far, UTC)`;
}

/** Formats the requests to a route, e.g. "5 calls, and 1 other request". */
export function requestsText({ calls, otherRequests }: RouteUsage): string {
  const others = otherRequests > 0 ? `, and ${plural(otherRequests, "other request")}` : "";
  return plural(calls, "call") + others;
}

export function verdictText(report: UsageReport): string {
  const { verdict, clients, ignored, atMost, judged } = report;
  if (judged.length === 0) {
    return "Unknown: no route is deprecated, here or on a running server, so there is no verdict.";
  }
  const to = ` to ${judged.join(" and ")}${byText(report)}`;
  const span = `since ${report.from} (${plural(report.days, "whole day")} and today, UTC)`;
  const none = ignored.some(({ calls }) => calls > 0) ? "no other calls" : "no calls";
  const calls = clients.length === 0 ? none : plural(callsIn(clients), "call");
  switch (verdict.verdict) {
    case "clear": {
      const allowed = clients.length === 0 ? "" : `, at most ${count(atMost)} allowed,`;
      const { stops, gone } = verdict.trusted;
      const length = durationText(stops.reduce((sum, { start, end }) => sum + end - start, 0));
      const trusted = [
        ...stops.length > 0 ? [`${plural(stops.length, "stop")} of ${length} in all`] : [],
        ...gone.length > 0
          ? [`that ${plural(gone.length, "server")} had answered its last call`]
          : [],
      ];
      const [trust, when] = trusted.length === 0
        ? ["", "throughout"]
        : [`, trusting ${trusted.join(" and ")}`, "the rest of the time"];
      return `Clear${trust}: ${calls}${to}${allowed} ${span}, and servers were counting ${when}.`;
    }
    case "called": {
      const latest = clients.reduce((a, b) => b.last > a.last ? b : a);
      const [whose, last] = report.client === undefined
        ? [` by ${plural(clients.length, "client")}`, ` by ${latest.client}`]
        : ["", ""];
      return `Still called: ${calls}${to}${whose} ${span}, the last${last} at ` +
        `${formatInstant(latest.last)}.`;
    }
    case "unknown":
      return `Unknown: ${calls}${to} counted ${span}, but some may be missing.`;
  }
}

/** Says on what a clear verdict rests, beyond the record: a line for each. */
export function trustLines({ verdict, publicUrl }: UsageReport): string[] {
  if (verdict.verdict !== "clear") return [];
  const gone = verdict.trusted.gone.map(({ server, until }) =>
    `Declared gone: ${server}, last heartbeat at ${
      formatInstant(until)
    }. Calls of some five seconds ` +
    "after it may be missing; of a longer time, if its log says that the ledger failed"
  );
  const unasked = publicUrl === undefined
    ? [
      "This is on the calls that reached the servers: a cache in front may hide others. With" +
      " PUBLIC_URL set, the gate asks",
    ]
    : [];
  return [...gone, ...unasked];
}

/** Says which clients are ignored: a line for each. */
export function ignoredLines({ ignored }: UsageReport): string[] {
  return ignored.map(({ client, calls }) => `Ignored: ${client}, ${plural(calls, "call")}`);
}

/**
 * Formats the phases in which a client called, e.g. "deprecated, 5 calls in brownouts of
 * 2027-06-10T09:00:00Z". Calls in brownouts only may be of links that were dead before.
 */
export function phasesText({ phases, brownouts }: ClientUsage): string {
  return PHASES.filter((phase) => phases[phase] !== undefined).map((phase) => {
    if (phase !== "brownout") return phase;
    const starts = brownouts.map(({ start }) => formatInstant(start)).join(" and ");
    return `${plural(phases.brownout ?? 0, "call")} in brownouts${starts && ` of ${starts}`}`;
  }).join(", ");
}

/** Formats the releases of a client that has several, e.g. "3.0.1: 5, 2.9.4: 3". */
function releasesText({ releases }: ClientUsage): string {
  if (releases.length < 2) return "";
  const listed = releases.slice(0, MAX_LISTED).map((each) =>
    `${each.release}: ${count(each.calls)}`
  );
  const more = releases.length - listed.length;
  return listed.join(", ") + (more > 0 ? `, and ${count(more)} more` : "");
}

/** Returns the columns of a table of clients, as titles and cells: those that are not empty. */
export function columnsOf(clients: readonly ClientUsage[]): Column[] {
  return COLUMNS.filter(([, cellOf]) => clients.some((client) => cellOf(client) !== ""));
}

type Column = readonly [title: string, cellOf: (usage: ClientUsage) => string];

const COLUMNS: readonly Column[] = [
  ["Client", ({ client }) => client],
  ["Calls", ({ calls }) => count(calls)],
  ["Last seen", ({ last }) => formatInstant(last)],
  ["First seen ever", ({ first }) => formatInstant(first)],
  ["Routes", ({ routes }) => routes.map((route) => route.replace("/:token", "")).join(", ")],
  ["Phases", phasesText],
  ["Releases", releasesText],
];

/** Explains the verdict "unknown": a line for each cause with what to do, and when it can be clear. */
export function gapLines({ verdict, recovery }: UsageReport): string[] {
  if (verdict.verdict !== "unknown") return [];
  const causes = [
    ...verdict.hidden.map(({ route, reason }) => `${route}: ${reason}`),
    ...verdict.gaps.map(gapText),
  ];
  const lines = causes.slice(0, MAX_LISTED);
  if (causes.length > lines.length) lines.push(`and ${count(causes.length - lines.length)} more`);
  const open = stillSilent(verdict.gaps);
  if (open.length > 0) {
    lines.push(
      "A silent server may still be answering calls. If it is running, check its log and its clock." +
        " If it has answered nothing since then, run:" +
        ` deno task media usage --gone ${open.join(" ")}`,
    );
  }
  if (recovery !== undefined) {
    const { from, complete } = recovery;
    const now = `. \`--gate ${complete}\` asks only about what is on record`;
    lines.push(`Can be clear from ${from}${complete > 0 ? now : ""}.`);
  }
  return lines;
}

function gapText(gap: Gap): string {
  const [start, end] = [formatInstant(gap.start), formatInstant(gap.end)];
  switch (gap.reason) {
    case "deleted":
      return `${start} to ${end}: deleted, because USAGE_DAYS is too short for this period: raise it`;
    case "no server":
      return `${start} to ${end}: no server was registered` +
        (gap.isStop ? ", after an orderly stop or a declared end (see --trust-stops)" : "");
    case "not counted":
      return `${start} to ${end}: calls to ${gap.route} were not counted, because it was not ` +
        "deprecated on every server: deprecate it on all, or delete it on all";
    case "silent":
      if (gap.server.startsWith(RESTORED)) {
        return `${start} to ${end}: a backup was restored, which lacks what was counted after it`;
      }
      return gap.isOver
        ? `${
          formatInstant(gap.reported)
        } to ${end}: no heartbeat from server ${gap.server}, which ` +
          "is back: its log says why"
        : `since ${formatInstant(gap.reported)}: no heartbeat from server ${gap.server}`;
    case "ahead":
      return `${start} to ${end}: server ${gap.server} reported at ${
        formatInstant(gap.reported)
      },` +
        " which was in the future" + (gap.isOver ? "" : ": correct the clock that is wrong");
  }
}

/** Formats the sunset, and the time until or since then. */
export function sunsetText({ sunsetAt }: Partial<Policy> = {}, now: number): string {
  if (sunsetAt === undefined) return "Sunset: no date set.";
  return `Sunset: ${formatInstant(sunsetAt)}, ${distanceText(sunsetAt - now)}.`;
}

/** Formats a duration to the minute, e.g. "3 h 10 min". */
function durationText(milliseconds: number): string {
  const minutes = Math.round(milliseconds / 60_000);
  return minutes < 60
    ? `${minutes} min`
    : `${count(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}

/** Says when the record starts, and so how far back "first seen" can go. */
export function sinceText({ recordedSince }: UsageReport): string {
  return recordedSince === undefined
    ? "There is no record: no server ever counted."
    : `Calls are on record since ${formatInstant(recordedSince)}; earlier callers are unknown.`;
}

/** The note on a day whose count may be too low. */
export const NOT_WHOLE = "incomplete record";

/** Says what qualifies the calls of a day: brownouts, and an incomplete record. */
export function notesOf(
  { day, byPhase, isWhole }: DayUsage,
  { brownouts = [] }: Partial<Policy> = {},
): string[] {
  const start = Date.parse(day);
  const known = brownouts.filter((each) => each.start < start + DAY_MS && start < each.end)
    .map((each) => `brownout of ${formatInstant(each.start)}`);
  const unknown = byPhase.brownout === undefined ? [] : ["brownout"];
  return [...(known.length > 0 ? known : unknown), ...(isWhole ? [] : [NOT_WHOLE])];
}

/** Explains what is counted. */
export const RULES = [
  "A call is a GET or HEAD that the removal breaks. Those that a cache answers are not counted.",
  "Other requests are OPTIONS, other methods, malformed tokens, and items that are not published.",
  "A brownout is a short outage before the removal, as a warning to clients.",
];

/** Formats a number with separators, regardless of the locale. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** Formats a count with its noun, e.g. "1 call", "1,000 calls". */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}
