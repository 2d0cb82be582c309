/** The sentences on the basis of a verdict, and on what it leaves out. */

import { formatInstant } from "../../http/timestamp.ts";
import { MINUTE_MS } from "../record/records.ts";
import { sessionText } from "../record/session_name.ts";
import type { PolicyDates } from "../verdict/announcements.ts";
import type { IgnoredClient } from "../verdict/named_clients.ts";
import type { UsageReport } from "../verdict/report.ts";
import type { Trusted } from "../verdict/verdict.ts";
import { intervalText, MAX_LISTED, plural, routesText, totalText } from "./wording.ts";

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

function ignoredText({ calls, isOnRecord, meant }: IgnoredClient): string {
  if (isOnRecord) return plural(calls, "call");
  return meant === undefined ? "not on record" : `not on record; did you mean "${meant}"?`;
}

/** Reports the requests of probes, if any, so that no caller can hide among them. */
function probeLines({ probes }: UsageReport): string[] {
  if (probes.length === 0) return [];
  const requests = probes.reduce((sum, { requests }) => sum + requests, 0);
  return [
    `Not counted as calls: ${plural(requests, "request")} by ${plural(probes.length, "probe")}`,
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

/** Says on what a verdict rests if processes may serve its routes unregistered. */
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
