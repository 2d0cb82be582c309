/** The sentences on the basis of a verdict, and on what it leaves out. */

import type { PolicyDates } from "../verdict/announcements.ts";
import type { IgnoredClient } from "../verdict/named_clients.ts";
import type { UsageReport } from "../verdict/report.ts";
import { holdLines } from "./hold_sentences.ts";
import { omissionsOf } from "./omission_sentences.ts";
import { instant, type Item, joined, p, path, type Phrase, program } from "./phrase.ts";
import { plural, routesText, sessionText } from "./wording.ts";

/** The limit on the lines of a gate on what its verdict leaves out. */
const MAX_OF_GATE = 5;

/** Lists the basis of a verdict, and what it leaves out. */
export function basisItems(report: UsageReport): Item[] {
  const lines = [
    ...ignoredLines(report.ignored),
    ...probeLines(report),
    ...otherDatesLines(report),
    ...holdLines(report),
    ...quietLines(report),
    p`${coverageText(report)}${unprobedText(report)}`,
  ];
  return [...omissionsOf(report), ...lines.map((line) => ({ line }))];
}

/** Lists what the verdict of a gate leaves out, the weightiest first, and which calls it covers. */
export function gateBasisLines(report: UsageReport): Phrase[] {
  const misspelt = ignoredLines(report.ignored.filter(({ isOnRecord }) => !isOnRecord));
  const omissions = omissionsOf(report).map(({ line, alone = line }) => alone);
  const all = [...quietLines(report), ...omissions];
  const lines = all.slice(0, MAX_OF_GATE - 1);
  const more = all.length - lines.length;
  const rest = more === 0
    ? ""
    : ` The report has ${plural(more, "more line")} on what the verdict leaves out.`;
  return [...misspelt, ...lines, p`${coverageText(report)}${rest}`];
}

/** Names the records in which no process reports. */
function quietLines({ quietRecords }: UsageReport): Phrase[] {
  return quietRecords.map((name) => [`No process was reporting to ${name}.`]);
}

function ignoredLines(ignored: readonly IgnoredClient[]): Phrase[] {
  return ignored.map((each) => [`Ignored: ${each.client} (${ignoredText(each)})`]);
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

/** Says for which routes running processes announce other dates than those of the report. */
export function otherDatesLines({ otherDates }: Pick<UsageReport, "otherDates">): Phrase[] {
  return otherDates.map(({ routes, announced, session, others }) => {
    const names = joined(routes.map((route) => [path(route)]), ", ");
    const announce = routes.length === 1 ? "announces" : "announce";
    return p`${names} ${announce} ${datesText(announced)};
      but ${sessionText(session)}: ${datesText(others)}`;
  });
}

function datesText({ deprecatedAt, sunsetAt, brownouts }: PolicyDates): Phrase {
  const dates = [
    p`deprecation ${instant(deprecatedAt)}`,
    sunsetAt === undefined ? p`no sunset` : p`sunset ${instant(sunsetAt)}`,
    ...brownouts.map(({ start, end }) => p`brownout ${instant(start)}/${instant(end)}`),
  ];
  return joined(dates, ", ");
}

/** Says which calls a verdict covers, and whether a probe found a cache. */
function coverageText({ probe }: UsageReport): Phrase {
  const covered = "The verdict covers the calls that reached the servers.";
  if (probe === undefined) {
    return p`${covered} A cache in front may hide others: ${program("howToProbe")} checks for one.`;
  }
  const { url, probed, hidden } = probe;
  if (hidden.length > 0 || probed.length === 0) {
    return p`${covered} A cache in front may hide others.`;
  }
  return p`${covered} A probe of ${routesText(probed)} through ${url} found no cache that hides
    others.`;
}

/** Names the routes that are clear, but that neither a probe nor the record shows to be counted. */
function unprobedText({ verdicts, routes, probe }: UsageReport): Phrase {
  const clear = verdicts.filter(({ state }) => state === "clear" || state === "announced")
    .map(({ route }) => route);
  const isShown = (name: string) =>
    probe?.probed.includes(name) ||
    routes.some(({ route, calls, otherRequests }) => route === name && calls + otherRequests > 0);
  const unprobed = clear.filter((route) => !isShown(route));
  if (unprobed.length === 0) return [];
  const names = routesText(unprobed);
  const call = unprobed.length === 1 ? "call it" : "call each";
  return p` No probe has shown that calls to ${names} are counted: ${call} once, and find the call in
    the report.`;
}
