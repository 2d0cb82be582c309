/** The retirement notice for programs: the schema of its JSON. */

import { z } from "zod";
import type { Notice } from "../lifecycle/notice.ts";
import { PHASES } from "../lifecycle/policy.ts";

const INSTANT = z.iso.datetime();

const STATUS = z.union([z.literal(503), z.literal(410)]);

const HOLD = z.object({
  start: INSTANT,
  end: INSTANT,
  because: z.string().describe("The operator's reason"),
  brownouts: z.array(z.object({ start: INSTANT, end: INSTANT }))
    .describe("The brownouts that it called off, or the parts of them"),
  sunsetAt: INSTANT.nullable().describe("The sunset that it moved to its end; null for none"),
});

/** What an endpoint's policy announces. */
const ANNOUNCED = z.object({
  phase: z.enum(PHASES).describe("The current phase"),
  phaseEndsAt: INSTANT.nullable().describe("When the next phase begins; null if none follows"),
  deprecatedAt: INSTANT.describe("When the deprecation starts"),
  sunsetAt: INSTANT.nullable()
    .describe("When the endpoints are removed; null while no date is set"),
  brownouts: z.array(z.object({ start: INSTANT, end: INSTANT, status: STATUS }))
    .describe("When the endpoints are temporarily disabled, ahead of the removal, and the status"),
  brownoutStatus: STATUS.describe("The status in a brownout that has none of its own"),
  afterSunset: z.enum(["gone", "redirect"])
    .describe("The answer after the sunset: 410, or 308 to the successor"),
  holds: z.array(HOLD)
    .describe("Each called brownouts off, or put the sunset off; the dates are those left"),
});
const { deprecatedAt, sunsetAt, brownouts, brownoutStatus, afterSunset, holds } = ANNOUNCED.shape;

export const NOTICE = ANNOUNCED.extend({
  deprecatedAt: deprecatedAt.exactOptional(),
  sunsetAt: sunsetAt.exactOptional(),
  brownouts: brownouts.exactOptional(),
  brownoutStatus: brownoutStatus.exactOptional(),
  afterSunset: afterSunset.exactOptional(),
  holds: holds.exactOptional(),
  contact: z.url().nullable()
    .describe("Where to reach the operator, a mailto: or https: URL; null if not stated"),
  endpoints: z.array(z.object({
    path: z.string().describe("A deprecated path"),
    methods: z.array(z.string()),
    successor: z.string().describe("The path to use instead"),
    ...ANNOUNCED.shape,
  })),
}) satisfies z.ZodType<Notice>;
