/** The caching of responses that are meant for one client. */

import type { Field } from "../http/outcome.ts";
import { Directives, restrictionsOf, shortestAge, withoutSharing } from "./cache_control.ts";
import { HEURISTICALLY_CACHEABLE } from "./freshness.ts";
import { isForCaches } from "./restrictions.ts";

/**
 * Keeps a response that is meant for one client from every shared cache. What such a cache might store
 * gets `private`. What no cache might store gets nothing, because `private` would let a private cache
 * store it (RFC 9111 §3). Fields that only some shared caches read, and prefer, are removed; those
 * that restrict such a cache forbid it to store the response.
 *
 * @param fields The fields of the response, each of those for caches at most once.
 * @returns The fields to send in place of those given, in the same order, with a Cache-Control at the
 *   end if there was none.
 */
export function forOneClient(
  fields: readonly Field[],
  response: { readonly method: string; readonly status: number },
): Field[] {
  const kept = fields.flatMap(([name, value]): Field[] => {
    if (!isForSharedCaches(name.toLowerCase())) return [[name, value]];
    const forbidding = forbiddingValue(name.toLowerCase(), value);
    return forbidding === undefined ? [] : [[name, forbidding]];
  });
  const isCommon = ([name]: Field) => name.toLowerCase() === "cache-control";
  const [name, value] = kept.find(isCommon) ?? ["Cache-Control", ""];
  const hasExpires = kept.some(([name]) => name.toLowerCase() === "expires");
  const own = privateValue(value, { ...response, hasExpires });
  const set: Field[] = own === "" ? [] : [[name, own]];
  const at = kept.findIndex(isCommon);
  return at === -1 ? [...kept, ...set] : kept.toSpliced(at, 1, ...set);
}

/** Returns whether only shared caches read a field, named in lower case. They prefer it to Cache-Control. */
function isForSharedCaches(name: string): boolean {
  return isForCaches(name) && name !== "cache-control" && name !== "expires";
}

/** Returns what forbids a shared cache to store a response, if the value of its field restricts it. */
function forbiddingValue(name: string, value: string): string | undefined {
  if (name === "x-accel-expires") return /^@?0+$/.test(value) ? "0" : undefined;
  return restrictionsOf(value).length > 0 || shortestAge(value) === 0 ? "no-store" : undefined;
}

function privateValue(
  value: string,
  { method, status, hasExpires }: {
    readonly method: string;
    readonly status: number;
    readonly hasExpires: boolean;
  },
): string {
  const own = withoutSharing(value);
  const directives = new Directives(own);
  // A cache that knows must-understand ignores the no-store beside it (§5.2.2.3).
  const isForbidden = directives.isBare("no-store") && !directives.has("must-understand");
  if (isForbidden || directives.isBare("private")) return own;
  const isSafe = method === "GET" || method === "HEAD";
  // A 304 updates what is stored (§4.3.4).
  const mayGuess = isSafe && (HEURISTICALLY_CACHEABLE.has(status) || status === 304);
  if (mayGuess || hasExpires || directives.hasSeconds("max-age")) {
    return ["private", own].filter(Boolean).join(", "); // first, because the rest may be malformed
  }
  // Some caches read an age or `public` in a value that is malformed for others, and `private` would let
  // those others store it. And some store by a default, unless `s-maxage` keeps them from it.
  return /max-?age|public/i.test(own) || shortestAge(value) === 0 ? "no-store" : own;
}
