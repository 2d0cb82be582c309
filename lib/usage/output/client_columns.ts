/** The columns of a table of clients. */

import { formatInstant } from "../../http/timestamp.ts";
import { kindOf } from "../record/client_names.ts";
import type { ClientUsage } from "../verdict/sums.ts";
import { phasesText } from "./client_sentences.ts";
import { count, MAX_IN_DETAIL, MAX_LISTED, plural } from "./wording.ts";

/** A column, and where it is shown besides the table of all clients on the operator's page. */
interface Column {
  readonly title: string;
  readonly cellOf: (usage: ClientUsage) => string;
  /** Whether the text for a terminal has it. */
  readonly isInText: boolean;
  /** Whether the table of the clients of one route has it. */
  readonly isOfRoute: boolean;
  /** Whether it is a number, which text aligns at its end. Pages so align the second column. */
  readonly isNumber?: true;
}

/** Returns the columns of a table of clients that are not empty. */
export function columnsOf(clients: readonly ClientUsage[]): Column[] {
  return COLUMNS.filter(({ cellOf }) => clients.some((client) => cellOf(client) !== ""));
}

const COLUMNS: readonly Column[] = [
  { title: "Client", cellOf: ({ client }) => client, isInText: true, isOfRoute: true },
  {
    title: "Calls",
    cellOf: ({ calls }) => count(calls),
    isInText: true,
    isOfRoute: true,
    isNumber: true,
  },
  { title: "First call", cellOf: ({ first }) => first, isInText: true, isOfRoute: true },
  {
    title: "Last recorded on",
    cellOf: ({ last }) => formatInstant(last),
    isInText: true,
    isOfRoute: true,
  },
  { title: "Routes", cellOf: routesCell, isInText: false, isOfRoute: false },
  { title: "Phases", cellOf: phasesText, isInText: true, isOfRoute: false },
  { title: "Releases or apps", cellOf: releasesText, isInText: true, isOfRoute: false },
];

function routesCell({ routes }: ClientUsage): string {
  return routes.length > MAX_IN_DETAIL ? plural(routes.length, "route") : routes.join(", ");
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
