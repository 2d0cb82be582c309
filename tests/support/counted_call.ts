/** One call, as answered, counted and recorded. */

import type { ResponseClass, UsageMeter } from "../../lib/usage/record/meter.ts";

export const NOON = Date.parse("2027-02-01T12:00:00Z");
export const DAY = 86_400_000;

/** The process of every session. */
export const PROCESS = { machine: "web-1", pid: 4711, started: NOON - DAY } as const;

/** An answer of a deprecated route, with everything that a meter distinguishes. */
export const ANSWER = {
  route: "/audio/:token",
  policy: { brownouts: [] },
  method: "HEAD",
  moment: { phase: "deprecated", until: Infinity },
  status: 200,
  breaks: true,
} as const satisfies ResponseClass;

/** What a ledger counts it under, without the client. */
export const COUNT = {
  route: "/audio/:token",
  method: "HEAD",
  phase: "deprecated",
  brownout: "",
  status: "2xx",
  impact: "breaking",
  release: "",
} as const;

/** Counts one call: the answer above with some changes. */
export function countOne(
  meter: UsageMeter,
  { userAgent, ...answer }: Partial<ResponseClass> & { userAgent: string | null },
  fields: Record<string, string> = {},
): void {
  const headers = new Headers(fields);
  if (userAgent !== null) headers.set("User-Agent", userAgent);
  meter.counterFor({ ...ANSWER, ...answer }).count(headers);
}
