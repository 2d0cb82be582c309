/**
 * The retirement notice: what goes, when, and what to use instead. The same facts for programs
 * (JSON, described by {@linkcode Notice}) and for people (`notice_page.ts`).
 */

import { z } from "zod";
import { formatInstant, momentAt, PHASES, type Policy } from "../lifecycle/policy.ts";

const instant = z.iso.datetime();

/** The notice as programs read it. */
export const Notice = z.object({
  phase: z.enum(PHASES)
    .describe("The state right now"),
  phaseEndsAt: instant.nullable()
    .describe("When the next phase begins; null when none is to follow"),
  deprecatedAt: instant.describe("Since when, or from when, the endpoints are deprecated"),
  sunsetAt: instant.nullable()
    .describe("When the endpoints are removed; null while no date is set"),
  brownouts: z.array(z.object({ start: instant, end: instant }))
    .describe("When the endpoints answer 410 on trial, ahead of the removal"),
  afterSunset: z.enum(["gone", "redirect"])
    .describe("What answers after the sunset: 410, or 308 to the successor"),
  endpoints: z.array(z.object({
    path: z.string().describe("A deprecated path"),
    methods: z.array(z.string()),
    successor: z.string().describe("The path to use instead"),
  })),
});

/** The notice as programs read it. */
export type Notice = z.infer<typeof Notice>;

/** What is retired, and what replaces it. */
export type RetiredEndpoint = Notice["endpoints"][number];

/**
 * The notice at an instant.
 *
 * @param now Milliseconds since the epoch.
 */
export function noticeAt(policy: Policy, endpoints: RetiredEndpoint[], now: number): Notice {
  const { phase, until } = momentAt(policy, now);
  const { deprecatedAt, sunsetAt, brownouts, afterSunset } = policy;
  return {
    phase,
    phaseEndsAt: until === Infinity ? null : formatInstant(until),
    deprecatedAt: formatInstant(deprecatedAt),
    sunsetAt: sunsetAt === undefined ? null : formatInstant(sunsetAt),
    brownouts: brownouts.map(({ start, end }) => ({
      start: formatInstant(start),
      end: formatInstant(end),
    })),
    afterSunset,
    endpoints,
  };
}
