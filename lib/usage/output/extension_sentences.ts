/** The sentences on the extensions of clients. */

import type { ExtensionUsage } from "../verdict/extensions.ts";
import type { UsageReport } from "../verdict/report.ts";
import { code, instant, type Part, type Phrase, phrase } from "./phrase.ts";
import { count, MAX_LISTED, namesText, routesText } from "./wording.ts";

/** Lists the extensions: until when each is announced, who has never called, and which have ended. */
export function extensionLines({ extensions }: Pick<UsageReport, "extensions">): Phrase[] {
  const announced = extensions.filter(({ isExpired }) => !isExpired);
  const ended = extensions.filter(({ isExpired }) => isExpired);
  const lines = [
    ...linesByEnd(announced, (until, clients, routes) =>
      phrase(
        "Announced until ",
        until,
        ` for ${clients}: deleting `,
        routes,
        " before then breaks the announcement.",
      )),
    ...sharedLines(announced.filter(({ isOnRecord }) => !isOnRecord), (clients, routes) =>
      phrase(
        "No call to ",
        routes,
        ` by ${clients} is on record: an extension goes by the id that `,
        code("client"),
        " returns before the handler is called.",
      )),
    ...linesByEnd(ended, (until, clients, routes) =>
      phrase(
        `No longer announced for ${clients}: the extension of `,
        routes,
        " ended at ",
        until,
        ".",
      )),
  ];
  const more = lines.length - MAX_LISTED;
  return more > 0
    ? [...lines.slice(0, MAX_LISTED), [`and ${count(more)} more, which --json lists`]]
    : lines;
}

/** Formats the lines for extensions, separately for each of their ends. */
function linesByEnd(
  extensions: readonly ExtensionUsage[],
  format: (until: Part, clients: string, routes: Phrase) => Phrase,
): Phrase[] {
  const ends = [...new Set(extensions.map(({ until }) => until))].sort((a, b) => a - b);
  return ends.flatMap((end) =>
    sharedLines(
      extensions.filter(({ until }) => until === end),
      (clients, routes) => format(instant(end), clients, routes),
    )
  );
}

/** Formats a line for each group of routes whose extensions are of the same clients. */
function sharedLines(
  extensions: readonly ExtensionUsage[],
  format: (clients: string, routes: Phrase) => Phrase,
): Phrase[] {
  const clientsOf = (name: string) =>
    extensions.filter(({ route }) => route === name).map(({ client }) => client);
  const groups = new Map<string, string[]>();
  for (const route of new Set(extensions.map(({ route }) => route))) {
    const key = JSON.stringify(clientsOf(route).sort());
    groups.set(key, [...groups.get(key) ?? [], route]);
  }
  return [...groups].map(([clients, routes]) =>
    format(namesText(JSON.parse(clients)), routesText(routes))
  );
}
