/** The sentences on the basis of a verdict, and on what it leaves out. */

import type { PolicyDates } from "../verdict/announcements.ts";
import type { IgnoredClient } from "../verdict/named_clients.ts";
import type { TrustableDoubt } from "../verdict/doubts.ts";
import type { UsageReport } from "../verdict/report.ts";
import { holdLines } from "./hold_sentences.ts";
import { omissionLines } from "./omission_sentences.ts";
import { instant, joined, path, type Phrase, phrase } from "./phrase.ts";
import {
  count,
  countProcesses,
  endedText,
  intervalText,
  MAX_LISTED,
  plural,
  processText,
  type ProgramNames,
  routesText,
  sessionText,
  totalText,
} from "./wording.ts";

/** Lists the basis of a verdict, and what it leaves out. */
export function basisLines(report: UsageReport, program: ProgramNames): Phrase[] {
  const { ignored } = report;
  return [
    ...trustLines(report),
    ...omissionLines(report),
    ...ignored.map((each) => [`Ignored: ${each.client} (${ignoredText(each)})`]),
    ...probeLines(report),
    ...otherDatesLines(report),
    ...holdLines(report),
    ...unrecordedLines(report),
    phrase(coverageText(report, program), unprobedText(report)),
  ];
}

/** Lists what clear verdicts trust beyond the record. */
function trustLines({ verdict, verdicts }: UsageReport): Phrase[] {
  const clear = [verdict, ...verdicts].filter((each) => each.state === "clear");
  // What concerns several routes is listed once.
  const trusted = [
    ...new Map(
      clear.flatMap(({ trusted }) => trusted).map((doubt) => [JSON.stringify(doubt), doubt]),
    ).values(),
  ];
  const words = wordsText(trusted);
  const lines: Phrase[] = verdict.state === "clear" || words === ""
    ? []
    : [[`Routes are clear on your word ${words}.`]];
  const linesOf = (doubts: readonly TrustableDoubt[]) =>
    doubts.slice(0, MAX_LISTED).map((doubt) => phrase("Trusted: ", trustedText(doubt)));
  const [stops, others] = [stopsAmong(trusted), trusted.filter(({ reason }) => reason !== "stop")];
  const [moreStops, moreOthers] = [stops.slice(MAX_LISTED), others.slice(MAX_LISTED)];
  lines.push(...linesOf(stops));
  if (moreStops.length > 0) {
    lines.push([
      `Trusted: ${plural(moreStops.length, "more stop")} (${totalText(moreStops)} in all)`,
    ]);
  }
  lines.push(...linesOf(others));
  if (moreOthers.length > 0) lines.push([`Trusted: ${count(moreOthers.length)} more`]);
  return lines;
}

/** Says what the operator vouches for. */
function trustedText(doubt: TrustableDoubt): Phrase {
  const until = instant(doubt.until);
  switch (doubt.reason) {
    case "stop":
      return phrase(intervalText(doubt.start, doubt.end), " without a server");
    case "restored":
      return phrase(
        "no call was lost when the database was restored or failed over between ",
        instant(doubt.start),
        " and ",
        instant(doubt.end),
      );
    case "intent":
      return phrase(
        "no caller of ",
        path(doubt.route),
        " from ",
        instant(doubt.start),
        " to ",
        until,
        " is missing, though ",
        processText(doubt),
        " ended or was cut off",
      );
    case "unrecorded":
      return phrase(processText(doubt), " served no unrecorded calls after ", until);
  }
}

/** Says which words of the operator a clear verdict rests on, e.g. "that during …"; or nothing. */
export function wordsText(trusted: readonly TrustableDoubt[]): string {
  const of = <Reason extends TrustableDoubt["reason"]>(reason: Reason) =>
    trusted.filter((doubt): doubt is Extract<TrustableDoubt, { reason: Reason }> =>
      doubt.reason === reason
    );
  const stops = stopsAmong(trusted);
  const [restored, ended] = [of("restored").length, countProcesses(of("intent"))];
  const unrecorded = countProcesses(of("unrecorded"));
  const words: string[] = [];
  if (stops.length > 0) {
    words.push(
      `that during ${plural(stops.length, "stop")} (${totalText(stops)}) nothing else served, ` +
        "nothing was lost or restored, and no clock was wrong",
    );
  }
  if (restored > 0) {
    words.push(
      `that no call was lost in ${
        restored === 1 ? "a restore or failover" : `${restored} restores or failovers`
      }`,
    );
  }
  if (ended > 0) {
    words.push(`that no caller is missing though ${endedText(ended)}`);
  }
  if (unrecorded > 0) {
    words.push(`that ${plural(unrecorded, "process", "es")} served no unrecorded calls`);
  }
  return words.join(", and ");
}

type Stop = Extract<TrustableDoubt, { reason: "stop" }>;

function stopsAmong(trusted: readonly TrustableDoubt[]): Stop[] {
  return trusted.filter((doubt) => doubt.reason === "stop");
}

function ignoredText({ calls, isOnRecord, meant }: IgnoredClient): string {
  if (isOnRecord) return plural(calls, "call");
  return meant === undefined ? "not on record" : `not on record; did you mean "${meant}"?`;
}

/** Reports the requests of probes, if any, so that no caller can hide among them. */
function probeLines({ probes }: UsageReport): Phrase[] {
  if (probes.length === 0) return [];
  const requests = probes.reduce((sum, { requests }) => sum + requests, 0);
  return [
    [`Not counted as calls: ${plural(requests, "request")} by ${plural(probes.length, "probe")}`],
  ];
}

/** Says for which routes running servers announce other dates than those of the report. */
export function otherDatesLines({ otherDates }: Pick<UsageReport, "otherDates">): Phrase[] {
  return otherDates.map(({ routes, announced, session, others }) => {
    const announce = routes.length === 1 ? "announces" : "announce";
    return phrase(
      joined(routes.map((route) => [path(route)]), ", "),
      ` ${announce} `,
      datesText(announced),
      "; but ",
      sessionText(session),
      ": ",
      datesText(others),
    );
  });
}

function datesText({ deprecatedAt, sunsetAt, brownouts }: PolicyDates): Phrase {
  const dates = [
    phrase("deprecation ", instant(deprecatedAt)),
    sunsetAt === undefined ? ["no sunset"] : phrase("sunset ", instant(sunsetAt)),
    ...brownouts.map(({ start, end }) => phrase("brownout ", instant(start), "/", instant(end))),
  ];
  return joined(dates, ", ");
}

/** Says on what a verdict rests if processes may serve calls that the ledger does not take. */
function unrecordedLines({ servedUnrecorded, judged }: UsageReport): Phrase[] {
  if (servedUnrecorded.length === 0) return [];
  const routes = servedUnrecorded.length === judged.length
    ? []
    : phrase(" on ", routesText(servedUnrecorded));
  return [
    phrase(
      "The verdict",
      routes,
      " rests on no process having served calls that are not on record: the application may serve " +
        'without its record (unrecorded: "serve").',
    ),
  ];
}

/** Says which calls a verdict covers, and whether a probe found a cache. */
function coverageText({ probe }: UsageReport, { howToProbe }: ProgramNames): Phrase {
  const covered = "The verdict covers the calls that reached the servers. ";
  if (probe === undefined) {
    const remedy = howToProbe === undefined
      ? "the gate (--gate) checks for one."
      : `${howToProbe}, and the gate checks for one.`;
    return [`${covered}A cache in front may hide others: ${remedy}`];
  }
  const { url, probed, hidden } = probe;
  if (hidden.length > 0 || probed.length === 0) {
    return [`${covered}A cache in front may hide others.`];
  }
  const routes = routesText(probed);
  return phrase(
    `${covered}A probe of `,
    routes,
    ` through ${url} found no cache that hides others.`,
  );
}

/** Names the routes that are clear, but that neither a probe nor the record shows to be counted. */
function unprobedText({ verdicts, routes, probe }: UsageReport): Phrase {
  const clear = verdicts.filter(({ state }) => state === "clear").map(({ route }) => route);
  const isShown = (name: string) =>
    probe?.probed.includes(name) ||
    routes.some(({ route, calls, otherRequests }) => route === name && calls + otherRequests > 0);
  const unprobed = clear.filter((route) => !isShown(route));
  if (unprobed.length === 0) return [];
  const names = routesText(unprobed);
  const call = unprobed.length === 1 ? "call it" : "call each";
  return phrase(
    " No probe has shown that calls to ",
    names,
    ` are counted: ${call} once, and find the call in the report.`,
  );
}
