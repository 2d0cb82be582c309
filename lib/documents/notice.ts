/**
 * The retirement notice: what is removed, when, and what replaces it. The same facts for programs
 * (JSON, as {@linkcode Notice}) and for people (`notice_page.ts`).
 */

import { z } from "zod";
import { formatInstant, momentAt, PHASES, type Policy } from "../lifecycle/policy.ts";

const instant = z.iso.datetime();

/** The schema of the notice as JSON. */
export const Notice = z.object({
  phase: z.enum(PHASES)
    .describe("The current phase"),
  phaseEndsAt: instant.nullable()
    .describe("When the next phase begins; null if none follows"),
  deprecatedAt: instant.describe("When the deprecation starts"),
  sunsetAt: instant.nullable()
    .describe("When the endpoints are removed; null while no date is set"),
  brownouts: z.array(z.object({ start: instant, end: instant }))
    .describe("When the endpoints are temporarily disabled, ahead of the removal"),
  brownoutStatus: z.union([z.literal(503), z.literal(410)])
    .describe("The status in a brownout"),
  afterSunset: z.enum(["gone", "redirect"])
    .describe("The answer after the sunset: 410, or 308 to the successor"),
  endpoints: z.array(z.object({
    path: z.string().describe("A deprecated path"),
    methods: z.array(z.string()),
    successor: z.string().describe("The path to use instead"),
  })),
});

/** The notice as JSON. */
export type Notice = z.infer<typeof Notice>;

/** A retired endpoint, and its replacement. */
export type RetiredEndpoint = Notice["endpoints"][number];

/**
 * Returns the notice at an instant.
 *
 * @param now Milliseconds since the epoch.
 */
export function noticeAt(policy: Policy, endpoints: RetiredEndpoint[], now: number): Notice {
  const { phase, until } = endpoints.length === 0
    ? { phase: "removed" as const, until: Infinity } // even their routes
    : momentAt(policy, now);
  const { deprecatedAt, sunsetAt, brownouts, brownoutStatus, afterSunset } = policy;
  return {
    phase,
    phaseEndsAt: until === Infinity ? null : formatInstant(until),
    deprecatedAt: formatInstant(deprecatedAt),
    sunsetAt: sunsetAt === undefined ? null : formatInstant(sunsetAt),
    brownouts: brownouts.map(({ start, end }) => ({
      start: formatInstant(start),
      end: formatInstant(end),
    })),
    brownoutStatus,
    afterSunset,
    endpoints,
  };
}
