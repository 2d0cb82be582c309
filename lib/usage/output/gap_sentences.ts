/** The sentences on what is not on record: what it means, and what keeps it from being named. */

import type { Gap, GapKind } from "../verdict/gaps.ts";
import type { UsageReport } from "../verdict/report.ts";
import { capitalized, instant, type Item, type Phrase, phrase } from "./phrase.ts";
import {
  count,
  intervalText,
  plural,
  processText,
  type ProgramNames,
  routesText,
  totalText,
} from "./wording.ts";

/** The number of gaps of a kind that are named one by one. */
const IN_DETAIL = 3;

/** The kinds, the weightiest first: what is lost was certainly answered; in a stop, nothing was. */
const KINDS: readonly GapKind[] = ["lost", "not counted", "silent", "stop"];

/** Says of each kind of gap what it means, and lists the latest of several. */
export function gapItems(
  { gaps, judged }: Pick<UsageReport, "gaps" | "judged">,
  program: ProgramNames,
): Item[] {
  return groupsOf(gaps).map((group) => {
    const listed = group.length === 1 ? [] : group.slice(-IN_DETAIL).reverse();
    const rest = group.slice(0, -IN_DETAIL);
    return {
      line: gapText(group, judged, program),
      below: [
        ...listed.map((gap) => detailText(gap, judged)),
        ...rest.length === 0 ? [] : [[`and ${count(rest.length)} earlier${sumText(rest)}`]],
      ],
    };
  });
}

/** Groups gaps that have one sentence. On demand, silent processes are a group of their own. */
function groupsOf(gaps: readonly Gap[]): Gap[][] {
  return KINDS.flatMap((kind) => {
    const own = gaps.filter((gap) => gap.kind === kind);
    return kind === "silent" || kind === "not counted"
      ? [own.filter(({ weighs }) => weighs), own.filter(({ weighs }) => !weighs)]
      : [own];
  }).filter(({ length }) => length > 0);
}

function gapText(gaps: readonly Gap[], judged: readonly string[], program: ProgramNames): Phrase {
  const last = gaps.at(-1) as Gap;
  switch (last.kind) {
    case "lost":
      return lostText(gaps, last);
    case "not counted":
      return last.weighs ? notCountedText(gaps, last) : unmountedText(gaps, last);
    case "silent":
      return last.onDemand ? endedText(gaps, last) : silentText(gaps, last, program);
    case "stop":
      return stopText(gaps, last, judged);
  }
}

function lostText(gaps: readonly Gap[], last: Gap): Phrase {
  return phrase(
    "Not on record: what ",
    gaps.length === 1
      ? phrase(processText(last), " recorded from ", intervalText(last))
      : phrase(`was recorded before ${count(gaps.length)} losses, the last until `, endOf(last)),
    ". The database lost it, as in a restore or a failover.",
  );
}

function notCountedText(gaps: readonly Gap[], last: Gap): Phrase {
  const processes = processesIn(gaps);
  return phrase(
    "Not on record: calls to ",
    routesText(routesOf(gaps)),
    " that ",
    processes === 1 ? processText(last) : plural(processes, "process", "es"),
    " may have answered while counting only other routes, ",
    gaps.length === 1
      ? phrase("from ", intervalText(last))
      : phrase("the last until ", endOf(last)),
    ". Mount the same routes in every process.",
  );
}

function unmountedText(gaps: readonly Gap[], last: Gap): Phrase {
  const processes = processesIn(gaps);
  return processes === 1
    ? phrase(
      capitalized(processText(last)),
      " mounts no route, as last seen at ",
      endOf(last),
      "; it may be a job, or the primary of a cluster.",
    )
    : phrase(
      `${plural(processes, "process", "es")} mount no route, the last one seen at `,
      endOf(last),
      "; they may be jobs, or the primaries of clusters.",
    );
}

function silentText(gaps: readonly Gap[], last: Gap, { howItStops }: ProgramNames): Phrase {
  const end = `. A process that ${howItStops} is never named here.`;
  if (gaps.length === 1) {
    return phrase(
      "Not on record: what ",
      processText(last),
      " answered after its last report at ",
      instant(last.start),
      `; it died, or was cut off${end}`,
    );
  }
  return phrase(
    `Not on record: what ${count(gaps.length)} processes answered after their last reports, the ` +
      "last of them ",
    processText(last),
    " at ",
    instant(last.start),
    `; they died, or were cut off${end}`,
  );
}

/** Names processes on demand by their number only: platforms end them without a word. */
function endedText(gaps: readonly Gap[], last: Gap): Phrase {
  const reports = gaps.length === 1 ? "its last report" : "their last reports, the last";
  return phrase(
    `Not on record: what ${plural(gaps.length, "instance")} answered after ${reports} at `,
    instant(last.start),
    ". The platform may end instances without notice.",
  );
}

function stopText(gaps: readonly Gap[], last: Gap, judged: readonly string[]): Phrase {
  const routes = routesOf(gaps);
  const isOfAll = routes.length === judged.length;
  const none = isOfAll ? ["no process ran"] : phrase("no process counted ", routesText(routes));
  const them = isOfAll ? "" : routes.length === 1 ? " it" : " them";
  return phrase(
    "Not on record: ",
    gaps.length === 1
      ? phrase(intervalText(last), ", when ", none)
      : phrase(`${totalText(gaps)} in ${plural(gaps.length, "stop")}, when `, none),
    `. Nobody could call${them} then, unless a process used another database.`,
  );
}

function detailText(gap: Gap, judged: readonly string[]): Phrase {
  const routes = gap.routes.length < judged.length ? phrase(" (", routesText(gap.routes), ")") : [];
  const who = gap.process === undefined ? [] : phrase(processText(gap), ": ");
  return gap.end === undefined
    ? phrase(who, "after ", instant(gap.start), routes)
    : phrase(who, intervalText(gap), routes);
}

/** Says how long gaps are together, if they have an end. */
function sumText(gaps: readonly Gap[]): string {
  return gaps.some(({ end }) => end === undefined) ? "" : ` (${totalText(gaps)})`;
}

/** Counts processes, each of which may have several sessions with a gap. */
function processesIn(gaps: readonly Gap[]): number {
  return new Set(gaps.map(({ process }) => JSON.stringify(process))).size;
}

function routesOf(gaps: readonly Gap[]): string[] {
  return [...new Set(gaps.flatMap(({ routes }) => routes))];
}

function endOf({ start, end = start }: Gap) {
  return instant(end);
}
