/**
 * One policy applied to the routes of this server: what their answers carry, when something else
 * answers in their place, and who was answered. Other routes are left alone.
 */

import type { Answer, Field } from "../http/answer.ts";
import type { Directions, Problem } from "../http/problem.ts";
import { PROBLEM_TYPES_PAGE } from "./problem_types.ts";
import type { Target } from "./route.ts";
import { announcementFields } from "../lifecycle/announcement.ts";
import { momentAt, type Policy } from "../lifecycle/policy.ts";
import { refusal } from "../lifecycle/refusal.ts";
import type { Tally, UsageMeter } from "../usage/meter.ts";

/** What a retirement works with. */
export interface RetirementOptions {
  readonly policy: Policy;
  /** Seconds for which caches may keep the answer of a final removal. */
  readonly maxAge: number;
  /** Counts the calls, when it is given. */
  readonly meter?: UsageMeter | undefined;
}

/** The retirement of the routes that are deprecated. Instants are milliseconds since the epoch. */
export class Retirement {
  readonly #options: RetirementOptions;

  constructor(options: RetirementOptions) {
    this.#options = options;
  }

  /** The answer in place of the route's own, if any. */
  refusal(target: Target, now: number): Answer | undefined {
    if (!target.route?.isDeprecated) return undefined;
    const { policy, maxAge } = this.#options;
    const successor = successorOf(target);
    const problemTypesPage = PROBLEM_TYPES_PAGE;
    return refusal(policy, { now, successor, maxAge, problemTypesPage });
  }

  /** The fields that announce the retirement on every answer of the route. */
  fields(target: Target, answer: Answer): Field[] {
    if (!target.route?.isDeprecated) return [];
    return announcementFields(this.#options.policy, successorOf(target, answer));
  }

  /** What a problem says of the retirement of its route. */
  directions(target: Target, problem: Problem): Directions {
    if (!target.route?.isDeprecated) return {};
    const { documentation } = this.#options.policy;
    return { successor: successorOf(target, problem), documentation };
  }

  /** When what is said of the route changes: milliseconds since the epoch, or `Infinity`. */
  until({ route }: Target, now: number): number {
    if (!route?.isDeprecated && route?.serves !== "notice") return Infinity;
    return momentAt(this.#options.policy, now).until;
  }

  /** What counts such answers, as long as the phase lasts; `undefined` where none are counted. */
  tally(
    method: string,
    { route, token }: Target,
    { status, instant }: { status: number; instant: number },
  ): Tally | undefined {
    const { policy, meter } = this.#options;
    if (!route?.isDeprecated || meter === undefined) return undefined;
    const { phase } = momentAt(policy, instant);
    const hasToken = token !== undefined;
    return meter.tally({ route: route.path, method, phase, status, hasToken });
  }

  /** Counts an answer to a request. */
  count(tally: Tally | undefined, { headers }: Request, now: number): void {
    if (tally !== undefined) this.#options.meter?.count(tally, headers.get("user-agent"), now);
  }
}

/** What replaces the item that a request is about, unless the answer is that nothing does. */
function successorOf(
  { token }: Target,
  answer?: Pick<Answer, "hasSuccessor">,
): string | undefined {
  return answer?.hasSuccessor === false ? undefined : token && `/media/${token}`;
}
