/** The sentences on what a verdict leaves out, or cannot see. */

import { dayOf } from "../../http/timestamp.ts";
import type { ClientHistory } from "../record/records.ts";
import type { UsageReport } from "../verdict/report.ts";
import { longestShown, type SilentClient } from "../verdict/rhythms.ts";
import { gapItems } from "./gap_sentences.ts";
import { date, instant, type Item, p, path, type Phrase } from "./phrase.ts";
import { count, MAX_IN_DETAIL, namesText, plural, routesText } from "./wording.ts";

/** What verdicts leave out. */
interface Omission extends Item {
  /** The line if there are none below it. */
  readonly alone?: Phrase;
}

/** Lists what the verdicts leave out, the weightiest first. */
export function omissionsOf(report: UsageReport): Omission[] {
  const others = [...clientErrorLines(report), ...onRecordLines(report)];
  return [
    ...gapItems(report),
    ...announcedLines(report).map((line) => ({ line })),
    ...earlierOmissions(report),
    ...others.map((line) => ({ line })),
  ];
}

/** Says which routes are announced until a sunset that has not passed. */
function announcedLines({ verdicts }: UsageReport): Phrase[] {
  const announced = verdicts.filter(({ state }) => state === "announced");
  // Reports run on Node 20, which has no Map.groupBy().
  const sunsets = new Set(announced.map(({ announcedUntil = 0 }) => announcedUntil));
  return [...sunsets].map((until) => {
    const routes = announced.filter(({ announcedUntil }) => announcedUntil === until);
    const names = routesText(routes.map(({ route }) => route));
    return p`Announced until ${instant(until)}: deleting ${names} before then breaks the
      announcement.`;
  });
}

/** Names who called each clear route, but not in the period; the latest first. */
function earlierOmissions({ verdicts, from }: UsageReport): Omission[] {
  return verdicts.filter(({ state, earlier }) => state !== "called" && earlier.length > 0)
    .map(({ route, earlier }) => {
      const listed = earlier.slice(0, MAX_IN_DETAIL);
      const more = earlier.length - listed.length;
      const clients = plural(earlier.length, "client");
      const line = p`${clients} last called ${path(route)} before ${date(from)}:`;
      return {
        line,
        alone: p`${line} ${namesText(earlier.map(({ client }) => client))}`,
        below: [
          ...listed.map(historyText),
          ...more > 0 ? [p`and ${count(more)} more, which --json lists`] : [],
        ],
      };
    });
}

/** Formats the days of a client, e.g. "app a: 9 calls on 3 days from … to …, at most 7 days apart". */
function historyText({ client, calls, days, first, last, pause }: ClientHistory): Phrase {
  const span = days === 1
    ? p` on ${date(last)}`
    : p` on ${plural(days, "day")} from ${date(first)} to ${date(last)}`;
  return p`${client}: ${plural(calls, "call")}${span}${apartText(pause)}`;
}

function apartText(pause: number | undefined): string {
  return pause === undefined ? "" : `, at most ${plural(pause, "day")} apart`;
}

/** Formats what a client's rhythm makes due, and until when. */
export function dueText(silent: SilentClient, isWithRoute: boolean): Phrase {
  const { route, client, calls, days, pause, last, silentFrom } = silent;
  const to = isWithRoute ? p` to ${path(route)}` : [];
  const on = p`on ${plural(days, "day")}${apartText(pause)}`;
  return p`${client}: ${plural(calls, "call")}${to} ${on}, the last on ${date(last)};
    silent for longer than that from ${date(silentFrom)} on`;
}

/** Says how far back calls are on record, and so what clear verdicts cannot see. */
function onRecordLines({ verdicts, onRecordSince, asOf, isByRhythm }: UsageReport): Phrase[] {
  const isClear = verdicts.some(({ state }) => state === "clear" || state === "announced");
  if (onRecordSince === undefined || !isClear) return [];
  const days = longestShown(asOf - onRecordSince);
  const rare = isByRhythm
    ? `less often than every ${plural(days, "day")} may not have shown its rhythm yet`
    : "more rarely may not be on it";
  return [p`The record starts on ${date(dayOf(onRecordSince))}: a client that calls ${rare}.`];
}

/** Names who was answered 4xx, and so may have read that as an answer. */
function clientErrorLines({ clientErrors }: UsageReport): Phrase[] {
  const statuses = new Set(clientErrors.map(({ status }) => status));
  return [...statuses].sort().map((status) => {
    const errors = clientErrors.filter((each) => each.status === status);
    const requests = errors.reduce((sum, { requests }) => sum + requests, 0);
    const clients = [...new Set(errors.map(({ client }) => client))];
    const were = requests === 1 ? "was" : "were";
    return p`${plural(requests, "other request")} by ${plural(clients.length, "client")} ${were}
      answered ${status}: ${namesText(clients)}`;
  });
}
