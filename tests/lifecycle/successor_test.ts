import { assert, assertEquals, assertThrows } from "@std/assert";
import { assertSpyCalls, stub } from "@std/testing/mock";
import { definePolicy, withLifecycle } from "../../lib/lifecycle/mod.ts";
import { needing } from "../support/permissions.ts";
import { field, requestRaw } from "../support/raw_http.ts";

const test = needing("network");

const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30",
  afterSunset: "redirect",
});
const [DEPRECATED, REMOVED] = [Date.parse("2027-02-01"), Date.parse("2027-07-01")];

/** The responses before and after the sunset, as far as the successor goes. */
async function answersFor(
  successor: (request: Request) => string | undefined,
  { url = "http://test/v1/a", ...options }: { url?: string; successorOrigin?: string } = {},
) {
  const answerAt = (instant: number) => {
    const common = { ...options, successor, clock: () => instant };
    return withLifecycle(() => new Response("old"), POLICY, common)(new Request(url));
  };
  const [before, after] = [await answerAt(DEPRECATED), await answerAt(REMOVED)];
  return {
    link: before.headers.get("link"),
    statuses: [before.status, after.status],
    location: after.headers.get("location"),
  };
}

const BAD = [
  ...["", "v2/a", "?v=2", "#a", "../v2", "evil.example/a"],
  ...["//evil.example/v2/a", "///evil.example", "/\\evil.example", "\\/evil.example", "\\\\evil"],
  ...["/\t/evil.example", "\t//evil.example", "/\n/evil.example", " //evil.example", "/\r\nX: y"],
  ...["https://evil.example/", "https://evil.example", "http:/evil.example", "https:evil.example"],
  ...["http://test.evil.example/a", "http://test@evil.example/a", "http://test:80@evil.example/"],
  ...["http://test\\@evil.example/", "http://test//evil.example/", "http://test", "HTTP://test/a"],
  ...["https://new.test.evil.example/", "https://new.test@evil.example/", "https://new.test:444/"],
  ...["javascript:alert(1)", "data:text/html,x", "ftp://test/a"],
  ...["/" + "a".repeat(1024), "https://new.test/" + "a".repeat(1024)],
  ...["/a b", '/a"b', "/a<b", '/a>; rel="x", </b', "/ä", "/€", "/a\0b", "/a\x7f", "/a\u2028"],
];

Deno.test("withLifecycle() ignores a successor that is not a path or at an allowed origin", async () => {
  using _warn = stub(console, "warn");
  for (const bad of BAD) {
    const answers = await answersFor(() => bad, { successorOrigin: "https://new.test" });
    const note = JSON.stringify(bad);
    assertEquals(answers, { link: null, statuses: [200, 410], location: null }, note);
  }
});

Deno.test("withLifecycle() ignores a successor that is not a string, and exceptions", async () => {
  const functions = [
    () => 5 as unknown as string,
    () => null as unknown as string,
    () => new URL("https://evil.example/") as unknown as string,
    () => Promise.resolve("/v2/a") as unknown as string,
    ({ url }: Request) => decodeURIComponent(new URL(url).pathname),
  ];
  for (const successor of functions) {
    using warn = stub(console, "warn");
    const answers = await answersFor(successor, { url: "http://test/v1/%ff" });
    assertEquals(answers, { link: null, statuses: [200, 410], location: null });
    assertSpyCalls(warn, 2); // each of the two handlers warns once
  }
});

Deno.test("withLifecycle() warns once, and never about a missing successor", async () => {
  using warn = stub(console, "warn");
  const answer = withLifecycle(() => new Response("old"), POLICY, { successor: () => "//x" });
  for (let time = 0; time < 3; time++) await answer(new Request("http://test/"));
  await answersFor(() => undefined);
  await answersFor(() => "/v2");
  assertSpyCalls(warn, 1);
});

Deno.test("withLifecycle() ignores a successor that is what was requested", async () => {
  using _warn = stub(console, "warn");
  for (const same of ["/v1/a?b", "/v1/x/../a?b", "http://test/v1/a?b#c"]) {
    const answers = await answersFor(() => same, { url: "http://test/v1/a?b" });
    assertEquals(answers, { link: null, statuses: [200, 410], location: null }, same);
  }
});

Deno.test("withLifecycle() accepts a path, and a URL at an allowed origin", async () => {
  const good = [
    ...[
      "/",
      "/v2/a",
      "/v2/a?x=1&y=[2]#z",
      "/v2/%2F%5C%09",
      "/v2//a",
      "/.//evil.example",
      "/a|b^`{}",
    ],
    ...["http://test/v2/a", "https://new.test/v2/a", "https://new.test/"],
    ...["/" + "a".repeat(1023), "http://test/" + "a".repeat(1023)],
  ];
  for (const successor of good) {
    const answers = await answersFor(() => successor, { successorOrigin: "https://new.test" });
    const location = successor.replace(/^http:\/\/test/, ""); // its own origin is not sent
    const link = `<${location}>; rel="successor-version"`;
    assertEquals(answers, { link, statuses: [200, 308], location });
  }
});

Deno.test("withLifecycle() rejects a successorOrigin that is not an origin", () => {
  for (
    const successorOrigin of ["", "new.test", "https://new.test/", "https://new.test/v2", "ftp://a"]
  ) {
    const wrap = () => withLifecycle(() => new Response(), POLICY, { successorOrigin });
    assert(
      assertThrows(wrap, TypeError).message.endsWith(`got ${JSON.stringify(successorOrigin)}`),
    );
  }
});

Deno.test("the README's successor stays on the site for any path", async () => {
  const pieces = [
    ...["/", "\\", "//", "/v1/", "v1", "..", ".", "%2e%2e", "%2f", "%5c", "%09", "\t", "\n", "@"],
    ...["evil.example", "https:", "http:", ":", "?", "#", "|", "<", ">", '"', " ", "ä", "%ff"],
  ];
  const pairs = pieces.flatMap((a) => pieces.map((b) => a + b));
  const successor = ({ url }: Request) => new URL(url).pathname.replace("/v1/", "/v2/");
  let redirects = 0;
  using _warn = stub(console, "warn");
  for (const path of pairs.flatMap((pair) => [`/${pair}/v1/x`, `/v1/${pair}`, `/v1/${pair}x`])) {
    const url = `http://test${path}`;
    const { link, statuses, location } = await answersFor(successor, { url });
    if (location === null) {
      assertEquals([link, statuses], [null, [200, 410]], path);
      continue;
    }
    redirects++;
    assertEquals(new URL(location, url).origin, "http://test");
    assertEquals(link, `<${location}>; rel="successor-version"`);
    assert(/^<[^<>"\s\\]*>; rel="successor-version"$/.test(link ?? ""), location);
  }
  assert(redirects > 100, `only ${redirects} were redirected`);
});

test("no request makes a successor point off the site", async () => {
  const successors = [
    ({ url }: Request) => new URL(url).pathname.replace("/v1/", "/v2/"), // as in the README
    ({ url }: Request) => url.replace("/v1/", "/v2/"),
  ];
  const rows: [target: string, host: string, locations: (string | undefined)[]][] = [
    ["/v1/a", "a", ["/v2/a", "/v2/a"]],
    ["/v1/a", "a:99999", []],
    ["/v1/a", "[::1", []],
    ["/v1/a", "a b", []],
    ["//evil.example/v1/a", "a", []],
    ["/\\evil.example/v1/a", "a", []],
    ["///evil.example/v1/a", "a", []],
    ["/v1/..//evil.example", "a", [undefined, "/v2/..//evil.example"]],
  ];
  using _warn = stub(console, "warn");
  for (const [index, successor] of successors.entries()) {
    const options = { successor, clock: () => REMOVED };
    const handler = withLifecycle(() => new Response("old"), POLICY, options);
    const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, handler);
    for (const [target, Host, { [index]: location }] of rows) {
      for (const method of ["GET", "HEAD"]) {
        const answer = await requestRaw(server.addr.port, method, target, { Host });
        const status = location === undefined ? 410 : 308;
        const note = `${method} ${target} of ${Host}`;
        assertEquals([answer.status, field(answer, "location")], [status, location], note);
      }
    }
    await server.shutdown();
  }
});
