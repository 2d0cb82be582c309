/**
 * The answers that take the place of what is retired.
 */

import { type Answer, type Field, NO_STORE } from "../http/answer.ts";
import { formatHttpDate } from "../http/http_date.ts";
import { problemAnswer, type ProblemType } from "../http/problem.ts";
import { formatInstant, momentAt, type Policy } from "./policy.ts";

/** The types of problem that a refusal tells of, by their names. */
export const REFUSAL_TYPES = {
  brownout: {
    status: 410,
    title: "Brownout",
    meaning: "The path is switched off on trial, ahead of its removal, until the time in the " +
      "Retry-After field. Move to the successor.",
  },
  removed: {
    status: 410,
    title: "Removed",
    meaning: "The path was removed for good. Use the successor.",
  },
} as const satisfies Record<string, ProblemType>;

/** What decides an answer in place of what is retired. */
export interface RefusalOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The URL reference of what replaces the very thing asked for, if known; sent as it is. */
  readonly successor?: string | undefined;
  /** Seconds for which caches may keep the final answer. */
  readonly maxAge: number;
  /**
   * The URL reference of a page that explains `brownout` and `removed` at the elements of these
   * ids: the problems get types that lead there. Without one they have no type.
   */
  readonly problemTypesPage?: string | undefined;
}

/** The answer in a brownout and after the sunset; `undefined` while all goes on. */
export function refusal(policy: Policy, options: RefusalOptions): Answer | undefined {
  const { now, successor, maxAge, problemTypesPage: page } = options;
  const { phase, until } = momentAt(policy, now);
  const refuse = (name: keyof typeof REFUSAL_TYPES, detail: string, fields: Field[]) => {
    const { status, title } = REFUSAL_TYPES[name];
    const type = page === undefined ? undefined : { uri: `${page}#${name}`, title };
    const { documentation } = policy;
    const problem = { status, type, detail, fields, freshUntil: until };
    return problemAnswer(problem, { successor, documentation });
  };
  const isRedirecting = policy.afterSunset === "redirect" && successor !== undefined;
  if (phase === "brownout") {
    const isLast = until === policy.sunsetAt && !isRedirecting; // what follows is the removal
    const purpose = isLast ? "when it is removed" : "ahead of its removal";
    const detail = `This is off on trial until ${formatInstant(until)}, ${purpose}`;
    // A date, not a number of seconds, so that a HEAD says what its GET said a second before.
    const retry: Field[] = isLast ? [] : [["Retry-After", formatHttpDate(until)]];
    return refuse("brownout", detail, [NO_STORE, ...retry]);
  }
  if (phase !== "removed") return undefined;

  const cacheControl: Field = ["Cache-Control", `max-age=${maxAge}`];
  if (isRedirecting) {
    const fields: Field[] = [["Location", successor], ["Content-Length", "0"], cacheControl];
    return { status: 308, fields, freshUntil: until };
  }
  const detail = `This was removed at ${formatInstant(policy.sunsetAt as number)}`;
  return refuse("removed", detail, [cacheControl]);
}
