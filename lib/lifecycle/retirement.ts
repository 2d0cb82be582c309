/** How a policy applies to a request, whichever kind of server handles it. */

import { clientOf } from "../http/client_name.ts";
import { CORS_FIELDS } from "../http/cors.ts";
import type { Field } from "../http/outcome.ts";
import { announcementFields } from "./announcement.ts";
import { limitFreshness } from "./freshness.ts";
import { attempt, type LifecycleOptions, type RequestHead, requireOptions } from "./options.ts";
import { momentAt, type Policy } from "./policy.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { successorOf } from "./successor.ts";

/** How a policy applies to one request. */
export interface Retirement {
  /** The refusal to send, if any, with the fields of `refusalFields`. */
  readonly refused: Refusal | undefined;
  /**
   * Returns the fields to set on a response when its head is sent. Setting them twice is harmless.
   *
   * @param fields All fields of the response, each but Set-Cookie at most once.
   */
  announce(fields: readonly Field[]): Field[];
  /** Counts the call by the status of its response. */
  count(status: number): void;
}

/** Statuses of calls that removal does not break, because they fail anyway. */
const FAILED = new Set([400, 404, 405, 410]);

/** Fields to expose to pages besides those that the handler exposes (Fetch standard §3.3.3). */
const EXPOSED = ["Deprecation", "Link", "Retry-After", "Sunset"];

/**
 * Returns a function that applies a policy to a request.
 *
 * @throws {TypeError} If the policy is not from `definePolicy()`, or an option is not valid.
 */
export function retirementOf<Incoming extends RequestHead, Rest extends readonly unknown[]>(
  policy: Policy,
  options: LifecycleOptions<Incoming, Rest>,
): (request: Incoming, ...rest: Rest) => Retirement {
  if (!Number.isFinite(policy.deprecatedAt)) {
    const got = JSON.stringify(policy.deprecatedAt);
    throw new TypeError(`policy: expected the result of definePolicy(), got deprecatedAt ${got}`);
  }
  requireOptions(options);
  const { applies = ({ method }) => method !== "OPTIONS", maxAge = 300, route, onCount } = options;
  const { refusalFields = () => CORS_FIELDS, clock = () => Date.now() } = options;
  const nameSuccessor = successorOf(options);
  const readClock = () => attempt("clock", clock) ?? Date.now();

  return (request, ...rest) => {
    const start = readClock();
    const { phase, until } = momentAt(policy, start);
    const successor = nameSuccessor(request);
    const isSubject = attempt("applies", () => applies(request)) ?? false;
    const refused = isSubject ? refusal(policy, { now: start, successor, maxAge }) : undefined;
    // Before the handler, since nothing can be read of a request after its upgrade to a WebSocket.
    const caller = onCount && {
      route: attempt("route", () => route?.(request)),
      client: clientOf(request.headers.get("user-agent")),
    };
    return {
      refused: refused && {
        ...refused,
        fields: [...refused.fields, ...validFields(() => refusalFields(request))],
      },
      announce: (fields) => [
        ...announce(fields, announcementFields(policy, successor)),
        ...limitFreshness(fields, { until, now: readClock() }).fields
          .filter(([, value], index) => value !== fields[index]?.[1]),
      ],
      count(status) {
        const breaks = isSubject && (refused !== undefined || !FAILED.has(status));
        if (!caller) return;
        attempt("onCount", () => onCount?.({ ...caller, phase, status, breaks }, request, ...rest));
      },
    };
  };
}

/** Returns what the option `refusalFields` gives, or nothing if it cannot be sent. */
function validFields(get: () => Iterable<Field>): Field[] {
  const given = attempt("refusalFields", get) ?? [];
  return attempt("refusalFields", () => [...new Headers([...given])]) ?? [];
}

/** Returns the announcement, with its lists added to those that the response has. */
function announce(fields: readonly Field[], announcement: readonly Field[]): Field[] {
  const valueOf = (name: string) => fields.find((field) => field[0].toLowerCase() === name)?.[1];
  const exposed = withMembers(valueOf("access-control-expose-headers"), EXPOSED);
  return [
    ...announcement.map(([name, value]): Field =>
      name === "Link" ? [name, withMembers(valueOf("link"), value.split(", "))] : [name, value]
    ),
    ["Access-Control-Expose-Headers", exposed],
  ];
}

/** Adds the members to a list (RFC 9110 §5.6.1) that it does not have yet. */
function withMembers(list: string | undefined, members: readonly string[]): string {
  const missing = members.filter((member) => !`, ${list},`.includes(`, ${member},`));
  return (list ? [list, ...missing] : missing).join(", ");
}
