/** The current state on the notice page, and the dates of deprecation and removal. */

import type { Notice } from "./notice.ts";
import { time } from "./notice_html.ts";

/** Renders the current phase as a banner. */
export function banner(notice: Notice): string {
  const [title, text] = stateNow(notice);
  return `<section class="banner ${notice.phase}" aria-label="Current state">
<p class="state">Right now</p>
<p><strong>${title}.</strong> ${text}</p>
</section>`;
}

function stateNow(notice: Notice): [title: string, text: string] {
  const { phase, phaseEndsAt, sunsetAt, brownoutStatus, afterSunset } = notice;
  const until = phaseEndsAt === null ? "" : time(phaseEndsAt);
  const change = phaseEndsAt === sunsetAt ? "removal" : "next brownout";
  switch (phase) {
    case "announced":
      return ["Announced", `Everything works as usual. The deprecation starts ${until}.`];
    case "deprecated":
      return [
        "Deprecated, and still working",
        phaseEndsAt === null
          ? "No date is set for the removal yet. Move now, while there is no rush."
          : `Everything works until the ${change}, ${until}.`,
      ];
    case "brownout":
      return [
        "Brownout: temporarily disabled",
        `Requests for media get ${brownoutStatus} until ${until}. Then everything works again.`,
      ];
    case "removed":
      return [
        "Removed",
        afterSunset === "redirect"
          ? "Requests are redirected to the replacement with 308, and will eventually get 404."
          : "Requests get 410, and will eventually get 404.",
      ];
  }
}

/** Renders the dates of deprecation and removal. */
export function facts({ deprecatedAt, sunsetAt, phase }: Notice): string {
  return `<dl class="facts">
<div><dt>Deprecated ${phase === "announced" ? "from" : "since"}</dt>
<dd>${time(deprecatedAt)}</dd></div>
<div class="removal"><dt>${phase === "removed" ? "Removed" : "To be removed"}</dt>
<dd>${sunsetAt === null ? "No date set yet" : time(sunsetAt)}</dd></div>
</dl>`;
}
