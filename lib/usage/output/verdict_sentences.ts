/** The sentences on the verdict: on all routes, and on each of several. */

import { formatInstant } from "../../http/timestamp.ts";
import type { UsageReport } from "../verdict/report.ts";
import type { RouteVerdict } from "../verdict/route_verdicts.ts";
import { callsIn } from "../verdict/sums.ts";
import { wordsText } from "./basis_sentences.ts";
import { byText, periodText } from "./call_sentences.ts";
import { reasonsText } from "./doubt_sentences.ts";
import { count, MAX_IN_DETAIL, plural, routesText } from "./wording.ts";

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

/** Lists the verdict on each route, if there are several. */
export function routeLines(report: UsageReport): string[] {
  const { verdicts } = report;
  return verdicts.length > 1 ? verdicts.map((each) => routeLine(each, report)) : [];
}

/** Formats the verdict on one route, e.g. "/v1/songs: called, 12 calls by app curl, the last …". */
function routeLine(verdict: RouteVerdict, report: UsageReport): string {
  const { route, clients } = verdict;
  const calls = `${plural(verdict.calls, "call")}${callersText(clients)}`;
  switch (verdict.state) {
    case "clear": {
      const word = wordsText(verdict.trusted) === "" ? "" : " on your word";
      const allowed = clients.length === 0
        ? ""
        : `, ${calls}, at most ${count(report.atMost)} allowed`;
      return `${route}: clear${word}${allowed}`;
    }
    case "called": {
      const last = Math.max(...clients.map(({ last }) => last));
      return `${route}: called, ${calls}, the last recorded at ${formatInstant(last)}`;
    }
    case "unknown": {
      const counted = clients.length === 0 ? "no calls" : calls;
      return `${route}: unknown, ${counted} counted, but ${reasonsText(verdict, report)}`;
    }
  }
}

/** Formats who called and how often, e.g. " by app curl (10 calls) and 2 more clients". */
function callersText(clients: RouteVerdict["clients"]): string {
  const [only] = clients;
  if (only === undefined) return "";
  if (clients.length === 1) return ` by ${only.client}`;
  const listed = clients.slice(0, MAX_IN_DETAIL)
    .map(({ client, calls }, at) =>
      `${client} (${at === 0 ? plural(calls, "call") : count(calls)})`
    );
  const more = clients.length - listed.length;
  return ` by ${listed.join(", ")}${more > 0 ? `, and ${plural(more, "more client")}` : ""}`;
}
