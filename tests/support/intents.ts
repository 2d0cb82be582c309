/** The intents of a process, in place of a ledger's. */

import { Intents } from "../../lib/usage/record/intents.ts";

/**
 * Returns intents that a ledger takes, or not, and the routes for which one was asked.
 *
 * @param take Returns whether the ledger takes an intent. Default: always.
 */
export function fakeIntents(
  take: () => boolean | Promise<boolean> = () => true,
): { readonly intents: Intents; readonly asked: readonly string[] } {
  const asked: string[] = [];
  const write = async ({ route }: { readonly route: string }) => {
    asked.push(route);
    if (!await take()) throw new Error("The ledger fails");
    return true;
  };
  const catchUp = () => Promise.resolve();
  const lifetime = () => performance.now();
  return { intents: new Intents({ write, catchUp, clock: Date.now, lifetime }), asked };
}
