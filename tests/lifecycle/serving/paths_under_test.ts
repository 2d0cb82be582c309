import { assertEquals, assertThrows } from "@std/assert";
import { type PathOptions, pathsUnder } from "../../../lib/lifecycle/mod.ts";
import { UNREADABLE } from "../../support/unreadable.ts";

/** Targets of requests, whether they are under `/v1`, and which of both options matters to them. */
const ROWS: [target: string, isUnder: boolean, option?: keyof PathOptions][] = [
  ["/v1", true],
  ["/v1/", true],
  ["/v1/songs", true],
  ["/v1?page=2", true],
  ["/v1/songs?next=/v2", true],
  ["/v1#top", true],
  ["/v10", false],
  ["/v1.1/songs", false],
  ["/v1;a/songs", false],
  ["/v2/v1", false],
  ["/", false],
  ["", false],
  ["/?/v1", false],
  ["*", false],
  ["v1:80", false], // of CONNECT
  ["https:", false],
  ["/V1/songs", true, "caseSensitive"],
  ["/%761/songs", true],
  ["/%561/songs", true, "caseSensitive"], // %56 is V
  ["/v%31", true],
  ["/v1%2Fsongs", false], // an encoded slash separates nothing
  ["/v1%2fsongs", false],
  ["/%2576%31", false], // decoded once
  ["/v1%3Fa", false],
  ["/%", false],
  ["/v1/%zz", true],
  ["http://example.com/v1/songs", true],
  ["HTTPS://[::1]:80/v1", true],
  ["http://example.com", false],
  ["http://v1/songs", false],
  ["http://a?/v1", false],
  ["http://[/v1", true], // an authority that is none
  ["//v1/songs", true, "collapse"],
  ["//h/v1/songs", false], // a path, though a URL parser takes h for a host
  ["/v2/../v1", true, "collapse"],
  ["/v2/%2e%2E/v1", true, "collapse"],
  ["/./v1", true, "collapse"],
  ["/v2//../v1", true, "collapse"],
  ["/../v1", true, "collapse"],
  ["/v2/..\\v1", true, "collapse"],
  ["http://example.com//v1", true, "collapse"],
  ["/v1/../v2", false, "collapse"],
  ["/v1/%2e%2e/v2", false, "collapse"],
];

Deno.test("pathsUnder() tests for a path and what is below it, as each option says", () => {
  const all: [PathOptions, keyof PathOptions | undefined][] = [
    [{}, undefined],
    [{ caseSensitive: true }, "caseSensitive"],
    [{ collapse: false }, "collapse"],
  ];
  for (const [options, changed] of all) {
    const isOld = pathsUnder("/v1", options);
    for (const [target, isUnder, option] of ROWS) {
      const note = `${target} ${JSON.stringify(options)}`;
      assertEquals(isOld(target), option === changed && option ? !isUnder : isUnder, note);
    }
  }
});

Deno.test("pathsUnder() takes requests of any framework, and URLs", () => {
  const isOld = pathsUnder("/v1");
  for (const [path, isUnder] of [["/V1/songs?a", true], ["/v10", false]] as const) {
    const url = `https://example.com${path}`;
    assertEquals(isOld(new Request(url)), isUnder);
    assertEquals(isOld(new URL(url)), isUnder);
    assertEquals(isOld({ url: path }), isUnder);
    assertEquals(isOld({ url: "/", originalUrl: path }), isUnder); // as mounted in Express
  }
  assertEquals(isOld({}), false);
  for (const odd of [undefined, null, 7, "", {}, ...Object.values(UNREADABLE)]) { // counts as absent
    const locate = (request: unknown) => isOld(request as { url?: string });
    assertEquals([locate(odd), locate({ url: odd })], [false, false]);
    assertEquals(locate({ url: "/v1", originalUrl: odd }), true);
    assertEquals(locate({ url: odd, originalUrl: "/v1" }), true);
  }
});

Deno.test("pathsUnder() compares any path as requests spell it, and refuses what is none", () => {
  const rows: [path: string, target: string][] = [
    ["/v1/", "/v1"],
    ["/", "/anything"],
    ["/V1", "/v1"],
    ["/%76%31", "/v1"],
    ["/café", "/caf%c3%a9/menu"],
    ["/caf%c3%a9", "/caf%C3%A9"],
    ["/api/v1", "/api//v1/songs"],
  ];
  for (const [path, target] of rows) assertEquals(pathsUnder(path)(target), true, path);
  assertEquals(pathsUnder("/caf%c3%a9", { caseSensitive: true })("/caf%C3%A9"), true);
  for (const path of ["v1", "", "https://example.com/v1", undefined, ["/v1"], /v1/]) {
    const compare = () => pathsUnder(path as string);
    assertThrows(compare, TypeError, 'expected one that starts with "/", got');
  }
  const misspelt = { casesensitive: true } as PathOptions;
  const expected = 'options: expected only caseSensitive, collapse, got "casesensitive"';
  assertThrows(() => pathsUnder("/v1", misspelt), TypeError, expected);
  const patterns = [
    ...[["/v1/*", "/v1"], ["/v1/:id", "/v1"], ["/v1/:id/songs", "/v1"], ["/v1(.*)", "/v1"]],
    ...[["/v1/(.*)", "/v1"], ["/api/*/v1", "/api"], ["/*", "/"], ["/v1/*/", "/v1"]],
  ];
  for (const [path = "", literal] of patterns) {
    const expected = `path: expected one without patterns, like "${literal}", got "${path}"`;
    assertThrows(() => pathsUnder(path), TypeError, expected);
  }
  for (const path of ["/v1/songs:batchGet", "/v1/a*b", "/v1/**", "/v1/a.*"]) {
    assertEquals(pathsUnder(path)(path), true, path);
  }
});
