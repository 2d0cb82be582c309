/**
 * Routes: what a server answers, and finding the one that a request is about.
 */

import type { Kind } from "../storage/storage.ts";
import { parseToken, type Token } from "./token.ts";

/** A route: where it is, what it takes, and what it serves. */
export interface Route {
  /** A `URLPattern` path; `:token` stands for the token. Case and trailing slashes matter. */
  readonly path: string;
  readonly methods: readonly string[];
  /** The kinds of media published here, or what else there is to see. */
  readonly serves: readonly Kind[] | "health" | "notice" | "description";
  readonly isDeprecated?: true;
}

/** What a request is about. */
export interface Target {
  /** `undefined` when there is no such route. */
  readonly route?: Route;
  /** What stands in the place of the token, as it was sent. */
  readonly segment: string;
  /** `undefined` when the segment is no token. */
  readonly token?: Token | undefined;
}

/** Prepares the look-up of a request's URL among routes; the first that fits counts. */
export function createMatcher(routes: readonly Route[]): (url: string) => Target {
  const patterns = routes.map((route) => ({ route, at: new URLPattern({ pathname: route.path }) }));
  return (url) => {
    for (const { route, at } of patterns) {
      const found = at.exec(url); // null, too, for a URL that cannot be parsed
      if (found === null) continue;
      const segment = found.pathname.groups["token"] ?? "";
      return { route, segment, token: parseToken(segment) };
    }
    return { segment: "" };
  };
}
