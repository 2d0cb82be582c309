/** The sentences on the verdict: on all routes, and on each of several. */

import type { UsageReport } from "../verdict/report.ts";
import type { SilentClients } from "../verdict/rhythms.ts";
import { callsIn } from "../verdict/sums.ts";
import type { RouteVerdict } from "../verdict/verdict.ts";
import { byText, spanText } from "./call_sentences.ts";
import { causesText, type RoutesNamed } from "./cause_sentences.ts";
import { dueText } from "./omission_sentences.ts";
import { capitalized, enumerated, instant, p, path, type Phrase, textOf } from "./phrase.ts";
import { MAX_LISTED, namesText, plural, routesText } from "./wording.ts";

/** The verdict on all routes: its name, and a clause on what it says. */
interface Verdict {
  readonly name: Phrase;
  readonly clause: Phrase;
}

/** Says the verdict on all routes in one line. */
export function verdictText(report: UsageReport): Phrase {
  const { name, clause } = verdictOf(report, {
    span: p` ${spanText(report)}`,
    clients: (names) => `: ${namesText(names)}`,
    causes: (report) => unknownText(report),
  });
  return p`${name}: ${clause}.`;
}

/** Returns the verdict alone, for a page, which has the period, the clients and the causes beside it. */
export function verdictAlone(report: UsageReport): Verdict {
  return verdictOf(report, {
    span: [],
    clients: () => "",
    causes: () => p`calls may be missing`,
  });
}

/** What the verdict says besides its name, or leaves to others. */
interface Details {
  readonly span: Phrase;
  readonly clients: (names: readonly string[]) => string;
  readonly causes: (report: UsageReport) => Phrase;
}

function verdictOf(report: UsageReport, details: Details): Verdict {
  const { state, judged } = report;
  if (judged.length === 0) {
    const clause = p`no process counts a deprecated route, so there is no verdict`;
    return { name: ["Unknown"], clause };
  }
  const none = p`${noCallText(report)} to ${routesText(judged)}${byText(report)}${details.span}`;
  switch (state) {
    case "called":
      return { name: ["Still called"], clause: calledText(report, none, details) };
    case "unknown":
      return { name: ["Unknown"], clause: p`${none}, but ${details.causes(report)}` };
    case "announced": {
      const until = instant(report.announcedUntil ?? report.asOf);
      const name = p`Clear, but announced until ${until}`;
      return { name, clause: p`${none}${dueCountText(report)}` };
    }
    case "clear":
      return { name: ["Clear"], clause: p`${none}${dueCountText(report)}` };
  }
}

/** Lists why verdicts are unknown, if the verdict on all routes is. */
export function causeLines(report: UsageReport): Phrase[] {
  const { state, judged } = report;
  return state === "unknown" && judged.length > 0
    ? [p`${capitalized(unknownText(report, true))}.`]
    : [];
}

/**
 * Says why the verdict on all routes is unknown.
 *
 * @param isAlone Whether no sentence before it has named the routes.
 */
function unknownText(report: UsageReport, isAlone = false): Phrase {
  const routes = unknownIn(report).map(({ route }) => route);
  return sharedReason(report, isAlone) ??
    p`${routesText(routes)} are unknown, each for a reason of its own`;
}

/** Returns why routes are unknown, if the reason is the same for all that are. */
function sharedReason(report: UsageReport, isAlone = false): Phrase | undefined {
  const unknown = unknownIn(report);
  const reasonOf = (verdict: RouteVerdict, routes: RoutesNamed) =>
    causesText(verdict, routes, report);
  const [first, ...others] = unknown;
  if (first === undefined) return undefined;
  const reason = JSON.stringify(reasonOf(first, IT));
  if (others.some((other) => JSON.stringify(reasonOf(other, IT)) !== reason)) return undefined;
  const isOfAll = unknown.length === report.verdicts.length; // which the sentence has just named
  if (isOfAll && !isAlone) return reasonOf(first, others.length === 0 ? IT : THEM);
  const names = routesText(unknown.map(({ route }) => route));
  return reasonOf(first, { object: names, attribute: p` of ${names}` });
}

const IT: RoutesNamed = { object: ["it"], attribute: [] };
const THEM: RoutesNamed = { object: ["them"], attribute: [] };

function unknownIn({ verdicts }: UsageReport): RouteVerdict[] {
  return verdicts.filter(({ state }) => state === "unknown");
}

/** Says which calls there are none of. */
function noCallText({ ignored }: UsageReport): string {
  const own = ignored.filter(({ calls }) => calls > 0);
  if (own.length === 0) return "no call on record";
  const calls = own.map(({ client, calls }) => `${plural(calls, "call")} by ${client}`);
  return `apart from ${textOfList(calls)}, no call on record`;
}

function textOfList(texts: readonly string[]): string {
  return textOf(enumerated(texts.map((text) => [text])));
}

/** @param none Says that there are no calls. */
function calledText(report: UsageReport, none: Phrase, { span, clients: listed }: Details): Phrase {
  const { clients, judged, due } = report;
  const names = [...new Set(due.map(({ client }) => client))];
  const rare = `${plural(names.length, "client")} that ${names.length === 1 ? "calls" : "call"} ` +
    `more rarely may call again${listed(names)}`;
  const [first] = clients;
  if (first === undefined) return p`${none}, but ${rare}`;
  const latest = clients.reduce((a, b) => b.last > a.last ? b : a, first);
  const called = judged.filter((route) => clients.some(({ routes }) => routes.includes(route)));
  const isOfOne = report.client !== undefined;
  const by = isOfOne ? byText(report) : ` by ${plural(clients.length, "client")}`;
  const lastBy = isOfOne ? "" : ` by ${latest.client}`;
  const calls = p`${plural(callsIn(clients), "call")} to ${routesText(called)}`;
  const also = names.length === 0 ? "" : `; and ${rare}`;
  return p`${calls}${by}${span}, the last${lastBy} recorded at ${instant(latest.last)}${also}`;
}

/** Lists the verdict on each route, if there are several. */
export function routeLines(report: UsageReport): Phrase[] {
  const { verdicts } = report;
  return verdicts.length > 1 ? verdicts.map((each) => routeLine(each, report)) : [];
}

/** Says that no client is due, if each was asked for its rhythm. */
function dueCountText({ isByRhythm }: UsageReport): string {
  return isByRhythm ? ", and no client is due by its rhythm" : "";
}

/** Lists the clients that are due to call a route again. */
export function dueLines(
  { due }: Pick<SilentClients, "due">,
  isWithRoute = false,
): Phrase[] {
  const lines = due.slice(0, MAX_LISTED).map((each) => dueText(each, isWithRoute));
  const more = due.length - lines.length;
  return more > 0 ? [...lines, p`and ${plural(more, "more client")} by their rhythm`] : lines;
}

/** Formats the verdict on one route, e.g. "/v1/songs: called, 12 calls, the last recorded at …". */
export function routeLine(verdict: RouteVerdict, report: UsageReport): Phrase {
  const { route, clients, due, announcedUntil } = verdict;
  switch (verdict.state) {
    case "clear":
      return p`${path(route)}: clear`;
    case "announced":
      return p`${path(route)}: clear, but announced until ${instant(announcedUntil ?? 0)}`;
    case "called": {
      if (clients.length === 0) {
        return p`${path(route)}: called, by the rhythm of ${plural(due.length, "client")}`;
      }
      const last = Math.max(...clients.map(({ last }) => last));
      const calls = plural(verdict.calls, "call");
      return p`${path(route)}: called, ${calls}, the last recorded at ${instant(last)}`;
    }
    case "unknown": {
      const isSaid = report.state === "unknown" && sharedReason(report) !== undefined;
      const why = isSaid ? p`for the reason above` : p`because ${causesText(verdict, IT, report)}`;
      return p`${path(route)}: unknown, ${why}`;
    }
  }
}
