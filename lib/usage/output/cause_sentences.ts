/** The sentences on why a verdict is unknown, and on what would help. */

import { SHORTEST_GAP_MS } from "../record/records.ts";
import { type Gap, type GapKind, missingIn } from "../verdict/gaps.ts";
import type { UsageReport } from "../verdict/report.ts";
import type { Cause, RouteVerdict } from "../verdict/verdict.ts";
import { hiddenText } from "./hidden_sentences.ts";
import { date, instant, joined, p, type Phrase, program } from "./phrase.ts";
import { count, durationText, processText } from "./wording.ts";

/** What a sentence calls routes. */
export interface RoutesNamed {
  /** E.g. "it", or "/v1/songs". */
  readonly object: Phrase;
  /** E.g. " of /v1/songs", or nothing. */
  readonly attribute: Phrase;
}

/** Says in one line why a verdict is unknown, and from when on it can be clear. */
export function causesText(
  { causes, clearFrom, gaps }: RouteVerdict,
  routes: RoutesNamed,
  report: UsageReport,
): Phrase {
  const texts = causes.map((cause) =>
    cause.cause === "gaps" ? missingText(cause, gaps, report) : causeText(cause, routes, report)
  );
  const reasons = joined(texts, "; ");
  if (clearFrom === undefined || clearFrom === report.today) return reasons;
  return p`${reasons}; the verdict cannot be clear before ${date(clearFrom)}`;
}

function causeText(
  cause: Exclude<Cause, { readonly cause: "gaps" }>,
  routes: RoutesNamed,
  report: UsageReport,
): Phrase {
  const { retainDays, days } = report;
  switch (cause.cause) {
    case "too young": {
      if (!cause.isRetained) {
        return p`${program("retainSetting")}=${String(retainDays)} keeps fewer than the
          ${String(days)} whole days asked for: raise it, or ask for fewer`;
      }
      return cause.since === undefined
        ? p`no process has counted ${routes.object} yet`
        : p`the record${routes.attribute} starts at ${instant(cause.since)}`;
    }
    case "no process":
      return p`no process has counted ${routes.object} since ${instant(cause.since)}: start one, or
        check that processes use this database`;
    case "not counted":
      return p`${processText(cause)} counts other routes, and not ${routes.object}: mount the same
        routes in every process`;
    case "clock behind": {
      const { databaseTime, now } = cause.time;
      return p`by the clock of ${cause.record} it is ${instant(databaseTime)}, though its last
        report came at ${instant(now)}: correct the clock if it is wrong; otherwise start a process,
        which starts the record again`;
    }
    case "hidden":
      return hiddenText(cause.hidden, routes.object, report);
  }
}

/** Says how much of the period is not on record, and what would help against most of it. */
function missingText(
  { missingMs, limitMs }: Extract<Cause, { readonly cause: "gaps" }>,
  gaps: readonly Gap[],
  { days, from, asOf }: UsageReport,
): Phrase {
  const missingBy = (kind: GapKind) =>
    missingIn(gaps.filter((gap) => gap.kind === kind), { start: Date.parse(from), end: asOf });
  const silent = missingBy("silent") / SHORTEST_GAP_MS;
  const advice = missingBy("stop") > missingMs / 2
    ? p`: ${program("howToAvoidStops")}`
    : missingBy("silent") > missingMs / 2
    ? p`: find out why they end`
    : []; // the gaps say it, or only time mends them
  const counting = silent === 0
    ? ""
    : silent === 1
    ? ", counting a minute for a process that died or was cut off"
    : `, counting a minute for each of ${count(silent)} processes that died or were cut off`;
  const period = days === 1 ? "day" : `${days} days`;
  return p`${durationText(missingMs)} of the ${period} are not on record${counting}, and a verdict
    allows for less than ${durationText(limitMs)}${advice}`;
}
