/** The state of a retirement now, and what it means for requests. */

import type { EndpointNotice, Notice } from "../lifecycle/notice.ts";
import { time } from "./html.ts";
import { sayOnce } from "./notice_parts.ts";

/**
 * Renders the current state.
 *
 * @param redirected Says which requests are redirected after the removal, and what others get.
 */
export function state(notice: Notice, redirected: string): string {
  const banner = (each: EndpointNotice, prefix: string) =>
    `<p class="banner ${each.phase}">${prefix}${describePhase(each, redirected)}</p>`;
  return `<section aria-label="Current state">\n${sayOnce(notice, banner)}\n</section>`;
}

/** Renders the phase, and what it means for requests. */
function describePhase(notice: EndpointNotice, redirected: string): string {
  switch (notice.phase) {
    case "announced": {
      const start = time(notice.deprecatedAt);
      return `<strong>Announced.</strong> Everything works as usual. The deprecation starts ${start}.`;
    }
    case "deprecated":
      return `<strong>Deprecated, and still working.</strong> ${whileDeprecated(notice)}`;
    case "brownout":
      return `<strong>Brownout: temporarily disabled.</strong> ${inBrownout(notice)}`;
    case "removed":
      return `<strong>Removed.</strong> ${
        notice.afterSunset === "redirect" ? redirected : "Requests get 410."
      }`;
  }
}

/** Says until when everything works. */
function whileDeprecated({ phaseEndsAt, sunsetAt }: EndpointNotice): string {
  if (phaseEndsAt === null) {
    return "No date is set for the removal yet. Move now, while there is no rush.";
  }
  const until = time(phaseEndsAt);
  if (phaseEndsAt === sunsetAt) return `Everything works until the removal, ${until}.`;
  const removal = sunsetAt === null ? "" : ` The removal is on ${time(sunsetAt)}.`;
  return `Everything works until the next brownout, ${until}.${removal}`;
}

/** Says what requests get, and when they work again. */
function inBrownout(
  { phaseEndsAt, brownouts, brownoutStatus, sunsetAt }: EndpointNotice,
): string {
  // Only policies with a sunset have brownouts, and a brownout ends: neither is null.
  let [end, removal] = [phaseEndsAt ?? "", sunsetAt ?? ""];
  const now = brownouts.findIndex((brownout) => brownout.end === end);
  let answers = `${brownouts[now]?.status ?? brownoutStatus} until ${time(end)}`;
  for (const { start, end: later, status } of brownouts.slice(now + 1)) {
    if (start !== end) break;
    answers += `, then ${status} until ${time(later)}`;
    end = later;
  }
  const next = brownouts.find(({ start }) => start >= end);
  const change = next === undefined
    ? `removal on ${time(removal)}`
    : `next brownout on ${time(next.start)}`;
  return `Requests get ${answers}. Afterwards, requests work again until the ${change}.`;
}
