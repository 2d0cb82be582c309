/**
 * Prepared responses. Most requests repeat a recent one, and building a dozen fields costs more than
 * everything else. So a response is reused for identical requests in its generation. Clients get the
 * same response either way; a test checks that.
 *
 * Why: without this, a HEAD of a popular item costs more than twice the CPU. It wraps the handler from
 * outside, so that the handler stays plain, and it knows no route, token or status. Reuse is opt-in:
 * if the mark `isReusable` is forgotten, a response is slow; a forgotten exception would be false.
 */

import QuickLRU from "quick-lru";
import { conditionsIn } from "../http/preconditions.ts";
import type { Generations } from "../storage/generations.ts";
import type { Counter } from "../usage/meter.ts";

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
  readonly reusableUntil: number;
}

/** The maximum number of recent responses to HEAD and to GET that are prepared, or up to twice that. */
const [HEADS, GETS] = [2_500, 1_000];

/** The number of requests that came once and are remembered, or up to twice as many. */
const MAX_SEEN_ONCE = 2_500;

/** The length in bytes of the longest content prepared. */
const MAX_CONTENT = 16_384;

/** The maximum length of a key, because clients choose the length of URLs and conditions. */
const MAX_KEY = 1_024;

/** A prepared response, shared by many requests. */
interface Prepared extends Answer {
  readonly generation: number;
}

/**
 * Wraps a handler to reuse its responses to HEAD and GET from the second request on. Each belongs to
 * all that it depends on: URL, Host and conditions. Responses to ranges are not reused, because
 * clients rarely request the same range again.
 *
 * @param options The generations of the data that responses are made from, and a function that
 *   returns the time in milliseconds since the epoch.
 * @returns A handler for `Deno.serve`, which answers synchronously where it can. Responses to HEAD
 *   are shared: do not modify them.
 */
export function prepareResponses(
  handle: (request: Request, now: number) => Promise<Answer>,
  { generations, clock }: { readonly generations: Generations; readonly clock: () => number },
): (request: Request) => Response | Promise<Response> {
  const heads = new QuickLRU<string, Prepared>({ maxSize: HEADS });
  const gets = new QuickLRU<string, Prepared>({ maxSize: GETS });
  const once = new QuickLRU<string, true>({ maxSize: MAX_SEEN_ONCE });

  const preparedFor = ({ method, headers }: Request) =>
    method === "HEAD" ? heads : method === "GET" && !headers.has("range") ? gets : undefined;

  function find(request: Request, now: number): Prepared | undefined {
    const prepared = preparedFor(request)?.get(requestKeyOf(request));
    const isFresh = prepared !== undefined && now < prepared.reusableUntil &&
      generations.isCurrent(prepared.generation, now);
    return isFresh ? prepared : undefined;
  }

  function sendAgain({ response, counter }: Prepared, request: Request): Response {
    counter?.count(request.headers);
    return request.method === "HEAD" ? response : response.clone();
  }

  async function make(request: Request, now: number): Promise<Response> {
    // The check of storage decides whether a prepared response is still valid. Where there is none,
    // nothing waits for it here: a lookup waits by itself, and a refusal needs no storage.
    const check = generations.refresh(now);
    if (check !== undefined && preparedFor(request)?.has(requestKeyOf(request))) {
      await check;
      const prepared = find(request, now);
      if (prepared !== undefined) return sendAgain(prepared, request);
    }
    const { generation } = generations; // which all lookups from now on have
    const answer = await handle(request, now);
    const { response, reusableUntil } = answer;
    const responses = preparedFor(request);
    const key = requestKeyOf(request);
    const length = Number(response.headers.get("content-length"));
    const isShort = key.length <= MAX_KEY && (responses === heads || length <= MAX_CONTENT);
    if (responses === undefined || !isShort || reusableUntil <= now) return response;
    // Many requests never recur, and storing and evicting a response costs a tenth of making it.
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
    const now = clock();
    const prepared = find(request, now);
    return prepared === undefined ? make(request, now) : sendAgain(prepared, request);
  };
}

/** Deno builds the URL from Host and target, so different pairs may give the same URL. */
function requestKeyOf({ url, headers }: Request): string {
  return `${headers.get("host")} ${url}${conditionsIn(headers)}`;
}
