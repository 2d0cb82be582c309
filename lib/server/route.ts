/** Routes: what each serves, and how URLs are normalized to match them. */

import { decodeUnreserved } from "../http/percent_encoding.ts";
import type { Kind } from "../storage/item.ts";
import type { Token } from "../storage/token.ts";

/** The methods that every route accepts. */
export const METHODS: readonly string[] = ["GET", "HEAD", "OPTIONS"];

/** A route: its path, and what it serves. */
export interface Route {
  /** Matches its path, in which `:token` stands for a token. Case and trailing slashes matter. */
  readonly pattern: URLPattern;
  /** The kinds of media published here, or the document or check served. */
  readonly serves: readonly Kind[] | "health" | DocumentName;
  /** The path that replaces this one. A route that has one is deprecated. */
  readonly successor?: string;
}

/** A generated document: the retirement notice, or the OpenAPI description. */
export type DocumentName = "notice" | "description";

export function pathOf({ pattern }: Route): string {
  return pattern.pathname;
}

/** Returns the paths of an item, the deprecated ones last. */
export function itemPaths(
  routes: readonly Route[],
  { kind, token }: { kind: Kind; token: Token },
): string[] {
  return routes.filter(({ serves }) => Array.isArray(serves) && serves.includes(kind))
    .toSorted((a, b) => Number(a.successor !== undefined) - Number(b.successor !== undefined))
    .map((route) => withToken(pathOf(route), token));
}

export function deprecatedPaths(routes: readonly Route[]): string[] {
  return routes.filter(({ successor }) => successor !== undefined).map(pathOf);
}

/** Returns the path of an item on a route, or the path's template as in OpenAPI. */
export function withToken(path: string, token: Token | "{token}"): string {
  return path.replace(":token", token);
}

/** The maximum number of segments of a route. */
const MAX_SEGMENTS = 2;

/** The length to which segments are cut. */
const MAX_SEGMENT_LENGTH = 64;

/** Matches a path that needs no normalization, as most do. */
const NORMAL = /^(?:\/[\w-]{1,64}){1,2}$/;

/**
 * Normalizes a URL for matching. Percent-encoded unreserved characters are decoded (RFC 3986
 * §6.2.2.2), and dot segments are removed. Only the path is left, so that routes match under any
 * Host. Long segments are cut, because `URLPattern` remembers the URLs that it has matched.
 */
export function normalizeUrl(url: string): string {
  const path = /^[^:]*:\/\/[^/?#]*([^?#]*)/.exec(url)?.[1] ?? "";
  if (NORMAL.test(path)) return `http://localhost${path}`;
  const { pathname } = new URL(`http://localhost${decodeUnreserved(path)}`);
  const segments = pathname.split("/", MAX_SEGMENTS + 2); // one before the first, and one too many
  return `http://localhost${
    segments.map((segment) => segment.slice(0, MAX_SEGMENT_LENGTH)).join("/")
  }`;
}
