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
  /** A `URLPattern` path; `:token` stands for the token. Case and trailing slashes matter. */
  readonly path: string;
  /** The kinds of media published here, or what else is served. */
  readonly serves: readonly Kind[] | "health" | Document;
  /** The path that replaces this one, which is deprecated. */
  readonly successor?: string;
}

/** What the server makes of its own routes and policy: a page about them, and OpenAPI. */
export type Document = "notice" | "description";

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

/** Prepares the lookup of a request's URL among routes; the first that fits counts. */
export function createMatcher(routes: readonly Route[]): Matcher {
  const patterns = routes.map((route) => ({ route, at: new URLPattern({ pathname: route.path }) }));
  const find = (path: string): Target => {
    for (const { route, at } of patterns) {
      const found = at.exec(path); // null, too, for a URL that cannot be parsed
      if (found !== null) return { route, segment: found.pathname.groups["token"] ?? "" };
    }
    return { segment: "" };
  };
  // A URLPattern takes 7 µs for a text that is new to it, as each token is; what stands before is not.
  const targets = new Map<string, Target>();
  return (url, host = null) => {
    if (!isHost(host)) return { segment: "", hasInvalidHost: true };
    // The path alone decides, so that no name of this server can make a difference.
    const path = shorten(`http://localhost${decodeUnreserved(pathOf(url))}`);
    const start = path.lastIndexOf("/") + 1;
    const [before, segment] = [path.slice(0, start), path.slice(start)];
    const token = parseToken(segment);
    if (token === undefined) return find(path);
    let target = targets.get(before);
    if (target === undefined) {
      if (targets.size === MAX_TARGETS) targets.clear();
      targets.set(before, target = find(path));
    }
    return target.route === undefined ? target : { route: target.route, segment, token };
  };
}

/** Targets remembered by what stands before a token; clients choose that. */
const MAX_TARGETS = 64;

/** The path of an absolute URL, as it was sent. */
function pathOf(url: string): string {
  return /^[^:]*:\/\/[^/?#]*([^?#]*)/.exec(url)?.[1] ?? "";
}

/** Characters of a path, and of one segment: more than any route or token has. */
const [MAX_PATH, MAX_SEGMENT] = [512, 128];

/**
 * Cuts what no route and no token is as long as. Deno's URLPattern keeps the last 4,096 texts that
 * it was given, and clients choose how long those are.
 */
function shorten(url: string): string {
  if (url.length <= MAX_PATH) return url;
  const { origin, pathname } = new URL(url); // without dots, as a pattern takes it
  const segments = pathname.split("/").map((segment) => segment.slice(0, MAX_SEGMENT));
  return origin + segments.join("/").slice(0, MAX_PATH);
}

/** An unreserved character means the same when it is percent-encoded (RFC 3986 §6.2.2.2). */
function decodeUnreserved(path: string): string {
  return path.replaceAll(/%[2-7][0-9a-f]/gi, (encoded) => {
    const char = String.fromCharCode(parseInt(encoded.slice(1), 16));
    return /[\w.~-]/.test(char) ? char : encoded;
  });
}
