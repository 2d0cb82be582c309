/**
 * Prepared responses. Most requests repeat a recent one, and building a dozen fields costs more
 * than everything else. So a response is reused for identical requests in its generation. Clients
 * get the same response either way, and a test checks that.
 *
 * Without this, a HEAD of a popular item costs more than twice the CPU. The handler is wrapped from
 * outside, so that it stays plain, and the wrapper knows no route, token or status. Reuse is
 * opt-in: a response without the mark `isReusable` is merely slow, while a forgotten exception
 * would make responses false.
 */

import QuickLRU from "quick-lru";
import type { Generations } from "../storage/generations.ts";
import type { Counter } from "../usage/record/meter.ts";

/** A response, and the facts on which its reuse depends. */
export interface MarkedResponse {
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

/** The maximum number of prepared responses to HEAD. `QuickLRU` keeps up to twice as many. */
const MAX_HEADS = 2_500;

/** The maximum number of prepared responses to GET, likewise. */
const MAX_GETS = 1_000;

/** The maximum number of requests remembered that came only once, likewise. */
const MAX_SEEN_ONCE = 2_500;

/** The maximum length of prepared content, in bytes. */
const MAX_CONTENT_LENGTH = 16_384;

/** The maximum length of a key, because clients choose the length of URLs and conditions. */
const MAX_KEY_LENGTH = 1_024;

/** A prepared response, shared by many requests. */
interface Prepared extends MarkedResponse {
  /** The generation of the lookups that the response was made from. */
  readonly generation: number;
}

/**
 * Wraps a handler to reuse its responses to HEAD and GET from the second request on. A response is
 * reused only for requests with the same URL, Host and conditions. Responses to ranges are not
 * reused, because clients rarely request the same range again.
 *
 * @param options The generations of the lookups that responses are made from, and a function that
 *   returns the time in milliseconds since the epoch.
 * @returns A handler for `Deno.serve`, which answers synchronously where it can. Responses to HEAD
 *   are shared: do not modify them.
 */
export function prepareResponses(
  handle: (request: Request, now: number) => Promise<MarkedResponse>,
  { generations, clock }: { readonly generations: Generations; readonly clock: () => number },
): (request: Request) => Response | Promise<Response> {
  const heads = new QuickLRU<string, Prepared>({ maxSize: MAX_HEADS });
  const gets = new QuickLRU<string, Prepared>({ maxSize: MAX_GETS });
  const seenOnce = new QuickLRU<string, true>({ maxSize: MAX_SEEN_ONCE });

  function preparedFor({ method, headers }: Request): QuickLRU<string, Prepared> | undefined {
    if (method === "HEAD") return heads;
    return method === "GET" && !headers.has("range") ? gets : undefined;
  }

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
    // A prepared response waits for the check of storage, which decides whether it is still valid.
    // Nothing else waits here: a lookup waits by itself, and a refusal needs no storage.
    const check = generations.refresh(now);
    if (check !== undefined && preparedFor(request)?.has(requestKeyOf(request))) {
      await check;
      const prepared = find(request, now);
      if (prepared !== undefined) return sendAgain(prepared, request);
    }
    const { generation } = generations; // that of all lookups from now on
    const answer = await handle(request, now);
    const { response, reusableUntil } = answer;
    const responses = preparedFor(request);
    const key = requestKeyOf(request);
    const length = Number(response.headers.get("content-length"));
    const isShort = key.length <= MAX_KEY_LENGTH &&
      (responses === heads || length <= MAX_CONTENT_LENGTH);
    if (responses === undefined || !isShort || reusableUntil <= now) return response;
    // Many requests never recur, and to store and evict a response costs a tenth of making it.
    if (!responses.has(key) && !seenOnce.has(key)) {
      seenOnce.set(key, true);
      return response;
    }
    // Shares the original of a HEAD, because a clone would take longer to send.
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

/**
 * Returns the key of a request. It has the Host, because Deno builds the URL from Host and target,
 * so different pairs may give the same URL.
 */
function requestKeyOf({ url, headers }: Request): string {
  return `${headers.get("host")} ${url}${conditionsIn(headers)}`;
}

/** Returns the part of a key for the preconditions; empty if there are none. */
export function conditionsIn(fields: Headers): string {
  return line(fields, "if-none-match") + line(fields, "if-modified-since") +
    line(fields, "if-match") + line(fields, "if-unmodified-since");
}

/** Returns a field as a line. Field values cannot contain newlines. */
function line(fields: Headers, name: string): string {
  return fields.has(name) ? `\n${name} ${fields.get(name)}` : "";
}
