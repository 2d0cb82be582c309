/** Which retired path a request is for. */

import { resolvedPath } from "../../lifecycle/serving/paths_under.ts";

/** A segment of a retired path: itself, or a name that stands for any. */
type Segment = { readonly literal: string } | { readonly name: string };

/** A retired path, and what is below it. */
export interface Pattern {
  /** The path as it was given. */
  readonly path: string;
  readonly segments: readonly Segment[];
  /** The names of its segments. */
  readonly names: readonly string[];
}

/** Returns the pattern of a path; `undefined` if it is none. */
export function patternOf(path: string): Pattern | undefined {
  if (!path.startsWith("/") || /[?#*(){}\\]/.test(path)) return undefined;
  const parts = resolvedPath(path.replace(/[^!-~]+/g, encodeURIComponent))
    .replace(/\/+$/, "").split("/").slice(1);
  const segments = parts.map((part): Segment =>
    part.startsWith(":") ? { name: part.slice(1) } : { literal: part.toLowerCase() }
  );
  const names = segments.flatMap((segment) => "name" in segment ? [segment.name] : []);
  const areNames = names.every((name) => /^[A-Za-z_]\w*$/.test(name));
  return areNames && new Set(names).size === names.length ? { path, segments, names } : undefined;
}

/** A request for a retired path. */
export interface Match<Route> {
  readonly route: Route;
  /** What the names of segments stand for. */
  readonly values: ReadonlyMap<string, string>;
  /** The segments below the retired path. */
  readonly rest: readonly string[];
}

/**
 * Returns the most specific route that a request is for, as proxies and URL parsers read its target:
 * segment by segment, a literal comes before a name, and then the longer path. `undefined` if it is for
 * none.
 */
export function match<Route extends { readonly pattern: Pattern }>(
  routes: readonly Route[],
  target: string,
): Match<Route> | undefined {
  const parts = resolvedPath(target).split("/").slice(1);
  const [route] = routes.filter(({ pattern }) => isUnder(parts, pattern))
    .sort((a, b) => compare(a.pattern, b.pattern));
  if (route === undefined) return undefined;
  const { segments } = route.pattern;
  const values = segments.flatMap((segment, at): [string, string][] =>
    "name" in segment ? [[segment.name, parts[at] ?? ""]] : []
  );
  return { route, values: new Map(values), rest: parts.slice(segments.length) };
}

function isUnder(parts: readonly string[], { segments }: Pattern): boolean {
  return segments.every((segment, at) => {
    const part = parts[at];
    if (part === undefined) return false;
    return "name" in segment ? part !== "" : part.toLowerCase() === segment.literal;
  });
}

/** Orders patterns that have a path in common: the more specific one first. */
function compare(a: Pattern, b: Pattern): number {
  const rankOf = (segment: Segment | undefined) =>
    segment === undefined ? 2 : "literal" in segment ? 0 : 1;
  const length = Math.max(a.segments.length, b.segments.length);
  for (let at = 0; at < length; at++) {
    const order = rankOf(a.segments[at]) - rankOf(b.segments[at]);
    if (order !== 0) return order;
  }
  return 0;
}

/** Returns each two paths that differ in the names of their segments at most. */
export function tiesIn(patterns: readonly Pattern[]): [first: string, second: string][] {
  const shapeOf = ({ segments }: Pattern) =>
    segments.map((segment) => "name" in segment ? ":" : segment.literal).join("/");
  return patterns.flatMap((pattern, at): [string, string][] => {
    const earlier = patterns.slice(0, at).find((each) => shapeOf(each) === shapeOf(pattern));
    return earlier === undefined ? [] : [[earlier.path, pattern.path]];
  });
}

/** Returns what replaces the target of a request: a successor, with what was below, and the query. */
export function successorOf(
  successor: string,
  { values, rest }: Pick<Match<unknown>, "values" | "rest">,
  target: string,
): string {
  const path = successor.replaceAll(/\/:(\w+)/g, (_, name) => `/${values.get(name) ?? ""}`);
  const below = rest.length === 0 ? "" : `${path.endsWith("/") ? "" : "/"}${rest.join("/")}`;
  const [query = ""] = /\?[^#]*/.exec(target) ?? [];
  return `${path}${below}${query}`;
}
