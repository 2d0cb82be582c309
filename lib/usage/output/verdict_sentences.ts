/** The sentences on the verdict: on all routes, and on each of several. */

import type { UsageReport } from "../verdict/report.ts";
import type { SilentClients } from "../verdict/rhythms.ts";
import type { RouteVerdict } from "../verdict/route_verdicts.ts";
import { callsIn } from "../verdict/sums.ts";
import { wordsText } from "./basis_sentences.ts";
import { byText, periodText } from "./call_sentences.ts";
import { reasonsText } from "./doubt_sentences.ts";
import { dueText } from "./omission_sentences.ts";
import { instant, path, type Phrase, phrase } from "./phrase.ts";
import { count, MAX_LISTED, namesText, plural, type ProgramNames, routesText } from "./wording.ts";

export function verdictText(report: UsageReport): Phrase {
  const { verdict, clients, ignored, atMost, judged, due, isByRhythm } = report;
  if (judged.length === 0) {
    return ["Unknown: no server deprecates a route, so there is no verdict."];
  }
  const to = phrase(" to ", routesText(judged), byText(report));
  const span = phrase("from ", periodText(report));
  const none = ignored.some(({ calls }) => calls > 0) ? "no other calls" : "no calls";
  const calls = clients.length === 0 ? none : plural(callsIn(clients), "call");
  switch (verdict.state) {
    case "clear": {
      const isAllowed = clients.length + due.length > 0;
      const allowed = isAllowed ? `, at most ${count(atMost)} allowed,` : "";
      const words = wordsText(verdict.trusted);
      const trust = words === "" ? "" : `, on your word ${words}`;
      const more = isByRhythm ? `, ${dueCountText(due)}` : "";
      return phrase(
        `Clear${trust}: ${calls}`,
        to,
        `${allowed} `,
        span,
        `${more}, and the record is complete.`,
      );
    }
    case "called": {
      const names = [...new Set(due.map(({ client }) => client))];
      const rare = `${plural(names.length, "client")} ${names.length === 1 ? "calls" : "call"} ` +
        `more rarely: ${namesText(names)}`;
      const [first] = clients;
      if (first === undefined) {
        return phrase(`Still called: ${calls}`, to, " ", span, `, but ${rare}.`);
      }
      const latest = clients.reduce((a, b) => b.last > a.last ? b : a, first);
      const called = judged.filter((route) => clients.some(({ routes }) => routes.includes(route)));
      const isOfOne = report.client !== undefined;
      const by = isOfOne ? byText(report) : ` by ${plural(clients.length, "client")}`;
      const lastBy = isOfOne ? "" : ` by ${latest.client}`;
      return phrase(
        `Still called: ${calls} to `,
        routesText(called),
        `${by} `,
        span,
        `, the last${lastBy} recorded at `,
        instant(latest.last),
        `${names.length === 0 ? "" : `; and ${rare}`}.`,
      );
    }
    case "unknown":
      return phrase(
        `Unknown: ${calls}`,
        to,
        " counted ",
        span,
        ", but some may be missing.",
      );
  }
}

/** Lists the verdict on each route, if there are several. */
export function routeLines(report: UsageReport, program: ProgramNames): Phrase[] {
  const { verdicts } = report;
  return verdicts.length > 1 ? verdicts.map((each) => routeLine(each, report, program)) : [];
}

/** Says how many clients are due to call again, and how often they called on their last days. */
function dueCountText(due: SilentClients["due"]): string {
  if (due.length === 0) return "no client is due by its rhythm";
  const calls = plural(due.reduce((sum, { lastCalls }) => sum + lastCalls, 0), "call");
  return due.length === 1
    ? `1 client is due by its rhythm, with ${calls} on its last day`
    : `${count(due.length)} clients are due by their rhythm, with ${calls} on their last days`;
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
  const { route, clients, due } = verdict;
  const calls = plural(verdict.calls, "call");
  switch (verdict.state) {
    case "clear": {
      const word = wordsText(verdict.trusted) === "" ? "" : " on your word";
      const called = [
        ...clients.length === 0 ? [] : [calls],
        ...due.length === 0 ? [] : [dueCountText(due)],
      ];
      const allowed = called.length === 0
        ? ""
        : `, ${called.join(", ")}, at most ${count(report.atMost)} allowed`;
      return phrase(path(route), `: clear${word}${allowed}`);
    }
    case "called": {
      if (clients.length === 0) {
        return phrase(path(route), `: called, by the rhythm of ${plural(due.length, "client")}`);
      }
      const last = Math.max(...clients.map(({ last }) => last));
      return phrase(path(route), `: called, ${calls}, the last recorded at `, instant(last));
    }
    case "unknown": {
      const counted = clients.length === 0 ? "no calls" : calls;
      return phrase(
        path(route),
        `: unknown, ${counted} counted, but `,
        reasonsText(verdict, report, program),
      );
    }
  }
}
