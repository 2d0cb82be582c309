/** Routes that are called, but that a process does not have any more. */

import { DAY_MS, dayOf } from "../../http/timestamp.ts";
import type { Ledger } from "./ledger.ts";

/** The number of whole days before today in which calls count. */
const DAYS = 30;

/**
 * Returns a sentence for each route that was called in the last {@linkcode DAYS} days, but is not
 * among those given: somebody has deleted it too early, or by mistake.
 *
 * @param routes The names of the routes that the process has.
 */
export async function deletedRoutes(
  ledger: Pick<Ledger, "time" | "callsToOthers">,
  routes: readonly string[],
): Promise<string[]> {
  const { now } = await ledger.time();
  const since = dayOf(now - DAYS * DAY_MS);
  const all = await ledger.callsToOthers(routes, since);
  return [...new Set(all.map(({ route }) => route))].map((route) => {
    const callers = all.filter((caller) => caller.route === route);
    const calls = callers.reduce((sum, { calls }) => sum + calls, 0);
    const { client } = callers.reduce((a, b) => b.last > a.last ? b : a);
    const times = calls === 1 ? "once" : `${calls.toLocaleString("en-US")} times`;
    return `${route} is not served any more, but was called ${times} since ${since}, ` +
      `the last by ${client}`;
  });
}
