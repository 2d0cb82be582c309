/** The sentences on what is not on record: what it means, and what keeps it from being named. */

import type { Gap, GapKind } from "../verdict/gaps.ts";
import type { UsageReport } from "../verdict/report.ts";
import { capitalized, instant, type Item, p, type Phrase, program } from "./phrase.ts";
import { count, intervalText, plural, processText, routesText, totalText } from "./wording.ts";

/** The number of gaps of a kind that are named one by one. */
const IN_DETAIL = 3;

/** The kinds, the weightiest first: what is lost was certainly answered; in a stop, nothing was. */
const KINDS: readonly GapKind[] = ["lost", "not counted", "silent", "stop"];

/** Says of each kind of gap what it means, and lists the latest of several. */
export function gapItems({ gaps, judged }: Pick<UsageReport, "gaps" | "judged">): Item[] {
  return groupsOf(gaps).map((group) => {
    const listed = group.length === 1 ? [] : group.slice(-IN_DETAIL).reverse();
    const rest = group.slice(0, -IN_DETAIL);
    return {
      line: gapText(group, judged),
      below: [
        ...listed.map((gap) => detailText(gap, judged)),
        ...rest.length === 0 ? [] : [p`and ${count(rest.length)} earlier${sumText(rest)}`],
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

function gapText(gaps: readonly Gap[], judged: readonly string[]): Phrase {
  const last = gaps.at(-1) as Gap;
  switch (last.kind) {
    case "lost":
      return lostText(gaps, last);
    case "not counted":
      return last.weighs ? notCountedText(gaps, last) : unmountedText(gaps, last);
    case "silent":
      return last.onDemand ? endedText(gaps, last) : silentText(gaps, last);
    case "stop":
      return stopText(gaps, last, judged);
  }
}

function lostText(gaps: readonly Gap[], last: Gap): Phrase {
  const what = gaps.length === 1
    ? p`${processText(last)} recorded from ${intervalText(last)}`
    : p`was recorded before ${count(gaps.length)} losses, the last until ${gapEnd(last)}`;
  return p`Not on record: what ${what}. The database lost it, as in a restore or a failover.`;
}

function notCountedText(gaps: readonly Gap[], last: Gap): Phrase {
  const processes = processesIn(gaps);
  const who = processes === 1 ? processText(last) : plural(processes, "process", "es");
  const when = gaps.length === 1
    ? p`from ${intervalText(last)}`
    : p`the last until ${gapEnd(last)}`;
  return p`Not on record: calls to ${routesText(routesOf(gaps))} that ${who} may have answered while
    counting only other routes, ${when}. Mount the same routes in every process.`;
}

function unmountedText(gaps: readonly Gap[], last: Gap): Phrase {
  const processes = processesIn(gaps);
  return processes === 1
    ? p`${capitalized(processText(last))} mounts no route, as last seen at ${gapEnd(last)};
      it may be a job, or the primary of a cluster.`
    : p`${plural(processes, "process", "es")} mount no route, the last one seen at
      ${gapEnd(last)}; they may be jobs, or the primaries of clusters.`;
}

function silentText(gaps: readonly Gap[], last: Gap): Phrase {
  const end = p`A process that ${program("howItStops")} is never named here.`;
  if (gaps.length === 1) {
    return p`Not on record: what ${processText(last)} answered after its last report at
      ${instant(last.start)}; it died, or was cut off. ${end}`;
  }
  return p`Not on record: what ${count(gaps.length)} processes answered after their last
    reports, the last of them ${processText(last)} at ${instant(last.start)};
    they died, or were cut off. ${end}`;
}

/** Names processes on demand by their number only: platforms end them without a word. */
function endedText(gaps: readonly Gap[], last: Gap): Phrase {
  const reports = gaps.length === 1 ? "its last report" : "their last reports, the last";
  return p`Not on record: what ${plural(gaps.length, "instance")} answered after ${reports} at
    ${instant(last.start)}. The platform may end instances without notice.`;
}

function stopText(gaps: readonly Gap[], last: Gap, judged: readonly string[]): Phrase {
  const routes = routesOf(gaps);
  const isOfAll = routes.length === judged.length;
  const none = isOfAll ? p`no process ran` : p`no process counted ${routesText(routes)}`;
  const them = isOfAll ? "" : routes.length === 1 ? " it" : " them";
  const when = gaps.length === 1
    ? intervalText(last)
    : p`${totalText(gaps)} in ${plural(gaps.length, "stop")}`;
  return p`Not on record: ${when}, when ${none}. Nobody could call${them} then, unless a process used
    another database.`;
}

function detailText(gap: Gap, judged: readonly string[]): Phrase {
  const routes = gap.routes.length < judged.length ? p` (${routesText(gap.routes)})` : [];
  const who = gap.process === undefined ? [] : p`${processText(gap)}: `;
  const when = gap.end === undefined ? p`after ${instant(gap.start)}` : intervalText(gap);
  return p`${who}${when}${routes}`;
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

function gapEnd({ start, end = start }: Gap) {
  return instant(end);
}
