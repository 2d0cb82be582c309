/**
 * `media usage --gone`: what an operator knows of a server that fell silent.
 */

import { formatInstant } from "../lifecycle/policy.ts";
import { silentServers } from "../usage/verdict.ts";
import { latestWatches, type Ledger, type Watch } from "../storage/ledger.ts";
import { RefusedError } from "../publishing/publish.ts";

/**
 * Marks servers as gone, all or none.
 *
 * @returns Their last watches.
 * @throws {RefusedError} When one is not known, or is not silent.
 */
export async function markGone(
  ledger: Pick<Ledger, "watches" | "mark">,
  servers: readonly string[],
  now: number,
): Promise<Watch[]> {
  const watches = await ledger.watches();
  const latest = latestWatches(watches);
  const silent = new Set(silentServers(watches, now).map(({ server }) => server));
  const gone = servers.map((server): Watch => {
    const watch = latest.get(server);
    if (watch === undefined) {
      throw new RefusedError(
        `server "${server}" is not in the ledger, expected one that \`media usage\` lists`,
      );
    }
    if (watch.end === undefined && !silent.has(server)) {
      const since = formatInstant(watch.until);
      throw new RefusedError(
        `server "${server}" was heard from at ${since}, expected one that is silent: stop it first`,
      );
    }
    return { ...watch, end: watch.end ?? "gone" };
  });
  for (const watch of gone) await ledger.mark(watch);
  return gone;
}
