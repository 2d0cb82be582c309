/** The outcomes in a brownout and after the sunset. */

import { formatHttpDate } from "../http/http_date.ts";
import { type Field, NO_STORE, type Outcome } from "../http/outcome.ts";
import { problemDetails, type ProblemType } from "../http/problem.ts";
import { formatInstant, type Moment, momentAt, type Policy } from "./policy.ts";

/** The problem types of refusals, by name. */
export const REFUSAL_TYPES = {
  brownout: {
    status: 503,
    title: "Brownout",
    meaning: "The path is temporarily disabled ahead of its removal, until the date in the " +
      "Retry-After field. Move to the successor.",
  },
  removed: {
    status: 410,
    title: "Removed",
    meaning: "The date in the Sunset field has passed: the path was removed. Use the successor.",
  },
} as const satisfies Record<string, ProblemType>;

/** What a refusal depends on besides the policy. */
export interface RefusalOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** A URL reference to the resource's replacement, if it is known. It is not validated. */
  readonly successor?: string | undefined;
  /** Seconds for which caches may store the response after the sunset. */
  readonly maxAge: number;
  /**
   * A URL reference to the page that explains the problem types at the fragments `#brownout` and
   * `#removed`. If left out, the type is "about:blank".
   */
  readonly problemTypesPage?: string;
}

/** A refusal, to be sent instead of what was requested. */
export interface Refusal extends Outcome {
  /**
   * 503 in a brownout, or 410 if the policy's `brownoutStatus` says so; after the sunset 410, or 308
   * to the successor.
   */
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
  { now, ...options }: RefusalOptions,
): Refusal | undefined {
  return refusalIn(momentAt(policy, now), policy, options);
}

/** Does the same as {@linkcode refusal} for a caller that already knows the phase. */
export function refusalIn(
  { phase, until }: Moment,
  { documentation, brownoutStatus, afterSunset, sunsetAt }: Policy,
  { successor, maxAge, problemTypesPage }: Omit<RefusalOptions, "now">,
): Refusal | undefined {
  if (phase !== "brownout" && phase !== "removed") return undefined;
  const isBrownout = phase === "brownout";
  const cacheControl: Field = isBrownout ? NO_STORE : ["Cache-Control", `max-age=${maxAge}`];
  if (!isBrownout && afterSunset === "redirect" && successor !== undefined) {
    const fields: Field[] = [["Location", successor], ["Content-Length", "0"], cacheControl];
    return { status: 308, fields };
  }
  const status = isBrownout ? brownoutStatus : 410;
  const detail = isBrownout
    ? `Disabled by a brownout until ${formatInstant(until)}, ahead of its removal`
    : `Removed at ${formatInstant(sunsetAt as number)}`;
  // A date and not a number of seconds, so that a HEAD has the same value as a GET a second
  // earlier.
  const retryAfter: Field[] = isBrownout ? [["Retry-After", formatHttpDate(until)]] : [];
  const kind = problemTypesPage === undefined
    ? { title: status === 410 ? "Gone" : "Service Unavailable" }
    : { type: `${problemTypesPage}#${phase}`, title: REFUSAL_TYPES[phase].title };
  const fields = [cacheControl, ...retryAfter];
  const problem = { ...kind, status, detail, fields, successor, documentation };
  return { ...problemDetails(problem), status };
}

/** Statuses of calls that fail anyway. */
const FAILED = new Set([400, 404, 405, 410]);

/** Returns whether the removal breaks a call, because it was refused or would not fail anyway. */
export function isBreaking({ status, isRefused }: { status: number; isRefused: boolean }): boolean {
  return isRefused || !FAILED.has(status);
}
