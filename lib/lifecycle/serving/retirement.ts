/** The application of a policy to requests, for every kind of server. */

import { CORS_FIELDS } from "../../http/cors.ts";
import { parseHttpDate } from "../../http/http_date.ts";
import type { Field } from "../../http/outcome.ts";
import { productOf } from "../../http/user_agent.ts";
import { announcementFields } from "../announcement.ts";
import { CHECK_CLIENT, isBreaking } from "../breaking.ts";
import { limitFreshness } from "../freshness.ts";
import { mismatch } from "../mismatch.ts";
import { momentAt, type Policy } from "../policy.ts";
import { type Refusal, refusal } from "../refusal.ts";
import { attempt, requireOptions } from "./options.ts";
import type { LifecycleOptions, RequestHead } from "./options.ts";
import { successorOf } from "./successor.ts";

/** How a policy applies to one request. */
interface Retirement {
  /** The refusal to send, with the fields of `refusalFields`; `undefined` to serve the request. */
  readonly refused: Refusal | undefined;
  /**
   * Returns the fields to set on a response when its head is sent. Setting them twice is harmless.
   *
   * @param fields All fields of the response, each but Set-Cookie at most once.
   * @param status The status of the response.
   */
  announce(fields: readonly Field[], status: number): Field[];
  /**
   * Counts the call, once. The status is that of its response, or 0 if the client disconnected
   * first; `undefined` if nobody counts.
   */
  readonly count: ((status: number) => void) | undefined;
}

/** Fields to expose to pages in addition to the handler's own (Fetch standard §3.3.3). */
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
  if (!Number.isFinite(policy?.deprecatedAt)) { // callers may not use TypeScript
    throw new TypeError(mismatch("policy", policy, "the result of definePolicy()"));
  }
  requireOptions(options);
  const { applies = ({ method }) => method !== "OPTIONS", maxAge = 300, route, onCount } = options;
  const { refusalFields = () => CORS_FIELDS, clock = () => Date.now() } = options;
  const nameSuccessor = successorOf(options);
  const readClock = () => attempt("clock", clock) ?? Date.now();

  return (request, ...rest) => {
    const start = readClock();
    const moment = momentAt(policy, start);
    const { until } = moment;
    const successor = nameSuccessor(request);
    const mayRefuse = attempt("applies", () => applies(request)) ?? false;
    const refused = mayRefuse ? refusal(policy, { now: start, successor, maxAge }) : undefined;
    // Read before the handler runs, because nothing can be read after an upgrade to a WebSocket.
    const { method, headers } = request;
    const isAuthorized = until !== Infinity && headers.has("authorization");
    const caller = onCount && {
      route: attempt("route", () => route?.(request)),
      client: productOf(headers.get("user-agent")).name,
    };
    if (caller && headers.has("upgrade")) Array.from(headers); // Deno keeps what was read, for onCount
    const given = refused && attempt("refusalFields", () => refusalFields(request));
    let isCounted = false;
    return {
      refused: refused && withFields(refused, given),
      announce: (fields, status) => [
        ...announce(fields, policy, { successor, now: start }),
        ...limitFreshness(fields, { until, now: readClock(), method, status, isAuthorized })
          .filter(([, value], index) => value !== fields[index]?.[1]),
      ],
      count: caller && ((status) => {
        if (isCounted) return;
        isCounted = true;
        const breaks = caller.client !== CHECK_CLIENT &&
          isBreaking({ method, status, isRefused: refused !== undefined });
        const call = { ...caller, ...moment, status, breaks };
        attempt("onCount", () => onCount?.(call, request, ...rest));
      }),
    };
  };
}

/** Adds the fields of `refusalFields`, in place of others of the same name, if all are valid. */
function withFields(refused: Refusal, given: Iterable<Field> = []): Refusal {
  const added = attempt("refusalFields", () => new Headers([...given])) ?? new Headers();
  const others = refused.fields.filter(([name]) => !added.has(name));
  return { ...refused, fields: [...others, ...added] };
}

/**
 * Returns the fields that announce the retirement, merged with those that the response has. Where
 * policies nest, the response already announces the inner one. The earlier sunset wins, with its
 * deprecation, and its links come first.
 */
function announce(
  fields: readonly Field[],
  policy: Policy,
  { successor, now }: { successor: string | undefined; now: number },
): Field[] {
  const valueOf = (name: string) => fields.find((field) => field[0].toLowerCase() === name)?.[1];
  const stated = valueOf("deprecation");
  const deprecatedAt = Number(/^@(-?\d+)$/.exec(stated ?? "")?.[1]) * 1000; // may be NaN
  const sunsetAt = parseHttpDate(valueOf("sunset") ?? "", now) ?? Infinity;
  const order = sunsetAt - (policy.sunsetAt ?? Infinity) || deprecatedAt - policy.deprecatedAt;
  const announcement = announcementFields(policy, successor).flatMap(([name, value]): Field[] => {
    const isFirst = stated !== undefined && order > 0;
    if (name === "Link") return [[name, withMembers(valueOf("link"), value.split(", "), isFirst)]];
    const isLater = order < 0 && (name === "Sunset" || !Number.isNaN(deprecatedAt));
    return isLater ? [] : [[name, value]];
  });
  const exposed = withMembers(valueOf("access-control-expose-headers"), EXPOSED);
  return [...announcement, ["Access-Control-Expose-Headers", exposed]];
}

/** Adds members to a list (RFC 9110 §5.6.1), after its own or before them, and each only once. */
function withMembers(list = "", members: readonly string[], isFirst = false): string {
  const others = members.reduce((all, member) => all.replace(`, ${member},`, ","), `, ${list},`)
    .slice(2, -1);
  return (isFirst ? [...members, others] : [others, ...members]).filter(Boolean).join(", ");
}
