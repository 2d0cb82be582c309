/** The extensions of clients, as an application gives them in the options of a route. */

import { type Extensions, isEffective } from "../lifecycle/extension.ts";
import { mismatch } from "../lifecycle/mismatch.ts";
import type { Policy } from "../lifecycle/policy.ts";
import { instantIn } from "../lifecycle/policy_settings.ts";
import { EXPECTED_ID, isId } from "./record/client_names.ts";

/**
 * Reads the extensions of a route.
 *
 * @returns Those that the policy takes, and those that have no effect, because they do not end after
 *   its sunset. That is no error, or a sunset that is moved past them would stop the application.
 * @throws {TypeError} If one is not valid, or the option `client` or the sunset is missing.
 */
export function readExtensions(
  given: unknown,
  { policy, client }: { readonly policy: Policy; readonly client: unknown },
): { readonly extensions: Extensions; readonly ineffective: Extensions } {
  // Others, such as a Map, would silently have no entries.
  if (Object.prototype.toString.call(given) !== "[object Object]") {
    throw new TypeError(
      mismatch("extensions", given, "an object with a date for each client's id"),
    );
  }
  const entries = Object.entries(given as object).map(([id, date]): [string, number] => {
    if (!isId(id)) throw new TypeError(mismatch("extensions", id, `ids of ${EXPECTED_ID}`));
    const refuse = (...issue: [string, unknown, string]) => {
      throw new TypeError(mismatch(...issue));
    };
    return [id, instantIn(`extensions[${JSON.stringify(id)}]`, date, refuse) as number];
  });
  if (entries.length > 0 && client === undefined) {
    throw new TypeError(
      mismatch("client", client, "a function that returns the ids of `extensions`"),
    );
  }
  if (entries.length > 0 && policy.sunsetAt === undefined) {
    throw new TypeError("extensions: expected a policy with a sunset, got one without");
  }
  const takes = ([, end]: [string, number]) => isEffective(policy, end);
  return {
    extensions: Object.fromEntries(entries.filter(takes)),
    ineffective: Object.fromEntries(entries.filter((entry) => !takes(entry))),
  };
}
