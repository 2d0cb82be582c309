import { assertEquals } from "@std/assert";
import {
  match,
  type Pattern,
  patternOf,
  successorOf,
  tiesIn,
} from "../../../lib/usage/front/routing.ts";
import { randomFrom } from "../../support/random.ts";

const routesOf = (...paths: string[]) =>
  paths.map((path) => ({ path, pattern: patternOf(path) as Pattern }));

const ROUTES = routesOf(
  ...["/v1", "/v1/songs", "/v1/:kind", "/v1/:kind/top", "/users/:id/avatar", "/users/me", "/é/a b"],
);

Deno.test("match() returns the most specific route, and what its names stand for", () => {
  const rows: [target: string, path?: string, values?: object, rest?: string[]][] = [
    ["/v1", "/v1"],
    ["/v1/", "/v1", {}, [""]],
    ["/v1/songs", "/v1/songs"],
    ["/V1/Songs/7?a=/users", "/v1/songs", {}, ["7"]],
    ["/v1/albums", "/v1/:kind", { kind: "albums" }],
    ["/v1/albums/7", "/v1/:kind", { kind: "albums" }, ["7"]],
    ["/v1/albums/top/7", "/v1/:kind/top", { kind: "albums" }, ["7"]],
    ["/v1/songs/top", "/v1/songs", {}, ["top"]], // a literal comes before a name, however long
    ["/users/7/avatar", "/users/:id/avatar", { id: "7" }],
    ["/users/a%2Fb/avatar/x", "/users/:id/avatar", { id: "a%2Fb" }, ["x"]],
    ["/users/me/avatar", "/users/me", {}, ["avatar"]],
    ["/users//avatar"],
    ["/users/7"],
    ["/%761/x", "/v1/:kind", { kind: "x" }],
    ["/v2/../v1", "/v1"],
    ["//v1", "/v1"],
    ["/%C3%A9/a%20b", "/é/a b"],
    ["http://h/v1", "/v1"],
    ["//h/v1/x"],
    ["/v10"],
    ["/v1%2Fsongs"],
    ["*"],
    ["/"],
  ];
  for (const [target, path, values = {}, rest = []] of rows) {
    const found = match(ROUTES, target);
    assertEquals(found?.route.path, path, target);
    if (found === undefined) continue;
    assertEquals([Object.fromEntries(found.values), found.rest], [values, rest], target);
  }
});

Deno.test("match() agrees with a search through all routes, in whatever order they are given", () => {
  const random = randomFrom(1);
  const below = (limit: number) => Math.floor(random() * limit);
  const some = <T>(from: readonly T[]) => from[below(from.length)] as T;
  const path = (segments: readonly string[]) =>
    `/${Array.from({ length: 1 + below(4) }, () => some(segments)).join("/")}`;
  /** The more specific one comes first: at each segment a literal, then a name, then the end. */
  const keyOf = (path: string) =>
    path.split("/").slice(1).map((segment) => segment.startsWith(":") ? 1 : 0).join("") + "2";
  for (let round = 0; round < 2_000; round++) {
    let named = 0;
    const all = Array.from({ length: 1 + below(6) }, () => path(["a", "b", "c", ":"]))
      .map((path) => path.replaceAll(":", () => `:n${named++}`));
    const shapeOf = (path: string) => path.replaceAll(/:\w+/g, ":");
    const paths = all.filter((path, at) => all.map(shapeOf).indexOf(shapeOf(path)) === at);
    const routes = routesOf(...paths);
    assertEquals(tiesIn(routes.map(({ pattern }) => pattern)), []);
    const target = path(["a", "b", "c", "d"]);
    const matching = paths.filter((path) =>
      RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}(?:/|$)`).test(target)
    );
    const [first] = matching.sort((a, b) => keyOf(a) < keyOf(b) ? -1 : 1);
    assertEquals(match(routes, target)?.route.path, first, `${paths} ${target}`);
    assertEquals(match(routes.toReversed(), target)?.route.path, first, `${paths} ${target}`);
  }
});

Deno.test("tiesIn() finds paths that differ in no more than names, case and escapes", () => {
  const patterns = routesOf("/a/:b", "/a/b", "/A/:c/", "/a", "/%61").map(({ pattern }) => pattern);
  assertEquals(tiesIn(patterns), [["/a/:b", "/A/:c/"], ["/a", "/%61"]]);
});

Deno.test("patternOf() refuses what is no path, and names that repeat", () => {
  for (const path of ["v1", "", "/v1/*", "/v1?a", "/v1#a", "/:a/:a", "/:", "/:1", "/(a)", "/{a}"]) {
    assertEquals(patternOf(path), undefined, path);
  }
});

Deno.test("successorOf() replaces the prefix and the names, and keeps the rest and the query", () => {
  const rows = [
    ["/v1", "/v2", "/v1", "/v2"],
    ["/v1", "/v2", "/v1/", "/v2/"],
    ["/v1", "/v2/", "/v1/x", "/v2/x"],
    ["/v1", "/", "/v1/x?y=/v1&z#w", "/x?y=/v1&z"],
    ["/v1", "/v2", "/v1/a%2Fb/c%20d?", "/v2/a%2Fb/c%20d?"],
    ["/v1", "https://example.com/v2", "/%761/x", "https://example.com/v2/x"],
    ["/u/:id/avatar", "/people/:id/picture", "/u/$&/avatar/x?y", "/people/$&/picture/x?y"],
    ["/u/:id", "/:id/:id", "/u/7", "/7/7"],
    ["/", "/new", "/a/b", "/new/a/b"],
  ] as const;
  for (const [path, successor, target, expected] of rows) {
    const found = match(routesOf(path), target);
    assertEquals(found && successorOf(successor, found, target), expected, target);
  }
});
