/** The picture of the calls to a route, day by day. */

import type { Policy } from "../../lifecycle/policy.ts";
import { escape, time } from "../../pages/html.ts";
import { type DayNote, notesOf } from "../verdict/day_notes.ts";
import type { RouteUsage } from "../verdict/report.ts";
import { noteText } from "./call_sentences.ts";
import { date, details, joined, list, p, type Phrase, titleOf } from "./phrase.ts";
import { plural } from "./wording.ts";

/** The position of the axis, in percent from the top. */
const AXIS_Y = 85;

/** The position of each mark below the axis. */
const MARK_Y: Readonly<Record<DayNote["kind"], number>> = { brownout: 89, "not on record": 95 };

/** The style's class of each mark. */
const CLASSES: Readonly<Record<DayNote["kind"], string>> = {
  brownout: "brownout",
  "not on record": "unrecorded",
};

/**
 * Draws a bar for each day, with marks below it for its notes, and lists the same in numbers.
 *
 * @param isShort Whether to leave days without calls out of the numbers, and untitled.
 */
export function picture(
  { days }: RouteUsage,
  policy: Policy | undefined,
  isShort = false,
): string {
  const most = Math.max(...days.map(({ calls }) => calls));
  const width = Math.min(.8, days.length / 33); // at most 3 percent of the picture
  const numbers: Phrase[] = [];
  const kinds = new Set<DayNote["kind"]>(); // the kinds of marks
  const bars = days.map((usage, x) => {
    const { day, calls, byPhase } = usage;
    const notes = notesOf(usage, policy);
    const note = notes.length === 0 ? [] : p` (${joined(notes.map(noteText), "; ")})`;
    const text = p`${date(day)}: ${plural(calls, "call")}${note}`;
    const isBrief = isShort && calls === 0;
    if (calls > 0 || notes.length > 0 && !isBrief) numbers.push(text);
    const left = x + (1 - width) / 2;
    const rect = (kind: string, y: number, height: number) =>
      `<rect class="${kind}" x="${left}" y="${y}" width="${width}" height="${height}"/>`;
    const bar = (kind: string, calls = 0) => {
      const height = Math.max(Math.round(calls / most * AXIS_Y), 1);
      return calls === 0 ? "" : rect(kind, AXIS_Y - height, height);
    };
    const marks = notes.map(({ kind }) => {
      kinds.add(kind);
      return rect(CLASSES[kind], MARK_Y[kind], 5);
    });
    if (isBrief) return marks.join("");
    const shapes = [bar("calls", calls), bar("brownout", byPhase.brownout), ...marks];
    return `<g><title>${escape(titleOf(text))}</title>${shapes.join("")}</g>`;
  });
  const entry = (kind: DayNote["kind"]) =>
    kinds.has(kind)
      ? `<span><i class="${CLASSES[kind]}">■</i> ${titleOf(noteText({ kind }))}</span>`
      : "";
  const legend = [
    `<span><i>■</i> calls; busiest day: ${plural(most, "call")}</span>`,
    entry("brownout"),
    entry("not on record"),
  ];
  return `<figure>
<svg viewBox="0 0 ${days.length} 100" preserveAspectRatio="none" role="img" aria-label="Calls per day">
${bars.filter((bar) => bar !== "").join("\n")}
<rect class="axis" y="${AXIS_Y}" width="100%" height="1"/>
</svg>
<p class="axis"><span>${time(days[0]?.day ?? "")}</span><span>${
    time(days.at(-1)?.day ?? "")
  }</span></p>
<figcaption>${legend.join("\n").trim()}</figcaption>
</figure>
${details("In numbers", list(numbers))}`;
}
