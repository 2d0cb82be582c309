/**
 * Prepared responses: most HEADs ask again for what was just answered, and building a dozen fields
 * costs more than all the rest. An answer that says until when it holds is kept as a response, and
 * cloned for whoever asks the same. The other way gives the same bytes; a test holds them together.
 *
 * Kept answers end with what they were made of: `freshUntil` is never later than the look-up they
 * come from may be reused (`CACHE_TTL`, and so unpublishing), than the next change of phase, or
 * than their `max-age` is the right one. Any fault ends them all.
 */

import { LRUCache } from "lru-cache";
import { isConditional } from "./preconditions.ts";
import type { Target } from "./route.ts";

/** Responses kept at most; about 2 kB each. */
const MAX_RESPONSES = 10_000;

interface Prepared {
  readonly response: Response;
  readonly target: Target;
  /** Milliseconds since the epoch, as is `until`: a clock set back makes nothing last longer. */
  readonly since: number;
  readonly until: number;
}

/** What a response is about, and how long it holds, in milliseconds since the epoch. */
export interface Lifetime {
  readonly now: number;
  /** Until when the same request gets the same answer. */
  readonly freshUntil: number;
  readonly target: Target;
}

/** Responses to HEAD requests without conditions, by URL. */
export class PreparedResponses {
  readonly #byUrl = new LRUCache<string, Prepared>({ max: MAX_RESPONSES });

  /**
   * The response to a request, if one is prepared, and what it is about.
   *
   * @param now Milliseconds since the epoch.
   */
  find(request: Request, now: number): { response: Response; target: Target } | undefined {
    if (request.method !== "HEAD") return undefined;
    const prepared = this.#byUrl.get(request.url);
    if (prepared === undefined || now >= prepared.until || now < prepared.since) return undefined;
    if (isConditional(request.headers)) return undefined;
    return { response: prepared.response.clone(), target: prepared.target };
  }

  /** Keeps the response to a HEAD until it is said to hold no more. */
  keep(request: Request, response: Response, { now, freshUntil, target }: Lifetime): void {
    if (request.method !== "HEAD" || freshUntil <= now) return;
    if (isConditional(request.headers)) return;
    // Made anew and not cloned: were clones kept, V8 would learn to allocate all clones among the
    // old objects, and collecting them costs as much as making them.
    const { status, headers } = response;
    const kept = new Response(null, { status, headers });
    this.#byUrl.set(request.url, { response: kept, target, since: now, until: freshUntil });
  }

  /** Forgets everything. */
  clear(): void {
    this.#byUrl.clear();
  }
}
