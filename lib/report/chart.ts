/**
 * The chart of a route's calls per day, as HTML: an SVG that scales to any width, and labels that
 * keep their size.
 */

import { escape } from "@std/html/entities";
import { formatInstant, type Interval, type Phase, PHASES } from "../lifecycle/policy.ts";
import { DAY_MS } from "../usage/day.ts";
import type { DayUsage, RouteUsage, UsageReport } from "./report.ts";
import { count, NOT_WHOLE } from "./words.ts";

/** The maximum number of labels below the chart, as many as fit on a phone. */
const MAX_LABELS = 5;

/** Renders calls per day as bars stacked by phase, brownouts as shades, the sunset as a line. */
export function usageChart({ route, days }: RouteUsage, { policy, today }: UsageReport): string {
  const ticks = axisTicks(Math.max(...days.map(({ calls }) => calls)));
  const most = ticks.at(-1) as number;
  const start = Date.parse(days[0]?.day ?? today);
  const end = start + days.length * DAY_MS;
  // In percent of the chart's width and height.
  const x = (instant: number) => (instant - start) / (end - start) * 100;
  const y = (calls: number) => 100 - calls / most * 100;
  const step = 100 / days.length;

  const shades = policy.brownouts.filter((interval) => overlaps(interval, { start, end }))
    .map((interval) => {
      const [from, to] = [x(Math.max(interval.start, start)), x(Math.min(interval.end, end))];
      const title = `Brownout ${formatInstant(interval.start)} to ${formatInstant(interval.end)}`;
      return `<rect class="shade" x="${percent(from)}" y="0" width="${
        percent(Math.max(to - from, 0.3))
      }" ` +
        `height="100"><title>${title}</title></rect>`;
    });
  const unknown = days.map(({ day, isWhole }, index) =>
    isWhole ? "" : `<rect class="unknown" x="${percent(index * step)}" y="0" ` +
      `width="${percent(step)}" height="100"><title>${day}: ${NOT_WHOLE}</title></rect>`
  );
  const bars = days.map(({ day, byPhase }, index) => {
    let below = 0;
    return PHASES.map((phase) => {
      const calls = byPhase[phase] ?? 0;
      if (calls === 0) return "";
      const [base, top] = [y(below), y(below += calls)];
      return `<rect class="${phase}" x="${percent((index + 0.1) * step)}" y="${percent(top)}" ` +
        `width="${percent(step * 0.8)}" height="${percent(base - top)}">` +
        `<title>${day}: ${count(calls)} ${phase}</title></rect>`;
    }).join("");
  });
  const sunset = policy.sunsetAt;
  const line = sunset === undefined || sunset < start || sunset > end
    ? ""
    : `<line class="sunset" x1="${percent(x(sunset))}" x2="${
      percent(x(sunset))
    }" y1="0" y2="100">` +
      `<title>Sunset ${formatInstant(sunset)}</title></line>`;
  const grid = ticks.map((tick) =>
    `<line class="grid" x1="0" x2="100" y1="${percent(y(tick))}" ` +
    `y2="${percent(y(tick))}"/>`
  );
  const calls = ticks.map((tick) => `<span style="top:${percent(y(tick))}%">${count(tick)}</span>`);
  const every = Math.ceil(days.length / MAX_LABELS);
  const dates = days.flatMap(({ day }, index) =>
    index % every === 0
      ? [`<span style="left:${percent((index + 0.5) * step)}%">${day.slice(5)}</span>`]
      : []
  );
  const widest = count(most).length;
  return `<div class="chart" style="--axis:${widest}ch">
<div class="calls" aria-hidden="true">${calls.join("")}</div>
<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="Calls to ${
    escape(route)
  } per day">
${unknown.join("")}${shades.join("")}${grid.join("")}${bars.join("")}${line}
</svg>
<div class="dates" aria-hidden="true">${dates.join("")}</div>
</div>
${legend(days, shades.length > 0, line !== "")}`;
}

/**
 * Returns the ticks on the axis, from 0 to the first one no less than the maximum, in steps of 1, 2
 * or 5 times a power of ten.
 */
export function axisTicks(max: number): number[] {
  const rough = Math.max(max, 1) / 5;
  const power = 10 ** Math.max(0, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? power;
  const steps = Math.ceil(Math.max(max, 1) / step);
  return Array.from({ length: steps + 1 }, (_, index) => index * step);
}

const PHASE_NAMES: Readonly<Record<Phase, string>> = {
  announced: "calls before the deprecation",
  deprecated: "calls while deprecated",
  brownout: "calls in a brownout",
  removed: "calls after the removal",
};

function legend(days: readonly DayUsage[], hasBrownouts: boolean, hasSunset: boolean): string {
  const items = PHASES.filter((phase) => days.some(({ byPhase }) => byPhase[phase] !== undefined))
    .map((phase) => `<li><span class="key ${phase}"></span>${PHASE_NAMES[phase]}</li>`);
  if (days.some(({ isWhole }) => !isWhole)) {
    items.push(`<li><span class="key unknown"></span>${NOT_WHOLE}</li>`);
  }
  if (hasBrownouts) items.push('<li><span class="key shade"></span>brownout window</li>');
  if (hasSunset) items.push('<li><span class="key sunset"></span>sunset</li>');
  return items.length === 0 ? "" : `<ul class="legend">${items.join("")}</ul>`;
}

function overlaps(a: Interval, b: Interval): boolean {
  return a.start < b.end && b.start < a.end;
}

function percent(value: number): string {
  return String(Math.round(value * 1000) / 1000);
}
