/**
 * Limits on caching that many responses share. They depend on the fields that caches obey, on the
 * status and on the time left in the phase, but not on the item. To compute them for each response
 * would take a tenth of a HEAD of an item that was not requested lately.
 */

import type { Field } from "../http/outcome.ts";
import {
  type FreshnessLimit,
  governsFreshness,
  limitFreshnessForReuse,
  type ReusableFields,
} from "../lifecycle/freshness.ts";

/** Limits the freshness of responses. Computes the limits anew only when something changes them. */
export class FreshnessLimits {
  /** Results by their input, with the instant for which each was computed. */
  readonly #results = new Map<string, ReusableFields & { readonly since: number }>();

  /** Returns what {@linkcode limitFreshnessForReuse} returns. */
  limit(fields: readonly Field[], limit: FreshnessLimit): ReusableFields {
    const { until, now, method, status, isAuthorized } = limit;
    // Clients choose the method. For these two, which have the same limits, they choose nothing else.
    if (method !== "HEAD" && method !== "GET") return limitFreshnessForReuse(fields, limit);
    const governs = ([name]: Field) => governsFreshness(name);
    const governing = fields.filter(governs);
    const values = governing.map(([name, value]) => `${name}: ${value}`).join("\n");
    const key = `${until} ${status} ${isAuthorized}\n${values}`;
    let result = this.#results.get(key);
    // The same input has the same result until `unchangedUntil`.
    if (result === undefined || now < result.since || now >= result.unchangedUntil) {
      result = { ...limitFreshnessForReuse(governing, limit), since: now };
      this.#results.set(key, result);
    }
    const limited = [...result.fields];
    const all = fields.map((field) => governs(field) ? limited.shift() ?? field : field);
    return { fields: [...all, ...limited], unchangedUntil: result.unchangedUntil };
  }
}
