/** The retirement policy, and its phases. */

import type { Interval } from "./instant.ts";

/** The response after the sunset: `gone` is 410, `redirect` is 308 to the successor. */
export type AfterSunset = "gone" | "redirect";

/** The status in a brownout: 503 for a temporary condition, or 410 as after the removal. */
export type BrownoutStatus = 503 | 410;

/** A trial removal. */
export interface Brownout extends Interval {
  /** The status of the responses meanwhile. */
  readonly status: BrownoutStatus;
}

/** A hold on a policy, and what it called off: see {@linkcode Policy.holds}. */
export interface PolicyHold extends Interval {
  /** The operator's reason. */
  readonly because: string;
  /** The brownouts, or the parts of them, that it called off. */
  readonly brownouts: readonly Interval[];
  /** The sunset that it moved to its end; `undefined` if it moved none. */
  readonly sunsetAt: number | undefined;
}

/** A valid policy. Instants are milliseconds since the epoch, in whole seconds. */
export interface Policy {
  /** When the deprecation begins or began. */
  readonly deprecatedAt: number;
  /** When the endpoint is removed; `undefined` while no date is set. */
  readonly sunsetAt: number | undefined;
  /** Trial removals, in chronological order. Two that adjoin have different statuses. */
  readonly brownouts: readonly Brownout[];
  /** The status in a brownout that has none of its own. */
  readonly brownoutStatus: BrownoutStatus;
  /** The response after the sunset. */
  readonly afterSunset: AfterSunset;
  /** A page that explains the retirement: an absolute path, or an `https:` URL. */
  readonly documentation: string | undefined;
  /**
   * The holds that made this policy of the one in the configuration, in chronological order; left out
   * if there are none. The dates above are those under the holds.
   */
  readonly holds?: readonly PolicyHold[] | undefined;
}

/** The policy of each deprecated route, by the route's name: its path on the media server. */
export type RoutePolicies = Readonly<Record<string, Policy>>;

/** A phase: before the deprecation, deprecated, in a brownout, or after the sunset. */
export type Phase = "announced" | "deprecated" | "brownout" | "removed";

/** Every {@linkcode Phase}, in chronological order. */
export const PHASES = ["announced", "deprecated", "brownout", "removed"] as const satisfies Phase[];

/** The phase at an instant. */
export interface Moment {
  /** The phase at that instant. */
  readonly phase: Phase;
  /**
   * When the next phase, or another brownout, begins, in milliseconds since the epoch; `Infinity` if
   * none follows.
   */
  readonly until: number;
}

/** Returns the status of the brownout at a moment; `undefined` at any other. */
export function brownoutStatusAt(
  { brownouts }: Policy,
  { phase, until }: Moment,
): BrownoutStatus | undefined {
  return phase === "brownout" ? brownouts.find(({ end }) => end === until)?.status : undefined;
}

/**
 * Returns the phase at an instant (milliseconds since the epoch), and when it ends.
 *
 * @example The phase of an instant
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { definePolicy, momentAt } from "@media-head/lifecycle";
 *
 * const policy = definePolicy({ deprecatedAt: "2026-11-21", sunsetAt: "2027-06-30" });
 * const moment = momentAt(policy, Date.parse("2027-01-01T00:00:00Z"));
 * assertEquals(moment, { phase: "deprecated", until: Date.parse("2027-06-30T00:00:00Z") });
 * ```
 */
export function momentAt({ deprecatedAt, sunsetAt, brownouts }: Policy, instant: number): Moment {
  if (sunsetAt !== undefined && instant >= sunsetAt) return { phase: "removed", until: Infinity };
  if (instant < deprecatedAt) return { phase: "announced", until: deprecatedAt };
  const next = brownouts.find(({ end }) => instant < end);
  if (next === undefined) return { phase: "deprecated", until: sunsetAt ?? Infinity };
  if (instant >= next.start) return { phase: "brownout", until: next.end };
  return { phase: "deprecated", until: next.start };
}

/**
 * Returns when the phase of any route changes next, in milliseconds since the epoch; `Infinity` for
 * never.
 *
 * @param instant Milliseconds since the epoch.
 */
export function nextChange(policies: RoutePolicies, instant: number): number {
  return Math.min(...Object.values(policies).map((policy) => momentAt(policy, instant).until));
}
