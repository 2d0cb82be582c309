/**
 * Routes: what a server answers, and finding the one that a request is about.
 */

import type { Kind } from "../storage/storage.ts";
import { isHost } from "../http/host.ts";
import { parseToken, type Token } from "../storage/token.ts";

/** The methods that every route takes. */
export const METHODS: readonly string[] = ["GET", "HEAD", "OPTIONS"];

/** A route: where it is, and what it serves. */
export interface Route {
  /** A path; `:token` at its end stands for a token. Case and trailing slashes matter. */
  readonly path: string;
  /** The kinds of media published here, or what else is served. */
  readonly serves: readonly Kind[] | "health" | DocumentName;
  /** The path that replaces this one, which is deprecated. */
  readonly successor?: string;
}

/** What the server makes of its own routes and policy: a page about them, and OpenAPI. */
export type DocumentName = "notice" | "description";

/** The paths of an item among routes: the replacement first, then those that are deprecated. */
export function pathsOf(
  routes: readonly Route[],
  { kind, token }: { kind: Kind; token: Token },
): string[] {
  return routes.filter(({ serves }) => Array.isArray(serves) && serves.includes(kind))
    .toSorted((a, b) => Number(a.successor !== undefined) - Number(b.successor !== undefined))
    .map(({ path }) => withToken(path, token));
}

/** The paths that are deprecated. */
export function deprecatedPaths(routes: readonly Route[]): string[] {
  return routes.filter(({ successor }) => successor !== undefined).map(({ path }) => path);
}

/** The path under which a route has an item. */
export function withToken(path: string, token: Token): string {
  return path.replace(":token", token);
}

/** What a request is about. */
export interface Target {
  /** `undefined` when there is no such route. */
  readonly route?: Route;
  /** What stands in the place of the token, as it was sent. */
  readonly segment: string;
  /** `undefined` when the segment is no token. */
  readonly token?: Token | undefined;
  /** The request names no host, so nothing can be said of where it leads. */
  readonly hasInvalidHost?: true;
}

/** Finds what a request is about, by its URL and its Host field. */
export type Matcher = (url: string, host?: string | null) => Target;

/** Prepares the lookup of a request's URL among routes; the first of one path counts. */
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
    // The path alone decides, so that no name of this server can make a difference.
    const path = pathOf(url);
    const target = find(path);
    return target.token === undefined ? find(normalize(path)) : target;
  };
}

/** The path of an absolute URL, as it was sent. */
function pathOf(url: string): string {
  return /^[^:]*:\/\/[^/?#]*([^?#]*)/.exec(url)?.[1] ?? "";
}

/** A path as URLs have it: without dot segments, and with each character encoded in one way. */
function normalize(path: string): string {
  return new URL(`http://localhost${decodeUnreserved(path)}`).pathname;
}

/** An unreserved character means the same when it is percent-encoded (RFC 3986 §6.2.2.2). */
function decodeUnreserved(path: string): string {
  return path.replaceAll(/%[2-7][0-9a-f]/gi, (encoded) => {
    const char = String.fromCharCode(parseInt(encoded.slice(1), 16));
    return /[\w.~-]/.test(char) ? char : encoded;
  });
}
