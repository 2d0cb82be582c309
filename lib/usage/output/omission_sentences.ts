/** The sentences on what a verdict leaves out, or cannot see. */

import { dayOf } from "../../http/timestamp.ts";
import type { ClientHistory } from "../record/records.ts";
import type { UsageReport } from "../verdict/report.ts";
import { longestShown, type SilentClient } from "../verdict/rhythms.ts";
import { date, instant, path, type Phrase, phrase } from "./phrase.ts";
import { count, MAX_IN_DETAIL, namesText, plural, routesText } from "./wording.ts";

/** Lists what the verdicts leave out. */
export function omissionLines(report: UsageReport): Phrase[] {
  return [
    ...announcedLines(report),
    ...earlierLines(report),
    ...onRecordLines(report),
    ...clientErrorLines(report),
  ];
}

/** Says which clear routes are announced until a sunset that has not passed. */
function announcedLines({ verdicts, policies, now }: UsageReport): Phrase[] {
  const sunsetOf = ({ route }: { readonly route: string }) => policies[route]?.sunsetAt;
  const clear = verdicts.filter(({ state }) => state === "clear");
  // Reports run on Node 20, which has no Map.groupBy().
  const sunsets = new Set(clear.map(sunsetOf).filter((sunset = 0) => sunset > now));
  return [...sunsets].map((until = 0) => {
    const announced = clear.filter((each) => sunsetOf(each) === until);
    const names = routesText(announced.map(({ route }) => route));
    return phrase(
      "Announced until ",
      instant(until),
      ": deleting ",
      names,
      " before then breaks the announcement.",
    );
  });
}

/** Names who called clear routes, but not in the period. */
function earlierLines({ verdicts, from, judged }: UsageReport): Phrase[] {
  const clear = verdicts.filter(({ state }) => state === "clear");
  const earlier = clear.flatMap(({ earlier }) => earlier)
    .sort((a, b) => a.last < b.last ? 1 : a.last > b.last ? -1 : 0);
  if (earlier.length === 0) return [];
  const clients = new Set(earlier.map(({ client }) => client)).size;
  const listed = earlier.slice(0, MAX_IN_DETAIL);
  const more = earlier.length - listed.length;
  return [
    phrase(
      `Left out: ${plural(clients, "client")} that last called before `,
      date(from),
      `${earlier.length > 1 ? ", the latest first" : ""}:`,
    ),
    ...listed.map((each) => phrase("  ", historyText(each, judged.length > 1))),
    ...more > 0 ? [[`  and ${count(more)} more, which --json lists`]] : [],
  ];
}

/** Formats the days of a client, e.g. "app a: 9 calls on 3 days from … to …, at most 7 days apart". */
export function historyText(history: ClientHistory, isWithRoute: boolean): Phrase {
  const { route, client, calls, days, first, last, pause } = history;
  const span = days === 1
    ? phrase(" on ", date(last))
    : phrase(` on ${plural(days, "day")} from `, date(first), " to ", date(last));
  const apart = pause === undefined ? "" : `, at most ${plural(pause, "day")} apart`;
  return phrase(`${client}: ${plural(calls, "call")}`, toText(route, isWithRoute), span, apart);
}

/** Says to which route calls were, if the sentence has to name it. */
function toText(route: string, isWithRoute: boolean): Phrase {
  return isWithRoute ? phrase(" to ", path(route)) : [];
}

/** Formats what a client's rhythm makes due, and until when. */
export function dueText(silent: SilentClient, isWithRoute: boolean): Phrase {
  const { route, client, calls, days, pause, last, silentFrom } = silent;
  const apart = pause === undefined ? "" : `, at most ${plural(pause, "day")} apart`;
  return phrase(
    `${client}: ${plural(calls, "call")}`,
    toText(route, isWithRoute),
    ` on ${plural(days, "day")}${apart}, the last on `,
    date(last),
    "; silent for longer than that from ",
    date(silentFrom),
    " on",
  );
}

/** Says how far back calls are on record, and so what clear verdicts cannot see. */
function onRecordLines({ verdicts, onRecordSince, now, isByRhythm }: UsageReport): Phrase[] {
  if (onRecordSince === undefined || verdicts.every(({ state }) => state !== "clear")) return [];
  const since = phrase("On record since ", date(dayOf(onRecordSince)));
  const days = longestShown(now - onRecordSince);
  return [
    isByRhythm
      ? phrase(
        since,
        `: jobs more than ${plural(days, "day")} apart are not on it, or not with the three days ` +
          "that show a rhythm.",
      )
      : phrase(since, ": what comes more rarely is not on it."),
  ];
}

/** Names who was answered 4xx, and so may have read that as an answer. */
function clientErrorLines({ clientErrors }: UsageReport): Phrase[] {
  const statuses = new Set(clientErrors.map(({ status }) => status));
  return [...statuses].sort().map((status) => {
    const errors = clientErrors.filter((each) => each.status === status);
    const requests = errors.reduce((sum, { requests }) => sum + requests, 0);
    const clients = [...new Set(errors.map(({ client }) => client))];
    const were = requests === 1 ? "was" : "were";
    return [
      `${plural(requests, "other request")} by ${plural(clients.length, "client")} ${were} ` +
      `answered ${status}: ${namesText(clients)}`,
    ];
  });
}
