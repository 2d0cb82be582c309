/** The sentences on clients. */

import { PHASES } from "../../lifecycle/policy.ts";
import type { ClientUsage } from "../verdict/sums.ts";
import { instant, joined, p, type Phrase } from "./phrase.ts";
import { count, MAX_LISTED, plural } from "./wording.ts";

/**
 * Formats the phases in which a client called, e.g. "deprecated; 5 calls in the brownout of
 * 2027-06-10T09:00:00Z (503)". A client that called only in brownouts may have followed dead links.
 */
export function phasesText({ phases, brownouts }: ClientUsage): Phrase {
  const texts = PHASES.filter((phase) => phases[phase] !== undefined)
    .flatMap((phase) => phase === "brownout" ? brownoutTexts(brownouts) : [[phase]]);
  return joined(texts, "; ");
}

/** Formats the calls in each brownout, e.g. "5 calls in the brownout of … (503)". */
export function brownoutTexts(brownouts: ClientUsage["brownouts"]): Phrase[] {
  return brownouts.map(({ start, status, calls }) =>
    p`${plural(calls, "call")} in the brownout of ${instant(Date.parse(start))}${
      status === undefined ? "" : ` (${status})`
    }`
  );
}

/** Formats the releases of an app, or the apps of any other client, e.g. "3.0 (5 calls), 2.9 (3)". */
export function releasesText({ calls, releases }: ClientUsage): string {
  const [only] = releases;
  if (releases.length === 1 && only?.calls === calls) return only.release;
  const listed = releases.slice(0, MAX_LISTED).map(({ release, calls }, at) =>
    `${release} (${at === 0 ? plural(calls, "call") : count(calls)})`
  );
  const more = releases.length - listed.length;
  return listed.join(", ") + (more > 0 ? `, and ${count(more)} more` : "");
}
