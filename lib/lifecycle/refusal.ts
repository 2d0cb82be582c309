/**
 * The answers that take the place of what is retired.
 */

import { type Answer, type Field, NO_STORE } from "../http/answer.ts";
import { formatHttpDate } from "../http/http_date.ts";
import { problemAnswer, type ProblemType } from "../http/problem.ts";
import { formatInstant, momentAt, type Policy } from "./policy.ts";

/** The types of problem that a refusal tells of, by their names. */
export const REFUSAL_TYPES = {
  brownout: {
    status: 410,
    title: "Brownout",
    meaning: "The path is switched off on trial, ahead of its removal, until the time in the " +
      "Retry-After field. Move to the successor.",
  },
  removed: {
    status: 410,
    title: "Removed",
    meaning: "The path was removed for good. Use the successor.",
  },
} as const satisfies Record<string, ProblemType>;

/** What decides an answer in place of what is retired. */
export interface RefusalOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The URL reference of what replaces the very thing asked for, if known; sent as it is. */
  readonly successor?: string | undefined;
  /** Seconds for which caches may keep the final answer. */
  readonly maxAge: number;
}

/** Why something else answers, and what it says. */
export interface Refusal {
  /** The first two are 410, the last is 308. */
  readonly reason: "brownout" | "removed" | "redirected";
  /** For a person. */
  readonly detail: string;
  readonly fields: readonly Field[];
  /** Until when the same is answered, in milliseconds since the epoch; `Infinity` for ever. */
  readonly freshUntil: number;
}

/** Why something else answers, in a brownout and after the sunset; `undefined` while all goes on. */
export function refusalAt(policy: Policy, options: RefusalOptions): Refusal | undefined {
  const { now, successor, maxAge } = options;
  const { phase, until: freshUntil } = momentAt(policy, now);
  const isRedirecting = policy.afterSunset === "redirect" && successor !== undefined;
  if (phase === "brownout") {
    const isLast = freshUntil === policy.sunsetAt && !isRedirecting; // what follows is the removal
    const purpose = isLast ? "when it is removed" : "ahead of its removal";
    const detail = `This is off on trial until ${formatInstant(freshUntil)}, ${purpose}`;
    // A date, not a number of seconds, so that a HEAD says what its GET said a second before.
    const retry: Field[] = isLast ? [] : [["Retry-After", formatHttpDate(freshUntil)]];
    return { reason: "brownout", detail, fields: [NO_STORE, ...retry], freshUntil };
  }
  if (phase !== "removed") return undefined;

  const detail = `This was removed at ${formatInstant(policy.sunsetAt as number)}`;
  const cacheControl: Field = ["Cache-Control", `max-age=${maxAge}`];
  if (!isRedirecting) return { reason: "removed", detail, fields: [cacheControl], freshUntil };
  const fields: Field[] = [["Location", successor], ["Content-Length", "0"], cacheControl];
  return { reason: "redirected", detail, fields, freshUntil };
}

/**
 * The answer in a brownout and after the sunset; `undefined` while all goes on.
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
