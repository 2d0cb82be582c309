/** The sentences on the verdict: on all routes, and on each of several. */

import type { UsageReport } from "../verdict/report.ts";
import type { SilentClients } from "../verdict/rhythms.ts";
import { callsIn } from "../verdict/sums.ts";
import type { RouteVerdict } from "../verdict/verdict.ts";
import { byText, spanText } from "./call_sentences.ts";
import { causesText, type RoutesNamed } from "./cause_sentences.ts";
import { dueText } from "./omission_sentences.ts";
import { enumerated, instant, path, type Phrase, phrase, textOf } from "./phrase.ts";
import { MAX_LISTED, namesText, plural, type ProgramNames, routesText } from "./wording.ts";

/** Says the verdict on all routes in one line. */
export function verdictText(report: UsageReport, program: ProgramNames): Phrase {
  const { state, judged } = report;
  if (judged.length === 0) {
    return ["Unknown: no process counts a deprecated route, so there is no verdict."];
  }
  const none = phrase(
    noCallText(report),
    " to ",
    routesText(judged),
    byText(report),
    " ",
    spanText(report),
  );
  switch (state) {
    case "called":
      return calledText(report);
    case "unknown":
      return phrase("Unknown: ", none, ", but ", unknownText(report, program), ".");
    case "announced":
      return phrase(
        "Clear, but announced until ",
        instant(report.announcedUntil ?? report.asOf),
        ": ",
        none,
        ...dueCountText(report),
        ".",
      );
    case "clear":
      return phrase("Clear: ", none, ...dueCountText(report), ".");
  }
}

/** Says why the verdict on all routes is unknown. */
function unknownText(report: UsageReport, program: ProgramNames): Phrase {
  const routes = unknownIn(report).map(({ route }) => route);
  return sharedReason(report, program) ??
    phrase(routesText(routes), " are unknown, each for a reason of its own");
}

/** Returns why routes are unknown, if the reason is the same for all that are. */
function sharedReason(report: UsageReport, program: ProgramNames): Phrase | undefined {
  const unknown = unknownIn(report);
  const reasonOf = (verdict: RouteVerdict, routes: RoutesNamed) =>
    causesText(verdict, routes, report, program);
  const [first, ...others] = unknown;
  if (first === undefined) return undefined;
  const reason = textOf(reasonOf(first, IT));
  if (others.some((other) => textOf(reasonOf(other, IT)) !== reason)) return undefined;
  const isOfAll = unknown.length === report.verdicts.length; // which the sentence has just named
  if (isOfAll) return reasonOf(first, others.length === 0 ? IT : THEM);
  const names = routesText(unknown.map(({ route }) => route));
  return reasonOf(first, { object: names, attribute: phrase(" of ", names) });
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
  return enumerated(texts.map((text) => [text])).join("");
}

function calledText(report: UsageReport): Phrase {
  const { clients, judged, due } = report;
  const names = [...new Set(due.map(({ client }) => client))];
  const rare = `${plural(names.length, "client")} that ${names.length === 1 ? "calls" : "call"} ` +
    `more rarely may call again: ${namesText(names)}`;
  const [first] = clients;
  const span = spanText(report);
  if (first === undefined) {
    return phrase(
      `Still called: ${noCallText(report)} to `,
      routesText(judged),
      byText(report),
      " ",
      span,
      `, but ${rare}.`,
    );
  }
  const latest = clients.reduce((a, b) => b.last > a.last ? b : a, first);
  const called = judged.filter((route) => clients.some(({ routes }) => routes.includes(route)));
  const isOfOne = report.client !== undefined;
  const by = isOfOne ? byText(report) : ` by ${plural(clients.length, "client")}`;
  const lastBy = isOfOne ? "" : ` by ${latest.client}`;
  return phrase(
    `Still called: ${plural(callsIn(clients), "call")} to `,
    routesText(called),
    `${by} `,
    span,
    `, the last${lastBy} recorded at `,
    instant(latest.last),
    `${names.length === 0 ? "" : `; and ${rare}`}.`,
  );
}

/** Lists the verdict on each route, if there are several. */
export function routeLines(report: UsageReport, program: ProgramNames): Phrase[] {
  const { verdicts } = report;
  return verdicts.length > 1 ? verdicts.map((each) => routeLine(each, report, program)) : [];
}

/** Says that no client is due, if each was asked for its rhythm. */
function dueCountText({ isByRhythm }: UsageReport): string[] {
  return isByRhythm ? [", and no client is due by its rhythm"] : [];
}

/** Lists the clients that are due to call a route again. */
export function dueLines(
  { due }: Pick<SilentClients, "due">,
  isWithRoute = false,
): Phrase[] {
  const lines = due.slice(0, MAX_LISTED).map((each) => dueText(each, isWithRoute));
  const more = due.length - lines.length;
  return more > 0 ? [...lines, [`and ${plural(more, "more client")} by their rhythm`]] : lines;
}

/** Formats the verdict on one route, e.g. "/v1/songs: called, 12 calls, the last recorded at …". */
export function routeLine(
  verdict: RouteVerdict,
  report: UsageReport,
  program: ProgramNames,
): Phrase {
  const { route, clients, due, announcedUntil } = verdict;
  switch (verdict.state) {
    case "clear":
      return phrase(path(route), ": clear");
    case "announced":
      return phrase(path(route), ": clear, but announced until ", instant(announcedUntil ?? 0));
    case "called": {
      if (clients.length === 0) {
        return phrase(path(route), `: called, by the rhythm of ${plural(due.length, "client")}`);
      }
      const last = Math.max(...clients.map(({ last }) => last));
      const calls = plural(verdict.calls, "call");
      return phrase(path(route), `: called, ${calls}, the last recorded at `, instant(last));
    }
    case "unknown": {
      const isSaid = report.state === "unknown" && sharedReason(report, program) !== undefined;
      const why = isSaid
        ? [", for the reason above"]
        : phrase(", because ", causesText(verdict, IT, report, program));
      return phrase(path(route), ": unknown", why);
    }
  }
}
