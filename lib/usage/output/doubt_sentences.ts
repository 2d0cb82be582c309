/** The sentences on doubts: why a verdict is unknown, and what would help. */

import type { Doubt } from "../verdict/doubts.ts";
import { recoveryFrom, recoveryOf, type UnknownVerdict } from "../verdict/verdict.ts";
import type { UsageReport } from "../verdict/report.ts";
import { hiddenText } from "./hidden_sentences.ts";
import { historyText } from "./omission_sentences.ts";
import { capitalized, code, date, instant, joined, path, type Phrase, phrase } from "./phrase.ts";
import {
  count,
  countProcesses,
  endedText,
  intervalText,
  MAX_LISTED,
  namesText,
  plural,
  processText,
  type ProgramNames,
  routesText,
  totalText,
} from "./wording.ts";

/** Explains the verdict "unknown": each reason, the word that would help, and the wait. */
export function doubtLines(report: UsageReport, program: ProgramNames): Phrase[] {
  const { unknown, judged } = report;
  if (unknown === undefined) return [];
  const causes = causeLines(unknown, report, program);
  if (judged.length === 0) return causes; // nothing would make a verdict on no route clear
  return [...causes, ...outlookLines(unknown, report)];
}

/** Lists why calls may be missing, except for what routeLines() says of one route. */
function causeLines(unknown: UnknownVerdict, report: UsageReport, program: ProgramNames): Phrase[] {
  const { hidden, doubts } = unknown;
  const { judged } = report;
  const isOfRoute = (route: string) => judged.length > 1 && judged.includes(route);
  const causes = [
    ...hidden.filter(({ route }) => !isOfRoute(route))
      .map((each) => phrase(path(each.route), ": ", hiddenText(each, report, program))),
    ...doubts.filter((doubt) => doubt.reason !== "not counted" || !isOfRoute(doubt.route))
      .map((doubt) => capitalized(doubtText(doubt, report, program))),
  ];
  const lines = causes.slice(0, MAX_LISTED);
  const more = causes.length - lines.length;
  if (more > 0) lines.push([`and ${count(more)} more`]);
  if (isOnRareOnly(unknown, report)) lines.push(...rareLines(unknown, report));
  return lines;
}

/** Returns whether all doubts are older than the period, so that they concern rare callers only. */
function isOnRareOnly(
  { hidden, doubts, uncertain }: UnknownVerdict,
  { from }: UsageReport,
): boolean {
  return uncertain.length > 0 && hidden.length === 0 &&
    doubts.every(({ until }) => until <= Date.parse(from));
}

/** Names the clients of which alone it is unknown whether they have called. */
function rareLines({ uncertain }: UnknownVerdict, { judged }: UsageReport): Phrase[] {
  const listed = uncertain.slice(0, MAX_LISTED);
  const more = uncertain.length - listed.length;
  return [
    ["Only clients that call more rarely than that may have called meanwhile:"],
    ...listed.map((each) => phrase("  ", historyText(each, judged.length > 1))),
    ...more > 0 ? [[`  and ${count(more)} more`]] : [],
  ];
}

/** Says when the verdict can be clear: with the operator's word, if it would help, and without. */
function outlookLines(unknown: UnknownVerdict, report: UsageReport): Phrase[] {
  const { hidden, doubts, left } = unknown;
  const isOnAll = report.verdict === unknown;
  const recovery = recoveryOf(unknown, report);
  const day = hidden.length > 0 ? undefined : recoveryFrom(left, unknown, report);
  if (left.length >= doubts.length || day !== undefined && day === recovery) {
    const subject = isOnAll ? "The verdict" : "The unknown routes";
    return recovery === undefined
      ? []
      : [phrase(subject, " cannot be clear before ", date(recovery), ".")];
  }
  const rest = day === undefined
    ? "would still be unknown"
    : phrase("could be clear from ", date(day));
  const result = left.length + hidden.length === 0 ? "would be clear" : rest;
  const [it, they] = isOnAll ? ["this", "the verdict"] : ["the unknown routes", "they"];
  const lines = [
    phrase("With ", code("--trust-stops"), `, if that is true, ${it} `, ...[result].flat(), "."),
  ];
  if (recovery !== undefined) {
    lines.push(phrase(`Without it, ${they} cannot be clear before `, date(recovery), "."));
  }
  return lines;
}

/** Formats why a route is unknown, e.g. "the record starts at 2027-06-10T09:00:00Z". */
function doubtText(doubt: Doubt, { retainDays, days }: UsageReport, program: ProgramNames): Phrase {
  const { command, retainSetting } = program;
  const until = instant(doubt.until);
  switch (doubt.reason) {
    case "started":
      if (doubt.isOpen) return ["no server has registered yet"];
      return retainDays !== undefined && retainDays < days
        ? phrase(
          "the record starts at ",
          until,
          `, and ${retainSetting}=${retainDays} never keeps the ${
            plural(days, "whole day")
          } that ` +
            "the period has: raise it, or ask for fewer days",
        )
        : phrase("the record starts at ", until);
    case "no server":
      return doubt.start === undefined
        ? phrase("no server has mounted ", routesText(doubt.routes), " yet")
        : phrase(
          "no server counts ",
          routesText(doubt.routes),
          " now, and none has since ",
          instant(doubt.start),
          "; is this the database that they use?",
        );
    case "in flight":
      return phrase(
        processText(doubt),
        " has calls to ",
        path(doubt.route),
        " in flight, or has yet to record them: ask again",
      );
    case "not counted":
      if (doubt.isUnmounted && doubt.isOpen) {
        return phrase(
          processText(doubt),
          " has ",
          path(doubt.route),
          " among its routes, but has not mounted it, so it does not count the calls",
        );
      }
      return doubt.isOpen
        ? phrase(
          processText(doubt),
          " does not count ",
          path(doubt.route),
          ": deprecate it on every server, or delete it on every server",
        )
        : phrase("until ", until, ", ", processText(doubt), " did not count ", path(doubt.route));
    case "ahead":
      return phrase(
        "the latest heartbeat is dated ",
        instant(doubt.then),
        ": the database's clock was ahead then, or has fallen behind since. If it is right, run: " +
          `${command} --restart`,
      );
    case "stop":
      return phrase(
        intervalText(doubt.start, doubt.end),
        ": no server was running (see --trust-stops)",
      );
    case "restored":
      return phrase(
        "the database was restored or failed over between ",
        instant(doubt.start),
        " and ",
        instant(doubt.end),
        "; calls may be lost (see --trust-stops)",
      );
    case "intent":
      return phrase(
        processText(doubt),
        " ended or was cut off while it answered calls to ",
        path(doubt.route),
        "; who called from ",
        instant(doubt.start),
        " to ",
        until,
        " is not on record (see --trust-stops)",
      );
    case "unrecorded":
      return phrase(
        processText(doubt),
        " may have served unrecorded calls after ",
        until,
        " (see --trust-stops)",
      );
  }
}

/** Says in one line why a route is unknown. What concerns other routes, too, is explained once. */
export function reasonsText(
  unknown: UnknownVerdict,
  report: UsageReport,
  program: ProgramNames,
): Phrase {
  const { hidden, doubts, uncertain } = unknown;
  const of = <Reason extends Doubt["reason"]>(reason: Reason) =>
    doubts.filter((doubt): doubt is Extract<Doubt, { reason: Reason }> => doubt.reason === reason);
  const stops = of("stop");
  const [ended, unrecorded] = [countProcesses(of("intent")), countProcesses(of("unrecorded"))];
  // By reason, so that the compiler reports a reason that is left out.
  const texts: Readonly<Record<Doubt["reason"], readonly Phrase[]>> = {
    "not counted": of("not counted").map((doubt) => doubtText(doubt, report, program)),
    "no server": of("no server").map(() => ["no server counts it now"]),
    started: of("started").map(({ isOpen, until }) =>
      isOpen ? ["no server has registered yet"] : phrase("the record starts at ", instant(until))
    ),
    stop: stops.length > 0
      ? [[`no server was running during ${plural(stops.length, "stop")} (${totalText(stops)})`]]
      : [],
    restored: of("restored").slice(-1).map(() => ["the database was restored or failed over"]),
    intent: ended > 0 ? [[`${endedText(ended)} while answering calls to it`]] : [],
    unrecorded: unrecorded > 0
      ? [[`${plural(unrecorded, "process", "es")} may have served unrecorded calls`]]
      : [],
    "in flight": of("in flight").slice(-1).map(() => ["calls to it are in flight"]),
    ahead: of("ahead").map(() => ["the database's clock was or is wrong"]),
  };
  const hiddenTexts = hidden.map((each) => hiddenText(each, report, program));
  // Those come last, since some have more than one sentence.
  const reasons = joined([...Object.values(texts).flat(), ...hiddenTexts], "; ");
  if (!isOnRareOnly(unknown, report)) return reasons;
  const clients = namesText(uncertain.map(({ client }) => client));
  return phrase(`${clients} may have called: `, reasons);
}
