/**
 * Routes, and matching requests to them.
 */

import type { Kind } from "../storage/storage.ts";
import { isHost } from "../http/host.ts";
import { parseToken, type Token } from "../storage/token.ts";

/** The methods that every route accepts. */
export const METHODS: readonly string[] = ["GET", "HEAD", "OPTIONS"];

/** A route: its path, and what it serves. */
export interface Route {
  /** A path; `:token` at its end stands for a token. Case and trailing slashes matter. */
  readonly path: string;
  /** The kinds of media published here, or the document or check served. */
  readonly serves: readonly Kind[] | "health" | DocumentName;
  /** The path that replaces this one. Present if the route is deprecated. */
  readonly successor?: string;
}

/** A generated document: the retirement notice, or the OpenAPI description. */
export type DocumentName = "notice" | "description";

/** Returns the paths of an item: current ones first, then deprecated ones. */
export function pathsOf(
  routes: readonly Route[],
  { kind, token }: { kind: Kind; token: Token },
): string[] {
  return routes.filter(({ serves }) => Array.isArray(serves) && serves.includes(kind))
    .toSorted((a, b) => Number(a.successor !== undefined) - Number(b.successor !== undefined))
    .map(({ path }) => withToken(path, token));
}

/** Returns the deprecated paths. */
export function deprecatedPaths(routes: readonly Route[]): string[] {
  return routes.filter(({ successor }) => successor !== undefined).map(({ path }) => path);
}

/** Returns the path of an item on a route. */
export function withToken(path: string, token: Token): string {
  return path.replace(":token", token);
}

/** The target of a request. */
export interface Target {
  /** `undefined` if no route matches. */
  readonly route?: Route;
  /** The path segment at the token's place, as sent. */
  readonly segment: string;
  /** `undefined` if the segment is not a valid token. */
  readonly token?: Token | undefined;
  /** Set if the Host field is invalid, which makes the path unreliable. */
  readonly hasInvalidHost?: true;
}

/** Finds the target of a request by its URL and Host field. */
export type Matcher = (url: string, host?: string | null) => Target;

/** Creates a matcher for routes. If several have the same path, the first counts. */
export function createMatcher(routes: readonly Route[]): Matcher {
  const byPath = new Map([...routes].reverse().map((route) => [route.path, route]));
  const find = (path: string): Target => {
    const start = path.lastIndexOf("/") + 1;
    const segment = path.slice(start);
    const route = segment === "" ? undefined : byPath.get(`${path.slice(0, start)}:token`);
    if (route !== undefined) return { route, segment, token: parseToken(segment) };
    const other = byPath.get(path);
    return other === undefined ? { segment: "" } : { route: other, segment: "" };
  };
  return (url, host = null) => {
    if (!isHost(host)) return { segment: "", hasInvalidHost: true };
    // Only the path decides, whatever name the server is reached by.
    const path = pathOf(url);
    const target = find(path);
    return target.token === undefined ? find(normalize(path)) : target;
  };
}

/** Returns the path of an absolute URL, as sent. */
function pathOf(url: string): string {
  return /^[^:]*:\/\/[^/?#]*([^?#]*)/.exec(url)?.[1] ?? "";
}

/** Normalizes a path: removes dot segments, and encodes each character in one way. */
function normalize(path: string): string {
  return new URL(`http://localhost${decodeUnreserved(path)}`).pathname;
}

/** Decodes percent-encoded unreserved characters, which are equivalent (RFC 3986 §6.2.2.2). */
function decodeUnreserved(path: string): string {
  return path.replaceAll(/%[2-7][0-9a-f]/gi, (encoded) => {
    const char = String.fromCharCode(parseInt(encoded.slice(1), 16));
    return /[\w.~-]/.test(char) ? char : encoded;
  });
}
