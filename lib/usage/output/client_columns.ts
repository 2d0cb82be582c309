/** The columns of a table of clients. */

import type { ClientUsage } from "../verdict/sums.ts";
import { phasesText, releasesText } from "./client_sentences.ts";
import { date, instant, joined, path, type Phrase, textOf } from "./phrase.ts";
import { count, MAX_IN_DETAIL, plural } from "./wording.ts";

/** A column, and where it is shown besides the table of all clients on the operator's page. */
interface Column {
  readonly title: string;
  readonly cellOf: (usage: ClientUsage) => Phrase;
  /** Whether the text for a terminal has it. */
  readonly isInText: boolean;
  /** Whether the table of the clients of one route has it. */
  readonly isOfRoute: boolean;
  /** Whether it is a number, which stands under the end of its title. */
  readonly isNumber?: true;
}

/** Returns the columns of a table of clients that are not empty. */
export function columnsOf(clients: readonly ClientUsage[]): Column[] {
  return COLUMNS.filter(({ cellOf }) => clients.some((client) => textOf(cellOf(client)) !== ""));
}

const COLUMNS: readonly Column[] = [
  { title: "Client", cellOf: ({ client }) => [client], isInText: true, isOfRoute: true },
  {
    title: "Calls",
    cellOf: ({ calls }) => [count(calls)],
    isInText: true,
    isOfRoute: true,
    isNumber: true,
  },
  {
    title: "Days",
    cellOf: ({ days }) => [count(days)],
    isInText: true,
    isOfRoute: true,
    isNumber: true,
  },
  { title: "First call", cellOf: ({ first }) => [date(first)], isInText: true, isOfRoute: true },
  {
    title: "Last recorded on",
    cellOf: ({ last }) => [instant(last)],
    isInText: true,
    isOfRoute: true,
  },
  { title: "Routes", cellOf: routesCell, isInText: false, isOfRoute: false },
  { title: "Phases", cellOf: phasesText, isInText: true, isOfRoute: false },
  {
    title: "Releases or apps",
    cellOf: (usage) => [releasesText(usage)],
    isInText: true,
    isOfRoute: true,
  },
];

function routesCell({ routes }: ClientUsage): Phrase {
  return routes.length > MAX_IN_DETAIL
    ? [plural(routes.length, "route")]
    : joined(routes.map((route) => [path(route)]), ", ");
}
