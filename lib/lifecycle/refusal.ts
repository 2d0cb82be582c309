/**
 * The answers in a brownout and after the sunset.
 */

import { type Answer, type Field, NO_STORE } from "../http/answer.ts";
import { formatHttpDate } from "../http/http_date.ts";
import { problemAnswer, type ProblemType } from "../http/problem.ts";
import { formatInstant, momentAt, type Policy } from "./policy.ts";

/** The problem types of refusals, by name. */
export const REFUSAL_TYPES = {
  brownout: {
    status: 410,
    title: "Brownout",
    meaning: "The path is temporarily disabled ahead of its removal, until the time in the " +
      "Retry-After field. Move to the successor.",
  },
  removed: {
    status: 410,
    title: "Removed",
    meaning: "The path was permanently removed. Use the successor.",
  },
} as const satisfies Record<string, ProblemType>;

/** What a refusal depends on besides the policy. */
export interface RefusalOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** A URL reference to the resource's replacement, if known; not validated. */
  readonly successor?: string | undefined;
  /** Seconds for which caches may store the answer after the sunset. */
  readonly maxAge: number;
}

/** A refusal: its reason, and the fields to send. */
export interface Refusal {
  /** The first two answer 410, the last 308. */
  readonly reason: "brownout" | "removed" | "redirected";
  /** An explanation for humans. */
  readonly detail: string;
  readonly fields: readonly Field[];
  /** How long the answer stays the same, in milliseconds since the epoch; `Infinity` for ever. */
  readonly freshUntil: number;
}

/** Returns the refusal in a brownout or after the sunset; `undefined` at any other time. */
export function refusalAt(policy: Policy, options: RefusalOptions): Refusal | undefined {
  const { now, successor, maxAge } = options;
  const { phase, until: freshUntil } = momentAt(policy, now);
  const isRedirecting = policy.afterSunset === "redirect" && successor !== undefined;
  if (phase === "brownout") {
    const isLast = freshUntil === policy.sunsetAt && !isRedirecting; // the removal follows
    const purpose = isLast ? "when it is removed" : "ahead of its removal";
    const detail = `Disabled by a brownout until ${formatInstant(freshUntil)}, ${purpose}`;
    // A date, not a number of seconds, so that a HEAD matches a GET sent a second earlier.
    const retry: Field[] = isLast ? [] : [["Retry-After", formatHttpDate(freshUntil)]];
    return { reason: "brownout", detail, fields: [NO_STORE, ...retry], freshUntil };
  }
  if (phase !== "removed") return undefined;

  const detail = `Removed at ${formatInstant(policy.sunsetAt as number)}`;
  const cacheControl: Field = ["Cache-Control", `max-age=${maxAge}`];
  if (!isRedirecting) return { reason: "removed", detail, fields: [cacheControl], freshUntil };
  const fields: Field[] = [["Location", successor], ["Content-Length", "0"], cacheControl];
  return { reason: "redirected", detail, fields, freshUntil };
}

/**
 * Returns the answer in a brownout or after the sunset; `undefined` at any other time.
 *
 * @example Before and after the sunset
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { definePolicy, refusal } from "@media-head/media-head/lifecycle";
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
export function refusal(policy: Policy, options: RefusalOptions): Answer | undefined {
  const refused = refusalAt(policy, options);
  if (refused === undefined) return undefined;
  const { reason, detail, fields, freshUntil } = refused;
  if (reason === "redirected") return { status: 308, fields, freshUntil };
  const { successor } = options;
  const { documentation } = policy;
  return problemAnswer({ status: 410, detail, fields, freshUntil }, { successor, documentation });
}
