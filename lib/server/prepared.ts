/**
 * Prepared responses: most HEADs ask again for what was just answered, and building a dozen fields
 * costs more than all the rest. An answer that says until when it holds is kept as a response, and
 * sent to whoever asks the same, again and again: a response without content is never used up. The
 * other way gives the same bytes; a test holds them together.
 *
 * Kept answers end with what they were made of: with the generation of the lookup they come from,
 * and so with any fault and whatever is published or unpublished; and `freshUntil` is never later
 * than that lookup may be reused (`CACHE_TTL`), than the next change of phase, or than their
 * `max-age` is the right one.
 */

import QuickLRU from "quick-lru";
import { isHost } from "../http/host.ts";
import { conditionsIn } from "../http/preconditions.ts";
import type { Tally } from "./meter.ts";

/** Responses kept, of the most recent; twice as many at most, of up to 3 kB each besides the key. */
const RESPONSES = 2_500;

/** Characters of the longest key that is kept; clients choose how long a URL or a condition is. */
const MAX_KEY = 1_024;

/** A response to one and the same request, and what else there is to do. */
export interface Prepared {
  /** For many requests at once: to be sent, never to be changed. */
  readonly response: Response;
  /** Counts it, where answers like this are counted. */
  readonly tally: Tally | undefined;
  /** Until when it holds, in milliseconds since the epoch. */
  readonly freshUntil: number;
  /** What storage said belongs to this one. */
  readonly generation: number;
}

/** Responses to HEAD requests, by all that such a response depends on: URL and conditions. */
export class PreparedResponses {
  readonly #responses = new QuickLRU<string, Prepared>({ maxSize: RESPONSES });
  #latest = -Infinity;

  /**
   * What is prepared for a request, if anything.
   *
   * @param now Milliseconds since the epoch.
   */
  find(request: Request, now: number): Prepared | undefined {
    if (now < this.#latest) this.clear(); // a clock set back makes nothing last longer
    this.#latest = now;
    if (request.method !== "HEAD" || !isHost(request.headers.get("host"))) return undefined;
    const prepared = this.#responses.get(keyOf(request));
    return prepared === undefined || now >= prepared.freshUntil ? undefined : prepared;
  }

  /** Keeps the response to a HEAD until it holds no more. */
  keep(request: Request, prepared: Prepared): void {
    if (request.method !== "HEAD" || prepared.freshUntil <= this.#latest) return;
    const key = keyOf(request);
    if (key.length <= MAX_KEY) this.#responses.set(key, prepared);
  }

  /** Forgets everything. */
  clear(): void {
    this.#responses.clear();
  }
}

function keyOf({ url, headers }: Request): string {
  return url + conditionsIn(headers);
}
