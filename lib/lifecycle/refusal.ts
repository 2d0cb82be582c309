/** The outcomes in a brownout and after the sunset. */

import { formatHttpDate } from "../http/http_date.ts";
import { type Field, NO_STORE, NO_TRANSFORM, type Outcome } from "../http/outcome.ts";
import { problemDetails, type ProblemType } from "../http/problem.ts";
import { formatInstant } from "../http/timestamp.ts";
import { type BrownoutStatus, brownoutStatusAt, momentAt, type Policy } from "./policy.ts";

/** The problem types of refusals, by name. */
export const REFUSAL_TYPES = {
  brownout: {
    status: 503,
    title: "Brownout",
    meaning: "The path is temporarily disabled ahead of its removal, until the date in the " +
      "Retry-After field. The successor works meanwhile.",
  },
  removed: {
    status: 410,
    title: "Removed",
    meaning: "The path was removed on the date in the Sunset field. That says nothing about the " +
      "item: ask the path that replaces this one.",
  },
} as const satisfies Record<string, ProblemType>;

/** The facts, besides the policy, on which a refusal depends. */
export interface RefusalOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** A URL reference to the resource's replacement, if it is known. It is not validated. */
  readonly successor?: string | undefined;
  /** Seconds for which caches may store the response after the sunset. If left out, none may. */
  readonly maxAge?: number | undefined;
  /**
   * A URL reference to the page that explains the problem types at the fragments `#brownout` and
   * `#removed`. If left out, the type is "about:blank".
   */
  readonly problemTypesPage?: string;
}

/** A refusal, sent in place of the requested resource. */
export interface Refusal extends Outcome {
  /** The status of the brownout; after the sunset 410, or 308 to the successor. */
  readonly status: 308 | 410 | 503;
}

/**
 * Returns the outcome in a brownout or after the sunset; `undefined` at any other time.
 *
 * @example Before and after the sunset
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { definePolicy, refusal } from "@media-head/lifecycle";
 *
 * const policy = definePolicy({
 *   deprecatedAt: "2026-11-21",
 *   sunsetAt: "2027-06-30",
 *   afterSunset: "redirect",
 * });
 * const options = { successor: "/v2/songs", maxAge: 300 };
 * const before = Date.parse("2027-06-29T23:59:59Z");
 * assertEquals(refusal(policy, { ...options, now: before }), undefined);
 * assertEquals(refusal(policy, { ...options, now: before + 1000 })?.status, 308);
 * ```
 */
export function refusal(
  policy: Policy,
  { now, maxAge, ...facts }: RefusalOptions,
): Refusal | undefined {
  const moment = momentAt(policy, now);
  const { phase, until } = moment;
  const { successor } = facts;
  const status = brownoutStatusAt(policy, moment);
  if (status !== undefined) return brownoutRefusal(status, until, { policy, ...facts });
  if (phase !== "removed") return undefined;
  if (policy.afterSunset === "redirect" && successor !== undefined) {
    return removalRedirect(308, successor, maxAge);
  }
  return removalRefusal(410, maxAge, { policy, ...facts });
}

/** The facts in the text of a refusal. */
type RefusalFacts = Omit<RefusalOptions, "now" | "maxAge"> & { readonly policy: Policy };

/** Returns the outcome in a brownout that ends at an instant. */
export function brownoutRefusal(
  status: BrownoutStatus,
  until: number,
  facts: RefusalFacts,
): Refusal {
  const end = formatInstant(until);
  const detail = `This path is disabled by a brownout until ${end}, ahead of its removal`;
  // A number of seconds would differ between a GET and a HEAD a second later; a date does not.
  const fields: Field[] = [NO_STORE, ["Retry-After", formatHttpDate(until)]];
  return problemOf("brownout", { status, detail, fields }, facts);
}

/** Returns the outcome after the sunset. */
export function removalRefusal(
  status: 410,
  maxAge: number | undefined,
  facts: RefusalFacts,
): Refusal {
  const detail = `This path was removed at ${formatInstant(facts.policy.sunsetAt as number)}`;
  const fields: Field[] = [["Cache-Control", `${lifetimeOf(maxAge)}, ${NO_TRANSFORM}`]];
  return problemOf("removed", { status, detail, fields }, facts);
}

/** Returns the outcome after the sunset that redirects to a successor. */
export function removalRedirect(
  status: 308,
  successor: string,
  maxAge: number | undefined,
): Refusal {
  const cacheControl: Field = ["Cache-Control", lifetimeOf(maxAge)];
  return { status, fields: [["Location", successor], ["Content-Length", "0"], cacheControl] };
}

function lifetimeOf(maxAge: number | undefined): string {
  return maxAge === undefined ? "no-store" : `max-age=${maxAge}`;
}

function problemOf(
  name: keyof typeof REFUSAL_TYPES,
  { status, detail, fields }: { status: 410 | 503; detail: string; fields: Field[] },
  { policy: { documentation }, successor, problemTypesPage }: RefusalFacts,
): Refusal {
  const kind = problemTypesPage === undefined
    ? { title: status === 410 ? "Gone" : "Service Unavailable" }
    : { type: `${problemTypesPage}#${name}`, title: REFUSAL_TYPES[name].title };
  const problem = { ...kind, status, detail, fields, successor, documentation };
  return { ...problemDetails(problem), status };
}
