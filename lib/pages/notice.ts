/** The facts of a retirement: the endpoints, their dates, and their replacements. */

import { formatInstant } from "../http/timestamp.ts";
import {
  type AfterSunset,
  type BrownoutStatus,
  type Moment,
  momentAt,
  type Phase,
  type Policy,
} from "../lifecycle/policy.ts";

/** The dates of an endpoint's retirement, in ISO 8601. */
interface NoticeDates {
  readonly phase: Phase;
  /** When the next phase begins; null if this one is the last. */
  readonly phaseEndsAt: string | null;
  readonly deprecatedAt: string;
  /** When the endpoint is removed; null while no date is set. */
  readonly sunsetAt: string | null;
  readonly brownouts: readonly { readonly start: string; readonly end: string }[];
}

/** A retired endpoint, with its replacement, if any. */
interface RetiredEndpoint {
  readonly path: string;
  readonly methods: readonly string[];
  readonly successor?: string;
}

export interface Notice extends NoticeDates {
  /** Left out if there are no endpoints, like the next member. */
  readonly brownoutStatus?: BrownoutStatus;
  readonly afterSunset?: AfterSunset;
  /** A `mailto:` or `https:` URL. */
  readonly contact: string | null;
  /** Each endpoint, with its own dates. */
  readonly endpoints: readonly (RetiredEndpoint & NoticeDates)[];
}

/**
 * Returns the notice at an instant.
 *
 * @param policy The common policy. If no endpoint has it, the first endpoint's policy replaces it.
 * @param endpoints The endpoints. Those without a policy of their own have the common one.
 * @param options The instant, `now`, in milliseconds since the epoch, and the URL of the operator's
 *   contact, if any.
 */
export function noticeAt(
  policy: Policy,
  endpoints: readonly (RetiredEndpoint & { readonly policy?: Policy })[],
  { now, contact }: { readonly now: number; readonly contact?: string | undefined },
): Notice {
  const policies = endpoints.map((endpoint) => endpoint.policy ?? policy);
  const common = policies.includes(policy) ? policy : policies[0] ?? policy;
  const isOver = endpoints.length === 0; // the routes were deleted
  const moment: Moment = isOver ? { phase: "removed", until: Infinity } : momentAt(common, now);
  return {
    ...datesOf(common, moment),
    ...isOver ? {} : { brownoutStatus: policy.brownoutStatus, afterSunset: policy.afterSunset },
    contact: contact ?? null,
    endpoints: endpoints.map(({ policy: endpointPolicy = policy, ...endpoint }) => {
      return { ...endpoint, ...datesOf(endpointPolicy, momentAt(endpointPolicy, now)) };
    }),
  };
}

/** Splits a notice into a notice for each endpoint, with the endpoint's dates. */
export function noticesOf({ endpoints, ...common }: Notice): Notice[] {
  return endpoints.map((endpoint) => ({ ...common, ...endpoint, endpoints: [endpoint] }));
}

/** Returns the dates of a policy, as the notice has them, at a moment. */
export function datesOf(
  { deprecatedAt, sunsetAt, brownouts }: Policy,
  { phase, until }: Moment,
): NoticeDates {
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
