/** The state of a retirement now, and what it means for requests. */

import type { EndpointNotice, Notice } from "../lifecycle/notice.ts";
import { time } from "../pages/html.ts";
import { sayOnce } from "../pages/notice_parts.ts";

/** Renders the current state. */
export function state(notice: Notice): string {
  return `<section aria-label="Current state">\n${sayOnce(notice, banner)}\n</section>`;
}

function banner(notice: EndpointNotice, prefix: string): string {
  return `<p class="banner ${notice.phase}">${prefix}${describePhase(notice)}</p>`;
}

/** Renders the phase, and what it means for requests. */
function describePhase(notice: EndpointNotice): string {
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
      return `<strong>Removed.</strong> ${onceRemoved(notice)}`;
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

/** Says what requests get from now on. */
function onceRemoved({ afterSunset }: EndpointNotice): string {
  return afterSunset === "redirect"
    ? "Requests with a valid token are redirected to the replacement with 308, others get 410."
    : "Requests get 410.";
}
