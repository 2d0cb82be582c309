/** One call, as answered, counted and recorded. */

import type { AnswerClass } from "../../lib/server/counting.ts";
import type { UsageMeter } from "../../lib/usage/meter.ts";

export const NOON = Date.parse("2027-02-01T12:00:00Z");
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** An answer of a deprecated route, with everything that a meter distinguishes. */
export const ANSWER = {
  route: "/audio/:token",
  method: "HEAD",
  phase: "deprecated",
  status: 200,
  hasToken: true,
} as const;

/** Its row in the ledger, without the client and times. */
export const ROW = {
  day: "2027-02-01",
  route: "/audio/:token",
  method: "HEAD",
  phase: "deprecated",
  status: "2xx",
  impact: "breaking",
} as const;

/** Counts one call: the answer above with some changes. */
export function countOne(
  meter: UsageMeter,
  { userAgent, ...answer }: Partial<AnswerClass> & { userAgent: string | null },
  now: number,
): void {
  const fields = new Headers(userAgent === null ? {} : { "User-Agent": userAgent });
  meter.counterOf({ ...ANSWER, ...answer }).count(fields, now);
}
