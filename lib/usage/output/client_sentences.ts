/** The sentences on clients, and the columns of their table. */

import { formatInstant } from "../../http/timestamp.ts";
import { PHASES } from "../../lifecycle/policy.ts";
import { kindOf } from "../record/client_names.ts";
import type { ClientUsage } from "../verdict/sums.ts";
import { count, MAX_IN_DETAIL, MAX_LISTED, plural } from "./wording.ts";

/**
 * Formats the phases in which a client called, e.g. "deprecated; 5 calls in the brownout of
 * 2027-06-10T09:00:00Z". A client that called only in brownouts may have followed dead links.
 */
export function phasesText({ phases, brownouts }: ClientUsage): string {
  const texts = brownouts.map(({ start, calls }) =>
    `${plural(calls, "call")} in the brownout of ${formatInstant(Date.parse(start))}`
  );
  return PHASES.filter((phase) => phases[phase] !== undefined)
    .flatMap((phase) => phase === "brownout" ? texts : [phase]).join("; ");
}

/**
 * Formats the releases of an app, e.g. "3.0.1 (5 calls), 2.9.4 (3)", or the apps of any other
 * client. A single release of an app is left out.
 */
function releasesText({ client, releases }: ClientUsage): string {
  if (kindOf(client) === "app" && releases.length < 2) return "";
  const listed = releases.slice(0, MAX_LISTED).map(({ release, calls }, at) =>
    `${release} (${at === 0 ? plural(calls, "call") : count(calls)})`
  );
  const more = releases.length - listed.length;
  return listed.join(", ") + (more > 0 ? `, and ${count(more)} more` : "");
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

/** Returns the columns of a table of clients that are not empty. */
export function columnsOf(clients: readonly ClientUsage[]): Column[] {
  return COLUMNS.filter(([, cellOf]) => clients.some((client) => cellOf(client) !== ""));
}

type Column = readonly [title: string, cellOf: (usage: ClientUsage) => string];

const COLUMNS: readonly Column[] = [
  ["Client", ({ client }) => client],
  ["Calls", ({ calls }) => count(calls)],
  ["First call", ({ first }) => first],
  ["Last recorded on", ({ last }) => formatInstant(last)],
  [
    "Routes",
    ({ routes }) =>
      routes.length > MAX_IN_DETAIL ? plural(routes.length, "route") : routes.join(", "),
  ],
  ["Phases", phasesText],
  ["Releases or apps", releasesText],
];
