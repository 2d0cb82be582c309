/**
 * The policy applied to the deprecated routes of this server: the announcement, refusals, and
 * counting. Other routes are unaffected.
 */

import type { Answer, Field } from "../http/answer.ts";
import type { Problem, ProblemLinks } from "../http/problem.ts";
import { type Target, withToken } from "./route.ts";
import { announcementFields } from "../lifecycle/announcement.ts";
import { momentAt, type Policy } from "../lifecycle/policy.ts";
import { type Refusal, refusalAt } from "../lifecycle/refusal.ts";
import type { Counter, Meter } from "./meter.ts";

/** What a retirement depends on. */
export interface RetirementOptions {
  readonly policy: Policy;
  /** Seconds for which caches may store the answer after the sunset. */
  readonly maxAge: number;
  /** Counts the calls. */
  readonly meter?: Meter | undefined;
  /** Whether the CDN of Deno Deploy is in front. */
  readonly isOnDeploy?: boolean | undefined;
}

/**
 * Keeps answers out of Deno Deploy's CDN, where calls would go uncounted. Other caches ignore this
 * field (RFC 9213) and use Cache-Control.
 */
const CDN_NO_STORE: Field = ["Deno-CDN-Cache-Control", "no-store"];

/** Retires the deprecated routes. Instants are milliseconds since the epoch. */
export class Retirement {
  readonly #options: RetirementOptions;

  constructor(options: RetirementOptions) {
    this.#options = options;
  }

  /** Returns the refusal in a brownout or after the sunset, if the target is deprecated. */
  refusal(target: Target, now: number): Refusal | undefined {
    if (!target.route?.successor) return undefined;
    const { policy, maxAge } = this.#options;
    const successor = successorOf(target);
    return refusalAt(policy, { now, successor, maxAge });
  }

  /** Returns the fields that announce the retirement on every answer of the route. */
  fields(target: Target, answer: Answer): Field[] {
    if (!target.route?.successor) return [];
    const { policy, isOnDeploy } = this.#options;
    const fields = announcementFields(policy, successorOf(target, answer));
    return isOnDeploy ? [...fields, CDN_NO_STORE] : fields;
  }

  /** Returns the members of a problem that point to the successor and the documentation. */
  links(target: Target, problem: Problem): ProblemLinks {
    if (!target.route?.successor) return {};
    const { documentation } = this.#options.policy;
    return { successor: successorOf(target, problem), documentation };
  }

  /** Returns when the route's phase ends, in milliseconds since the epoch, or `Infinity`. */
  until({ route }: Target, now: number): number {
    if (!route?.successor && route?.serves !== "notice") return Infinity;
    return momentAt(this.#options.policy, now).until;
  }

  /** Returns the counter for such answers in the current phase; `undefined` if they are not counted. */
  counterOf(
    method: string,
    { route, token }: Target,
    { status, instant }: { status: number; instant: number },
  ): Counter | undefined {
    const { policy, meter } = this.#options;
    if (!route?.successor || meter === undefined) return undefined;
    const { phase } = momentAt(policy, instant);
    const hasToken = token !== undefined;
    return meter.counterOf({ route: route.path, method, phase, status, hasToken });
  }

  /** Counts the answer to a request. */
  count(counter: Counter | undefined, { headers }: Request, now: number): void {
    if (counter !== undefined) this.#options.meter?.count(counter, headers.get("user-agent"), now);
  }
}

/** Returns the path that replaces the requested item, unless the answer has no successor. */
function successorOf(
  { route, token }: Target,
  answer?: Pick<Answer, "hasSuccessor">,
): string | undefined {
  if (answer?.hasSuccessor === false || token === undefined) return undefined;
  return route?.successor && withToken(route.successor, token);
}
