/**
 * One policy applied to the routes of this server: what their answers carry, when something else
 * answers in their place, and who was answered. Other routes are left alone.
 */

import type { Answer, Field } from "../http/answer.ts";
import type { Problem, ProblemLinks } from "../http/problem.ts";
import { type Target, withToken } from "./route.ts";
import { announcementFields } from "../lifecycle/announcement.ts";
import { momentAt, type Policy } from "../lifecycle/policy.ts";
import { type Refusal, refusalAt } from "../lifecycle/refusal.ts";
import type { Counter, Meter } from "./meter.ts";

/** What a retirement works with. */
export interface RetirementOptions {
  readonly policy: Policy;
  /** Seconds for which caches may keep the answer of a final removal. */
  readonly maxAge: number;
  /** Counts the calls, when it is given. */
  readonly meter?: Meter | undefined;
  /** Whether the CDN of Deno Deploy is in front. */
  readonly isOnDeploy?: boolean | undefined;
}

/**
 * Keeps answers out of the CDN of Deno Deploy, which would hide who calls. Its own field (RFC 9213):
 * other caches go by Cache-Control.
 */
const CDN_NO_STORE: Field = ["Deno-CDN-Cache-Control", "no-store"];

/** The retirement of the routes that are deprecated. Instants are milliseconds since the epoch. */
export class Retirement {
  readonly #options: RetirementOptions;

  constructor(options: RetirementOptions) {
    this.#options = options;
  }

  /** Why something else answers in place of the route, if it does. */
  refusal(target: Target, now: number): Refusal | undefined {
    if (!target.route?.successor) return undefined;
    const { policy, maxAge } = this.#options;
    const successor = successorOf(target);
    return refusalAt(policy, { now, successor, maxAge });
  }

  /** The fields that every answer of the route has: they announce the retirement. */
  fields(target: Target, answer: Answer): Field[] {
    if (!target.route?.successor) return [];
    const { policy, isOnDeploy } = this.#options;
    const fields = announcementFields(policy, successorOf(target, answer));
    return isOnDeploy ? [...fields, CDN_NO_STORE] : fields;
  }

  /** What a problem says of the retirement of its route. */
  links(target: Target, problem: Problem): ProblemLinks {
    if (!target.route?.successor) return {};
    const { documentation } = this.#options.policy;
    return { successor: successorOf(target, problem), documentation };
  }

  /** When what is said of the route changes: milliseconds since the epoch, or `Infinity`. */
  until({ route }: Target, now: number): number {
    if (!route?.successor && route?.serves !== "notice") return Infinity;
    return momentAt(this.#options.policy, now).until;
  }

  /** What counts such answers, as long as the phase lasts; `undefined` where none are counted. */
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

  /** Counts an answer to a request. */
  count(counter: Counter | undefined, { headers }: Request, now: number): void {
    if (counter !== undefined) this.#options.meter?.count(counter, headers.get("user-agent"), now);
  }
}

/** What replaces the item that a request is about, unless the answer is that nothing does. */
function successorOf(
  { route, token }: Target,
  answer?: Pick<Answer, "hasSuccessor">,
): string | undefined {
  if (answer?.hasSuccessor === false || token === undefined) return undefined;
  return route?.successor && withToken(route.successor, token);
}
