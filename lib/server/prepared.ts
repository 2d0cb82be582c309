/**
 * Prepared responses: most requests ask again for what was just answered, and building a dozen
 * fields costs more than all the rest. An answer that says until when it holds is kept as a response,
 * with its content where that is short, and sent to whoever asks the same, again and again. The other
 * way gives the same bytes; a test holds them together.
 *
 * Kept answers end with what they were made of: with the generation of the lookup they come from,
 * and so with any fault and whatever is published or unpublished; and `freshUntil` is never later
 * than that lookup may be reused (`CACHE_TTL`), than the next change of phase, or than their
 * `max-age` is the right one.
 */

import QuickLRU from "quick-lru";
import { isHost } from "../http/host.ts";
import { conditionsIn } from "../http/preconditions.ts";
import type { Body } from "../http/answer.ts";
import type { Counter } from "./meter.ts";

/** Responses kept, of the most recent; twice as many at most, of up to 3 kB each besides the key. */
const RESPONSES = 2_500;

/** The same for those with content, and how many bytes of it each may have. */
const [FULL_RESPONSES, MAX_BODY] = [1_000, 16_384];

/** Characters of the longest key that is kept; clients choose how long a URL or a condition is. */
const MAX_KEY = 1_024;

/** A response to one and the same request, and what else there is to do. */
export interface Prepared {
  /** For many requests: without a body, to be sent and never to be changed; else, to be cloned. */
  readonly made: Response;
  readonly body: Body | null;
  /** Counts it, where answers like this are counted. */
  readonly counter: Counter | undefined;
  /** Until when it holds, in milliseconds since the epoch. */
  readonly freshUntil: number;
  /** What storage said belongs to this one. */
  readonly generation: number;
}

/**
 * Responses to HEAD and GET, by all that such a response depends on: URL and conditions. Ranges are
 * many, and the same one is seldom asked for again.
 */
export class PreparedResponses {
  readonly #heads = new QuickLRU<string, Prepared>({ maxSize: RESPONSES });
  readonly #gets = new QuickLRU<string, Prepared>({ maxSize: FULL_RESPONSES });
  #latest = -Infinity;

  /**
   * What is prepared for a request, if anything.
   *
   * @param now Milliseconds since the epoch.
   */
  find(request: Request, now: number): Prepared | undefined {
    if (now < this.#latest) this.clear(); // a clock set back makes nothing last longer
    this.#latest = now;
    const responses = this.#of(request);
    if (responses === undefined || !isHost(request.headers.get("host"))) return undefined;
    const prepared = responses.get(keyOf(request));
    return prepared === undefined || now >= prepared.freshUntil ? undefined : prepared;
  }

  /**
   * Keeps a response until it holds no more, unless it is one that can be sent only once.
   *
   * @returns What to send.
   */
  keep(request: Request, prepared: Prepared): Response {
    const { made, body, freshUntil } = prepared;
    const responses = this.#of(request);
    if (responses === undefined || freshUntil <= this.#latest) return made;
    if (body !== null && !(body instanceof Uint8Array && body.length <= MAX_BODY)) return made;
    const key = keyOf(request);
    if (key.length > MAX_KEY) return made;
    responses.set(key, prepared);
    return responseOf(prepared);
  }

  /** Forgets everything. */
  clear(): void {
    this.#heads.clear();
    this.#gets.clear();
  }

  #of({ method, headers }: Request): QuickLRU<string, Prepared> | undefined {
    if (method === "HEAD") return this.#heads;
    return method === "GET" && !headers.has("range") ? this.#gets : undefined;
  }
}

/** The response to send of a prepared one. */
export function responseOf({ made, body }: Pick<Prepared, "made" | "body">): Response {
  return body === null ? made : made.clone();
}

function keyOf({ url, headers }: Request): string {
  return url + conditionsIn(headers);
}
