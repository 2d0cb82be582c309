/**
 * The answers that take the place of what is retired.
 */

import type { Answer, Field } from "../http/answer.ts";
import { formatHttpDate } from "../http/http_date.ts";
import { problem } from "../http/problem.ts";
import { formatInstant, momentAt, type Policy } from "./policy.ts";

/** What decides an answer in place of what is retired. */
export interface RefusalOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The URL reference of what replaces the very thing asked for, if known. */
  readonly successor?: string | undefined;
  /** Seconds for which caches may keep the final answer. */
  readonly maxAge: number;
}

/** The answer in a brownout and after the sunset; `undefined` while all goes on. */
export function refusal(policy: Policy, options: RefusalOptions): Answer | undefined {
  const { now, successor, maxAge } = options;
  const { phase, until } = momentAt(policy, now);
  if (phase === "brownout") {
    const detail = `This is off on trial until ${formatInstant(until)}, ahead of its removal`;
    // A date, not a number of seconds, so that a HEAD says what its GET said a second before.
    const retry: Field = ["Retry-After", formatHttpDate(until)];
    return problem(410, { detail, fields: [retry], freshUntil: until });
  }
  if (phase !== "removed") return undefined;

  const cacheControl: Field = ["Cache-Control", `max-age=${maxAge}`];
  if (policy.afterSunset === "redirect" && successor !== undefined) {
    const fields: Field[] = [["Location", successor], ["Content-Length", "0"], cacheControl];
    return { status: 308, fields, freshUntil: until };
  }
  const detail = `This was removed at ${formatInstant(policy.sunsetAt as number)}`;
  return problem(410, { detail, cacheControl, freshUntil: until });
}
