/** The sentences on doubts: why a verdict is unknown, and what would help. */

import { formatInstant } from "../../http/timestamp.ts";
import { sessionText } from "../record/session_name.ts";
import type { Doubt } from "../verdict/doubts.ts";
import { recoveryFrom, recoveryOf } from "../verdict/recovery.ts";
import type { UsageReport } from "../verdict/report.ts";
import type { Remedy, UnknownVerdict } from "../verdict/verdict.ts";
import { hiddenText } from "./hidden_sentences.ts";
import { capitalized, count, intervalText, MAX_LISTED, plural, totalText } from "./wording.ts";

/** Explains the verdict "unknown": each reason, the words that would help, and the wait. */
export function doubtLines(report: UsageReport): string[] {
  const { unknown, judged } = report;
  if (unknown === undefined) return [];
  const causes = causeLines(unknown, report);
  if (judged.length === 0) return causes; // nothing would make a verdict on no route clear
  return [...causes, ...silentLines(unknown, report), ...outlookLines(unknown, report)];
}

/** Lists why calls may be missing, except for what routeLines() says of one route. */
function causeLines({ hidden, doubts }: UnknownVerdict, report: UsageReport): string[] {
  const { judged } = report;
  const isOfRoute = (route: string) => judged.length > 1 && judged.includes(route);
  const causes = [
    ...hidden.filter(({ route }) => !isOfRoute(route))
      .map((each) => `${each.route}: ${hiddenText(each, report)}`),
    ...doubts.filter((doubt) => doubt.reason !== "not counted" || !isOfRoute(doubt.route))
      .map((doubt) => capitalized(doubtText(doubt, report))),
  ];
  const lines = causes.slice(0, MAX_LISTED);
  const more = causes.length - lines.length;
  return more > 0 ? [...lines, `and ${count(more)} more`] : lines;
}

/** Says what to do about silent servers, if there are any. */
function silentLines(
  { doubts, remedy: { gone } }: UnknownVerdict,
  { program: { command } }: UsageReport,
): string[] {
  const lines: string[] = [];
  if (gone.length > 0) {
    lines.push(
      "A silent server may still be answering calls. Once its process has ended, run: " +
        `${command} ${goneOptions(gone)}`,
      "TIME is a time by which it had certainly ended, e.g. `2027-06-30T09:00:00Z`, as its supervisor's " +
        "log has it, or now if nobody knows better",
    );
  }
  const isSilent = (id: string) => gone.some((session) => session.id === id);
  if (doubts.some((doubt) => doubt.reason === "silent" && !isSilent(doubt.session))) {
    lines.push(
      "A server that has been silent for less than a minute may still report: ask again a minute later.",
    );
  }
  return lines;
}

/** Formats the options that declare sessions gone, e.g. "--gone 3d3a… --ended TIME". */
function goneOptions(gone: Remedy["gone"]): string {
  return `--gone ${gone.map(({ id }) => id).join(" ")} --ended TIME`;
}

/** Says when the verdict can be clear: with the words that would help, if any, and without. */
function outlookLines(unknown: UnknownVerdict, report: UsageReport): string[] {
  const { hidden, doubts, remedy: { gone, trustStops, left } } = unknown;
  const isOnAll = report.verdict === unknown;
  const recovery = recoveryOf(unknown, report);
  const day = hidden.length > 0 ? undefined : recoveryFrom(left, report);
  if (left.length >= doubts.length || day !== undefined && day === recovery) {
    const subject = isOnAll ? "The verdict" : "The unknown routes";
    return recovery === undefined ? [] : [`${subject} cannot be clear before ${recovery}.`];
  }
  const words: string[] = [];
  if (gone.length > 0) words.push(goneOptions(gone));
  if (trustStops) words.push("--trust-stops");
  const rest = day === undefined ? "would still be unknown" : `could be clear from ${day}`;
  const result = left.length + hidden.length === 0 ? "would be clear" : rest;
  const time = gone.length > 0 ? ", and TIME is within a minute of its last report" : "";
  const [it, they] = isOnAll ? ["this", "the verdict"] : ["the unknown routes", "they"];
  const lines = [`With \`${words.join(" ")}\`, if that is true${time}, ${it} ${result}.`];
  if (recovery !== undefined) lines.push(`Without it, ${they} cannot be clear before ${recovery}.`);
  return lines;
}

/** Formats why a route is unknown, e.g. "the record starts at 2027-06-10T09:00:00Z". */
function doubtText(doubt: Doubt, { usageDays, days, program }: UsageReport): string {
  const { command, retainSetting } = program;
  const until = formatInstant(doubt.until);
  const name = "session" in doubt ? sessionText({ ...doubt, id: doubt.session }) : "";
  switch (doubt.reason) {
    case "started":
      if (doubt.isOpen) return "no server has registered yet";
      return usageDays !== undefined && usageDays < days
        ? `the record starts at ${until}: ${retainSetting}=${usageDays} deletes earlier days, so raise it`
        : `the record starts at ${until}`;
    case "stop":
      return `${intervalText(doubt.start, doubt.until)}: no server was running (see --trust-stops)`;
    case "silent":
      return `${name} has not reported since ${formatInstant(doubt.reported)}`;
    case "cut off":
      return `until ${until}, ${name} may have answered calls: it last reported at ` +
        `${formatInstant(doubt.reported)}, and had ended by ${formatInstant(doubt.endedBy)}`;
    case "not counted":
      return doubt.isOpen
        ? `${name} does not count ${doubt.route}: deprecate it on every server, or ` +
          "delete it on every server"
        : `until ${until}, ${name} did not count ${doubt.route}`;
    case "ahead":
      return `the latest report is dated ${formatInstant(doubt.then)}: the database's clock was ` +
        `ahead then, or has fallen behind since. If it is right, run: ${command} --restart`;
  }
}

/** Says in one line why a route is unknown. What concerns other routes, too, is explained once. */
export function reasonsText({ hidden, doubts }: UnknownVerdict, report: UsageReport): string {
  const of = <Reason extends Doubt["reason"]>(reason: Reason) =>
    doubts.filter((doubt): doubt is Extract<Doubt, { reason: Reason }> => doubt.reason === reason);
  const stops = of("stop").map(({ start, until }) => ({ start, end: until }));
  const silent = of("silent").length;
  const cut = of("cut off").length;
  // By reason, so that the compiler reports a reason that is left out.
  const texts: Readonly<Record<Doubt["reason"], readonly string[]>> = {
    "not counted": of("not counted").map((doubt) => doubtText(doubt, report)),
    started: of("started").map(({ isOpen, until }) =>
      isOpen ? "no server has registered yet" : `the record starts at ${formatInstant(until)}`
    ),
    stop: stops.length > 0
      ? [`no server was running during ${plural(stops.length, "stop")} (${totalText(stops)})`]
      : [],
    silent: silent > 0 ? [`${plural(silent, "server")} ${silent === 1 ? "is" : "are"} silent`] : [],
    "cut off": cut > 0
      ? [`${plural(cut, "server")} may have answered calls after the last report`]
      : [],
    ahead: of("ahead").map(() => "the database's clock was or is wrong"),
  };
  const hiddenTexts = hidden.map((each) => hiddenText(each, report));
  // Those come last, since some have more than one sentence.
  return [...Object.values(texts).flat(), ...hiddenTexts].join("; ");
}
