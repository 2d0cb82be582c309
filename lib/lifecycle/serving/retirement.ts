/** The application of a policy to requests, for every kind of server. */

import { CORS_FIELDS } from "../../http/cors.ts";
import { parseHttpDate } from "../../http/http_date.ts";
import type { Field } from "../../http/outcome.ts";
import { productOf } from "../user_agent.ts";
import { announcementFields } from "../announcement.ts";
import { CHECK_CLIENT, isBreaking } from "../breaking.ts";
import { limitFreshness } from "../freshness.ts";
import { mismatch } from "../mismatch.ts";
import { momentAt, type Policy } from "../policy.ts";
import { type Refusal, refusal } from "../refusal.ts";
import { attempt, isPromise, requireInstant, requireOptions } from "./options.ts";
import type { LifecycleCall, LifecycleOptions, RequestHead } from "./options.ts";
import { problemIn, withContent } from "./refusal_content.ts";
import { readHead } from "./request_head.ts";
import { successorOf } from "./successor.ts";

/** A record of the calls to a route. Nothing waits for it. */
export interface CallRecord<Incoming extends RequestHead, Rest extends readonly unknown[]> {
  /** Returns the policy at present, if another than the one that was given may apply. */
  readonly policy?: () => Policy;
  /** The statuses that count as calls though the library takes them for failures. */
  readonly answers?: ReadonlySet<number> | undefined;
  /** Notes that a request has arrived. */
  arrive(): void;
  /**
   * Counts a request, before the option `onCount` is told of it. Never throws.
   *
   * @param head What could be read of the request.
   * @param policy The policy that determined the response.
   */
  count(
    call: LifecycleCall,
    head: RequestHead,
    request: Incoming,
    rest: Rest,
    policy: Policy,
  ): void;
  /** Notes that such a request was counted. */
  leave(): void;
}

/** How a policy applies to one request. */
export interface Retirement {
  /** When the request came, in milliseconds since the epoch. */
  readonly now: number;
  /** The refusal to send, with the fields of `refusalFields`; `undefined` to serve the request. */
  readonly refused: Refusal | undefined;
  /**
   * Returns the fields to set on a response when its head is sent. Doing so twice is harmless.
   *
   * @param fields All fields of the response, each but Set-Cookie at most once.
   * @param status The status of the response.
   */
  announce(fields: readonly Field[], status: number): Field[];
  /** Notes that the call will be counted, so that its record waits for that at the end. */
  arrive(): void;
  /**
   * Counts the call, once. The status is that of its response, or 0 if the client disconnected
   * first; `undefined` if nobody counts.
   */
  readonly count: ((status: number) => void) | undefined;
}

/** Fields to expose to pages in addition to the handler's own (Fetch standard §3.3.3). */
const EXPOSED = ["Deprecation", "Link", "Retry-After", "Sunset"];

/** Applies a policy to a request. */
export type ApplyRetirement<Incoming extends RequestHead, Rest extends readonly unknown[]> = (
  request: Incoming,
  ...rest: Rest
) => Retirement;

/**
 * Returns a function that applies a policy to a request.
 *
 * @param given The policy, unless `record` has another at present.
 * @param record Counts calls when they are answered.
 * @throws {TypeError} If the policy is not from `definePolicy()`, or an option is not valid.
 */
export function retirementOf<Incoming extends RequestHead, Rest extends readonly unknown[]>(
  given: Policy,
  options: LifecycleOptions<Incoming, Rest>,
  record?: CallRecord<Incoming, Rest>,
): ApplyRetirement<Incoming, Rest> {
  if (!Number.isFinite(given?.deprecatedAt)) { // callers may not use TypeScript
    throw new TypeError(mismatch("policy", given, "the result of definePolicy()"));
  }
  requireOptions(options);
  const { applies, refusalBody, maxAge, route, onCount } = options;
  const { refusalFields = () => CORS_FIELDS, clock = () => Date.now() } = options;
  const nameSuccessor = successorOf(options);
  const readClock = () => {
    const now: unknown = attempt("clock", clock);
    return attempt("clock", () => now === undefined ? undefined : requireInstant(now)) ??
      Date.now();
  };

  return (request, ...rest) => {
    const start = readClock();
    const policy = record?.policy?.() ?? given;
    const moment = momentAt(policy, start);
    const { until } = moment;
    // Read before the handler runs, because nothing can be read after an upgrade to a WebSocket.
    const head = readHead(request);
    const { method, url, headers } = head;
    const successor = nameSuccessor(request, url);
    const mayRefuse = applies === undefined
      ? method !== "OPTIONS"
      : attempt("applies", () => applies(request)) ?? false;
    const refused = mayRefuse ? refusal(policy, { now: start, successor, maxAge }) : undefined;
    const isAuthorized = until !== Infinity && headers.has("authorization");
    const caller = (onCount ?? record) && {
      route: attempt("route", () => route?.(request)),
      client: productOf(headers.get("user-agent")).name,
    };
    if (caller && headers.has("upgrade")) Array.from(headers); // Deno keeps what was read, for onCount
    const complete = (refused: Refusal) => {
      const whole = withFields(refused, attempt("refusalFields", () => refusalFields(request)));
      if (refusalBody === undefined || refused.status === 308) return whole;
      return attempt("refusalBody", () => {
        const content: unknown = refusalBody(problemIn(refused), request);
        return isPromise(content) ? content : withContent(whole, content);
      }) ?? whole;
    };
    let isCounted = false;
    let hasArrived = false;
    return {
      now: start,
      refused: refused && complete(refused),
      announce(fields, status) {
        const limit = { until, now: readClock(), method, status, isAuthorized };
        // Set-Cookie, which alone may occur twice, does not change.
        const [before, after] = [new Map(fields), new Map(limitFreshness(fields, limit))];
        const limited = [...after].filter(([name, value]) => before.get(name) !== value);
        return [...announce(fields, policy, { successor, now: start }), ...limited];
      },
      arrive() {
        hasArrived = true;
        record?.arrive();
      },
      count: caller && ((status) => {
        if (isCounted) return;
        isCounted = true;
        const breaks = caller.client !== CHECK_CLIENT &&
          isBreaking({
            method,
            status,
            isRefused: refused !== undefined,
            answers: record?.answers,
          });
        const call = { ...caller, ...moment, status, breaks };
        record?.count(call, head, request, rest, policy);
        attempt("onCount", () => onCount?.(call, request, ...rest));
        if (hasArrived) record?.leave();
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
  const areFirst = isFirst || isUnclosed(others);
  return (areFirst ? [...members, others] : [others, ...members]).filter(Boolean).join(", ");
}

/** Matches a quoted string (RFC 9110 §5.6.4), and its closing quote if it has one. */
const QUOTED_STRING = /"(?:[^"\\]|\\[^]?)*("?)/g;

/**
 * Returns whether the last quoted string in a value is not closed. Recipients would take what is added
 * after such a value for a part of it.
 */
function isUnclosed(value: string): boolean {
  const [, closing] = [...value.matchAll(QUOTED_STRING)].at(-1) ?? [];
  return closing === "";
}
