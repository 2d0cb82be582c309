/**
 * The retirement notice: what is removed, when, and what replaces it. The same facts for programs
 * (JSON, as {@linkcode Notice}) and for people (`notice_page.ts`).
 */

import { z } from "zod";
import { formatInstant, type Moment, momentAt, PHASES, type Policy } from "../lifecycle/policy.ts";

const instant = z.iso.datetime();

/** When an endpoint is retired. */
const Dates = z.object({
  phase: z.enum(PHASES).describe("The current phase"),
  phaseEndsAt: instant.nullable().describe("When the next phase begins; null if none follows"),
  deprecatedAt: instant.describe("When the deprecation starts"),
  sunsetAt: instant.nullable()
    .describe("When the endpoints are removed; null while no date is set"),
  brownouts: z.array(z.object({ start: instant, end: instant }))
    .describe("When the endpoints are temporarily disabled, ahead of the removal"),
});

export const Notice = Dates.extend({
  brownoutStatus: z.union([z.literal(503), z.literal(410)]).exactOptional()
    .describe("The status in a brownout; left out without endpoints"),
  afterSunset: z.enum(["gone", "redirect"]).exactOptional()
    .describe(
      "The answer after the sunset: 410, or 308 to the successor; left out without endpoints",
    ),
  contact: z.url().nullable()
    .describe("Where to reach the operator, a mailto: or https: URL; null if not stated"),
  endpoints: z.array(z.object({
    path: z.string().describe("A deprecated path"),
    methods: z.array(z.string()),
    successor: z.string().describe("The path to use instead"),
    ...Dates.partial().shape, // if they differ from the common ones
    phase: Dates.shape.phase, // always
  })),
});

export type Notice = z.infer<typeof Notice>;

/** A retired endpoint, and its replacement. */
export type RetiredEndpoint = Pick<Notice["endpoints"][number], "path" | "methods" | "successor">;

/**
 * Returns the notice at an instant.
 *
 * @param policy The common policy. If no endpoint has it, that of the first one takes its place.
 * @param endpoints The endpoints, with their own policies where they have one.
 * @param options The instant, `now`, in milliseconds since the epoch; and the URL at which to contact
 *   the operator, if there is one.
 */
export function noticeAt(
  policy: Policy,
  endpoints: readonly (RetiredEndpoint & { readonly policy?: Policy })[],
  { now, contact }: { readonly now: number; readonly contact?: string | undefined },
): Notice {
  const policies = endpoints.map(({ policy: own = policy }) => own);
  const common = policies.includes(policy) ? policy : policies[0] ?? policy;
  const isOver = endpoints.length === 0; // their routes were deleted
  const moment: Moment = isOver ? { phase: "removed", until: Infinity } : momentAt(common, now);
  return {
    ...datesOf(common, moment),
    ...isOver ? {} : { brownoutStatus: policy.brownoutStatus, afterSunset: policy.afterSunset },
    contact: contact ?? null,
    endpoints: endpoints.map(({ policy: own = policy, ...endpoint }) => {
      const dates = datesOf(own, momentAt(own, now));
      return { ...endpoint, ...own === common ? { phase: dates.phase } : dates };
    }),
  };
}

/** Splits a notice into one for each endpoint, with its own dates. */
export function noticesOf({ endpoints, ...common }: Notice): Notice[] {
  return endpoints.map((own) => ({ ...common, ...own, endpoints: [own] }) as Notice);
}

function datesOf(
  { deprecatedAt, sunsetAt, brownouts }: Policy,
  { phase, until }: Moment,
): z.infer<typeof Dates> {
  return {
    phase,
    phaseEndsAt: until === Infinity ? null : formatInstant(until),
    deprecatedAt: formatInstant(deprecatedAt),
    sunsetAt: sunsetAt === undefined ? null : formatInstant(sunsetAt),
    brownouts: brownouts.map(({ start, end }) => ({
      start: formatInstant(start),
      end: formatInstant(end),
    })),
  };
}
