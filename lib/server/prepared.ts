/**
 * Prepared responses. Most requests repeat a recent one, and building a dozen fields costs more than
 * everything else. An answer with an expiry time is therefore kept as a response, including short
 * content, and sent again for identical requests. The bytes are the same either way; a test compares
 * them.
 *
 * A prepared response expires with its lookup's generation, and so on any fault and whenever
 * anything is published or unpublished. `freshUntil` is never later than the lookup may be reused
 * (`CACHE_TTL`), than the next change of phase, or than its `max-age` remains correct.
 */

import QuickLRU from "quick-lru";
import { isHost } from "../http/host.ts";
import { conditionsIn } from "../http/preconditions.ts";
import type { Body } from "../http/answer.ts";
import type { Counter } from "./meter.ts";

/** The number of recent responses kept; at most twice as many. Each takes up to 3 kB plus its key. */
const RESPONSES = 2_500;

/** The number of recent responses with content kept, and the maximum length of that content. */
const [FULL_RESPONSES, MAX_BODY] = [1_000, 16_384];

/** The maximum length of a key: clients choose the length of URLs and conditions. */
const MAX_KEY = 1_024;

/** A response that can be sent again. */
export interface Prepared {
  /** Shared by many requests, so never modified; cloned if it has content. */
  readonly response: Response;
  readonly hasContent: boolean;
  /** Counts it, where answers like this are counted. */
  readonly counter: Counter | undefined;
  /** When it expires, in milliseconds since the epoch. */
  readonly freshUntil: number;
  /** The generation of the lookup that it was made from. */
  readonly generation: number;
}

/**
 * Prepared responses to HEAD and GET, by everything they depend on: URL and conditions. Requests
 * for ranges are not prepared, because the same range is rarely requested again.
 */
export class PreparedResponses {
  readonly #heads = new QuickLRU<string, Prepared>({ maxSize: RESPONSES });
  readonly #gets = new QuickLRU<string, Prepared>({ maxSize: FULL_RESPONSES });
  #latest = -Infinity;

  /**
   * Returns the prepared response to a request, if there is one.
   *
   * @param now Milliseconds since the epoch.
   */
  find(request: Request, now: number): Prepared | undefined {
    if (now < this.#latest) this.clear(); // the clock was set back, which must not extend anything
    this.#latest = now;
    const responses = this.#of(request);
    if (responses === undefined || !isHost(request.headers.get("host"))) return undefined;
    const prepared = responses.get(keyOf(request));
    return prepared === undefined || now >= prepared.freshUntil ? undefined : prepared;
  }

  /**
   * Keeps a response until it expires, unless it can be sent only once.
   *
   * @param body The body that it was made from.
   * @returns The response to send now.
   */
  keep(request: Request, body: Body | null, made: Omit<Prepared, "hasContent">): Response {
    const { response, freshUntil } = made;
    const responses = this.#of(request);
    if (responses === undefined || freshUntil <= this.#latest) return response;
    if (body !== null && !(body instanceof Uint8Array && body.length <= MAX_BODY)) return response;
    const key = keyOf(request);
    if (key.length > MAX_KEY) return response;
    const hasContent = body !== null;
    // The original is sent: Deno has already made what it needs for that.
    responses.set(key, { ...made, response: hasContent ? response.clone() : response, hasContent });
    return response;
  }

  /** Removes all prepared responses. */
  clear(): void {
    this.#heads.clear();
    this.#gets.clear();
  }

  #of({ method, headers }: Request): QuickLRU<string, Prepared> | undefined {
    if (method === "HEAD") return this.#heads;
    return method === "GET" && !headers.has("range") ? this.#gets : undefined;
  }
}

/** Returns a response to send from a prepared one. */
export function responseOf({ response, hasContent }: Prepared): Response {
  return hasContent ? response.clone() : response;
}

function keyOf({ url, headers }: Request): string {
  return url + conditionsIn(headers);
}
