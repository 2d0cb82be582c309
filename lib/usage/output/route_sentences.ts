/** The sentences on each route, where a report has several. */

import { formatInstant } from "../../http/timestamp.ts";
import type { UsageReport } from "../verdict/report.ts";
import { count, doubtText, MAX_IN_DETAIL, plural, totalText, wordsText } from "./sentences.ts";
import type { UnknownVerdict } from "../verdict/verdict.ts";
import type { RouteVerdict } from "../verdict/route_verdicts.ts";
import type { Doubt } from "../verdict/doubts.ts";

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

/** Says in one line why a route is unknown. What concerns other routes, too, is explained once. */
function reasonsText({ hidden, doubts }: UnknownVerdict, report: UsageReport): string {
  const of = <Reason extends Doubt["reason"]>(reason: Reason) =>
    doubts.filter((doubt): doubt is Extract<Doubt, { reason: Reason }> => doubt.reason === reason);
  const stops = of("stop").map(({ start, until }) => ({ start, end: until }));
  const silent = of("silent").length;
  const cut = of("cut off").length;
  return [
    ...of("not counted").map((doubt) => doubtText(doubt, report)),
    ...of("started").map(({ isOpen, until }) =>
      isOpen ? "no server has registered yet" : `the record starts at ${formatInstant(until)}`
    ),
    ...(stops.length > 0
      ? [`no server was running during ${plural(stops.length, "stop")} (${totalText(stops)})`]
      : []),
    ...(silent > 0 ? [`${plural(silent, "server")} ${silent === 1 ? "is" : "are"} silent`] : []),
    ...(cut > 0 ? [`${plural(cut, "server")} may have answered calls after the last report`] : []),
    ...of("ahead").map(() => "the database's clock was or is wrong"),
    ...hidden.map(({ reason }) => reason), // last, since some have more than one sentence
  ].join("; ");
}
