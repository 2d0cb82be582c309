/** Matching of the paths in a retired part of a site. */

import { decodeUnreserved } from "../../http/percent_encoding.ts";
import { readOr } from "../any_value.ts";
import { mismatch, requireNames } from "../mismatch.ts";
import { membersOf, textOr } from "./request_head.ts";

/** Options for comparing paths. */
export interface PathOptions {
  /** Whether `/V1` differs from `/v1`. Default: no, as in Express. */
  readonly caseSensitive?: boolean | undefined;
  /**
   * Whether to resolve `//`, `.` and `..` first, as proxies and URL parsers do. If so,
   * `/v2//../v1` is under `/v1`, and `/v1/../v2` is not. Default: yes.
   */
  readonly collapse?: boolean | undefined;
}

/** A request of any framework, or its URL, absolute or relative. */
export type Located = string | URL | { url?: string | undefined; originalUrl?: string | undefined };

/**
 * Returns a function that tests whether a request is for a path or anything below it. Use it with
 * servers and frameworks that do not mount handlers by path. It compares whole segments. A
 * percent-encoded unreserved character counts as the character itself (RFC 3986 §6.2.2.2), while an
 * encoded slash separates nothing. The authority of an absolute URL does not matter.
 *
 * @throws {TypeError} If the path does not start with `/`, or is a pattern like `/v1/*`, `/v1/:id`
 *   or `/v1(.*)`, or an option is unknown.
 *
 * @example Paths under `/v1`
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { pathsUnder } from "@media-head/lifecycle";
 *
 * const isOld = pathsUnder("/v1");
 * assertEquals(isOld(new Request("https://example.com/V1/songs?page=2")), true);
 * assertEquals(isOld("/%761/songs"), true);
 * assertEquals(isOld({ url: "/v10/songs" }), false);
 * ```
 */
export function pathsUnder(
  path: string,
  options: PathOptions = {},
): (request: Located) => boolean {
  requireNames(options, ["caseSensitive", "collapse"]);
  const { caseSensitive = false, collapse = true } = options;
  if (typeof path !== "string" || !path.startsWith("/")) {
    throw new TypeError(mismatch("path", path, 'one that starts with "/"'));
  }
  const [literal = ""] = path.split(/\/(?:\*(?=\/|$)|:)|\/?\(\.\*\)/);
  if (literal !== path) {
    throw new TypeError(mismatch("path", path, `one without patterns, like "${literal || "/"}"`));
  }
  const normal = (url: string) => {
    const path = collapse ? resolvedPath(url) : decodedPath(url);
    return `${caseSensitive ? path : path.toLowerCase()}/`;
  };
  const prefix = normal(path.replace(/[^!-~]+/g, encodeURIComponent)).replace(/\/+$/, "/");
  return (request) => normal(urlOf(request)).startsWith(prefix);
}

/** Returns the path of a URL as proxies and URL parsers read it: without `//`, `.` and `..`. */
export function resolvedPath(url: string): string {
  return decodedPath(resolve(pathIn(url)));
}

/** Returns the path of a URL, with unreserved characters decoded, and escapes in upper case. */
function decodedPath(url: string): string {
  return decodeUnreserved(pathIn(url))
    .replace(/%[\da-f]{2}/gi, (escape) => escape.toUpperCase());
}

/** Returns the path in a URL, absolute or relative. */
function pathIn(url: string): string {
  return url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/\\?#]*/i, "").replace(/[?#].*/s, "");
}

function urlOf(request: Located): string {
  if (typeof request === "string") return request;
  if (readOr(false, () => request instanceof URL)) return String(request);
  const { originalUrl, url } = membersOf(request, ["originalUrl", "url"]);
  return textOr(textOr("", url), originalUrl);
}

/** Resolves empty segments, and then `.` and `..`, encoded or not. */
function resolve(path: string): string {
  return new URL(`/${path}`.replace(/[\\/]+/g, "/"), "http://localhost").pathname;
}
