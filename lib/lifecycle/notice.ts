/** The facts of a retirement: the endpoints, their policies, and their replacements. */

import { formatInstant } from "../http/timestamp.ts";
import { notableHolds } from "./hold.ts";
import {
  type AfterSunset,
  type BrownoutStatus,
  momentAt,
  type Phase,
  type Policy,
  type PolicyHold,
} from "./policy.ts";

/** A hold, and what it called off, with dates in ISO 8601. */
interface AnnouncedHold {
  readonly start: string;
  readonly end: string;
  readonly because: string;
  /** The brownouts, or the parts of them, that the hold called off. */
  readonly brownouts: readonly { readonly start: string; readonly end: string }[];
  /** The sunset that the hold moved to its end; null if it moved none. */
  readonly sunsetAt: string | null;
}

/** What a policy announces, with dates in ISO 8601. */
interface Announced {
  readonly phase: Phase;
  /** When the next phase begins; null if this one is the last. */
  readonly phaseEndsAt: string | null;
  readonly deprecatedAt: string;
  /** When the endpoint is removed; null while no date is set. */
  readonly sunsetAt: string | null;
  readonly brownouts: readonly {
    readonly start: string;
    readonly end: string;
    readonly status: BrownoutStatus;
  }[];
  readonly brownoutStatus: BrownoutStatus;
  readonly afterSunset: AfterSunset;
  /** The holds that last, or that called something off. The dates above are those under the holds. */
  readonly holds: readonly AnnouncedHold[];
}

/** A retired endpoint, with its replacement, if any. */
interface RetiredEndpoint {
  readonly path: string;
  readonly methods: readonly string[];
  readonly successor?: string;
}

/** The members that a notice has in any case. */
type Phased = "phase" | "phaseEndsAt";

/**
 * The common policy, as far as there are endpoints. Without any, only the phase is left: they were
 * removed.
 */
export interface Notice extends Pick<Announced, Phased>, Partial<Omit<Announced, Phased>> {
  /** A `mailto:` or `https:` URL. */
  readonly contact: string | null;
  /** Each endpoint, with what its own policy announces. */
  readonly endpoints: readonly (RetiredEndpoint & Announced)[];
}

/** What is left to say once the routes were deleted. */
const REMOVED = { phase: "removed", phaseEndsAt: null } as const;

/**
 * Returns the notice at an instant.
 *
 * @param policy The common policy. If no endpoint has it, the first endpoint's policy replaces it.
 * @param endpoints The endpoints, each with its policy.
 * @param options The instant, `now`, in milliseconds since the epoch, and the URL of the operator's
 *   contact, if any.
 */
export function noticeAt(
  policy: Policy,
  endpoints: readonly (RetiredEndpoint & { readonly policy: Policy })[],
  { now, contact }: { readonly now: number; readonly contact?: string | undefined },
): Notice {
  const isCommon = endpoints.some((endpoint) => endpoint.policy === policy);
  const common = isCommon ? policy : endpoints[0]?.policy ?? policy;
  return {
    ...endpoints.length > 0 ? announcedBy(common, now) : REMOVED,
    contact: contact ?? null,
    endpoints: endpoints.map(({ policy, ...endpoint }) => {
      return { ...endpoint, ...announcedBy(policy, now) };
    }),
  };
}

/** A notice of one endpoint, with what the endpoint's policy announces. */
export type EndpointNotice = Notice & Announced;

/** Splits a notice into a notice for each endpoint. */
export function noticesOf({ endpoints, ...common }: Notice): EndpointNotice[] {
  return endpoints.map((endpoint) => ({ ...common, ...endpoint, endpoints: [endpoint] }));
}

/** Returns what a policy announces at an instant. */
export function announcedBy(policy: Policy, now: number): Announced {
  const { deprecatedAt, sunsetAt, brownouts, brownoutStatus, afterSunset } = policy;
  const { phase, until } = momentAt(policy, now);
  return {
    phase,
    phaseEndsAt: until === Infinity ? null : formatInstant(until),
    deprecatedAt: formatInstant(deprecatedAt),
    sunsetAt: sunsetAt === undefined ? null : formatInstant(sunsetAt),
    brownouts: brownouts.map(({ start, end, status }) => ({
      start: formatInstant(start),
      end: formatInstant(end),
      status,
    })),
    brownoutStatus,
    afterSunset,
    holds: notableHolds(policy, now).map(announcedHold),
  };
}

function announcedHold({ start, end, because, brownouts, sunsetAt }: PolicyHold): AnnouncedHold {
  return {
    start: formatInstant(start),
    end: formatInstant(end),
    because,
    brownouts: brownouts.map(({ start, end }) => {
      return { start: formatInstant(start), end: formatInstant(end) };
    }),
    sunsetAt: sunsetAt === undefined ? null : formatInstant(sunsetAt),
  };
}
