/**
 * Prepared responses. Most requests repeat a recent one, and building a dozen fields costs more than
 * everything else. So a response is kept for its generation, and reused for identical requests.
 * Clients get the same response either way, which a test checks.
 */

import QuickLRU from "quick-lru";
import { conditionsIn } from "../http/preconditions.ts";
import type { Generations } from "../storage/generations.ts";
import type { Counter } from "./counting.ts";

/**
 * Answers a request that came at an instant, in milliseconds since the epoch, and counts the
 * response. Never rejects.
 */
export type Handler = (request: Request, instant: number) => Promise<Answer>;

/** A response, and what sending it again depends on. */
export interface Answer {
  readonly response: Response;
  /** Counts each reuse, if such responses are counted. */
  readonly counter: Counter | undefined;
  /**
   * When the phase ends or the fields change, in milliseconds since the epoch; 0 if the response
   * must not be sent again. Until then, in the same generation, the same request gets the same
   * response.
   */
  readonly keepUntil: number;
}

/** The number of recent responses to HEAD and to GET that are kept, or up to twice as many. */
const [HEADS, GETS] = [2_500, 1_000];

/** The number of requests that came once and are remembered, or up to twice as many. */
const MAX_SEEN_ONCE = 2_500;

/** The length in bytes of the longest content kept. */
const MAX_CONTENT = 16_384;

/** The maximum length of a key, because clients choose the length of URLs and conditions. */
const MAX_KEY = 1_024;

/** A kept response, shared by many requests. */
interface Kept extends Answer {
  readonly generation: number;
}

/**
 * Wraps a handler to keep the responses to HEAD and GET that may be kept, from the second request
 * on. They are kept by all that they depend on: URL, Host and conditions. Responses to ranges are
 * not kept, because clients rarely request the same range again.
 *
 * @param options The generations of the data that responses are made from, and a function that
 *   returns the time in milliseconds since the epoch.
 * @returns A handler for `Deno.serve`, which answers synchronously where it can. Responses to HEAD
 *   are shared: do not modify them.
 */
export function prepareResponses(
  handle: Handler,
  { generations, clock }: { readonly generations: Generations; readonly clock: () => number },
): (request: Request) => Response | Promise<Response> {
  const heads = new QuickLRU<string, Kept>({ maxSize: HEADS });
  const gets = new QuickLRU<string, Kept>({ maxSize: GETS });
  const once = new QuickLRU<string, true>({ maxSize: MAX_SEEN_ONCE });

  const keptFor = ({ method, headers }: Request) =>
    method === "HEAD" ? heads : method === "GET" && !headers.has("range") ? gets : undefined;

  function find(request: Request, instant: number): Kept | undefined {
    const kept = keptFor(request)?.get(requestKeyOf(request));
    const isTrue = kept !== undefined && instant < kept.keepUntil &&
      generations.holds(kept.generation, instant);
    return isTrue ? kept : undefined;
  }

  function sendAgain({ response, counter }: Kept, request: Request): Response {
    counter?.count(request.headers);
    return request.method === "HEAD" ? response : response.clone();
  }

  async function make(request: Request, instant: number): Promise<Response> {
    // The look at storage decides whether a kept response is still true. Where there is none, nothing
    // waits for it here: a lookup waits by itself, and a refusal needs no storage.
    const look = generations.refresh(instant);
    if (look !== undefined && keptFor(request)?.has(requestKeyOf(request))) {
      await look;
      const kept = find(request, instant);
      if (kept !== undefined) return sendAgain(kept, request);
    }
    const { generation } = generations; // which all lookups from now on have
    const answer = await handle(request, instant);
    const { response, keepUntil } = answer;
    const responses = keptFor(request);
    const key = requestKeyOf(request);
    const length = Number(response.headers.get("content-length"));
    const isShort = key.length <= MAX_KEY && (responses === heads || length <= MAX_CONTENT);
    if (responses === undefined || !isShort || keepUntil <= instant) return response;
    // Many requests never recur, and keeping and dropping a response costs a tenth of making it.
    if (!responses.has(key) && !once.has(key)) {
      once.set(key, true);
      return response;
    }
    // Sends the original, for which Deno has already made what it needs to send it.
    const again = responses === heads ? response : response.clone();
    responses.set(key, { ...answer, response: again, generation });
    return response;
  }

  return (request) => {
    const instant = clock();
    const kept = find(request, instant);
    return kept === undefined ? make(request, instant) : sendAgain(kept, request);
  };
}

/** Deno builds the URL from Host and target, so different pairs may give the same URL. */
function requestKeyOf({ url, headers }: Request): string {
  return `${headers.get("host")} ${url}${conditionsIn(headers)}`;
}
