/** The sentences on clients. */

import { formatInstant } from "../../http/timestamp.ts";
import { PHASES } from "../../lifecycle/policy.ts";
import type { ClientUsage } from "../verdict/sums.ts";
import { MAX_LISTED, plural } from "./wording.ts";

/**
 * Formats the phases in which a client called, e.g. "deprecated; 5 calls in the brownout of
 * 2027-06-10T09:00:00Z". A client that called only in brownouts may have followed dead links.
 */
export function phasesText({ phases, brownouts }: ClientUsage): string {
  return PHASES.filter((phase) => phases[phase] !== undefined)
    .flatMap((phase) => phase === "brownout" ? brownoutTexts(brownouts) : [phase]).join("; ");
}

/** Formats the calls in each brownout, e.g. "5 calls in the brownout of 2027-06-10T09:00:00Z". */
export function brownoutTexts(brownouts: ClientUsage["brownouts"]): string[] {
  return brownouts.map(({ start, calls }) =>
    `${plural(calls, "call")} in the brownout of ${formatInstant(Date.parse(start))}`
  );
}

/** Formats a client's calls, e.g. "app curl, 1 call, last recorded at … (deprecated)". */
function clientLine(usage: ClientUsage): string {
  const { client, calls, last } = usage;
  const called = `${plural(calls, "call")}, last recorded at ${formatInstant(last)}`;
  return `${client}, ${called} (${phasesText(usage)})`;
}

/** Formats clients as lines. */
export function clientLines(clients: readonly ClientUsage[]): string[] {
  const lines = clients.slice(0, MAX_LISTED).map(clientLine);
  const more = clients.length - lines.length;
  return more > 0 ? [...lines, `and ${plural(more, "more client")}`] : lines;
}
