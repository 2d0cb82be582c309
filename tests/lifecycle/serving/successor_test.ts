import { assert, assertEquals } from "@std/assert";
import { assertSpyCalls, stub } from "@std/testing/mock";
import { withLifecycle } from "../../../lib/lifecycle/mod.ts";
import { DEPRECATED, POLICY as GONE, REMOVED } from "../../support/application_calls.ts";
import { needing } from "../../support/permissions.ts";
import { field, requestRaw } from "../../support/raw_http.ts";

const test = needing("network");

const POLICY = { ...GONE, afterSunset: "redirect" } as const;

type Successor = (request: Request) => string | undefined;

/** The responses before and after the sunset, as far as the successor goes; each the second one. */
async function answersFor(
  successor: Successor,
  { url = "http://test/v1/a", ...options }: { url?: string; successorOrigin?: string } = {},
) {
  const answerAt = async (instant: number) => {
    const common = { ...options, successor, clock: () => instant };
    const retired = withLifecycle(() => new Response("old"), POLICY, common);
    await retired(new Request(url));
    return await retired(new Request(url));
  };
  const [before, after] = [await answerAt(DEPRECATED), await answerAt(REMOVED)];
  return {
    link: before.headers.get("link"),
    statuses: [before.status, after.status],
    location: after.headers.get("location"),
  };
}

/** As in the library's README. */
const documented: Successor = ({ url }) => {
  const { pathname, search } = new URL(url);
  return pathname.replace(/^\/+[^/]+/, "/v2") + search;
};

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

Deno.test("withLifecycle() ignores a successor that is not safe to send, and warns once", async () => {
  const rows: [successor: Successor, url: string][] = [
    ...BAD.map((bad): [Successor, string] => [() => bad, "http://test/v1/a"]),
    ...["/v1/a?b", "/v1/x/../a?b", "http://test/v1/a?b#c"].map((same): [Successor, string] => [
      () => same, // as was requested
      "http://test/v1/a?b",
    ]),
    ...[5, null, new URL("https://evil.example/"), Promise.resolve("/v2/a")].map(
      (value: unknown): [Successor, string] => [() => value as string, "http://test/v1/a"],
    ),
    [({ url }) => decodeURIComponent(new URL(url).pathname), "http://test/v1/%ff"], // throws
  ];
  for (const [successor, url] of rows) {
    using warn = stub(console, "warn");
    const answers = await answersFor(successor, { url, successorOrigin: "https://new.test" });
    const note = JSON.stringify(warn.calls[0]?.args);
    assertEquals(answers, { link: null, statuses: [200, 410], location: null }, note);
    assertSpyCalls(warn, 2); // one of each handler
  }
});

Deno.test("withLifecycle() accepts a path, and a URL at an allowed origin", async () => {
  const good = [
    ...["/", "/v2/a", "/v2/a?x=1&y=[2]#z", "/v2/%2F%5C%09", "/v2//a", "/.//evil.example"],
    ...["/a|b^`{}", "http://test/v2/a", "https://new.test/v2/a", "https://new.test/"],
    ...["/" + "a".repeat(1023), "http://test/" + "a".repeat(1023)],
  ];
  using warn = stub(console, "warn");
  for (const successor of good) {
    const answers = await answersFor(() => successor, { successorOrigin: "https://new.test" });
    const location = successor.replace(/^http:\/\/test/, ""); // its own origin is not sent
    const link = `<${location}>; rel="successor-version"`;
    assertEquals(answers, { link, statuses: [200, 308], location });
  }
  await answersFor(() => undefined);
  assertSpyCalls(warn, 0);
});

Deno.test("the README's successor stays on the site for any path", async () => {
  const pieces = [
    ...["/", "\\", "//", "/v1/", "v1", "..", ".", "%2e%2e", "%2f", "%5c", "%09", "\t", "\n", "@"],
    ...["evil.example", "https:", "http:", ":", "?", "#", "|", "<", ">", '"', " ", "ä", "%ff"],
  ];
  const pairs = pieces.flatMap((a) => pieces.map((b) => a + b));
  let redirects = 0;
  using _warn = stub(console, "warn");
  for (const path of pairs.flatMap((pair) => [`/${pair}/v1/x`, `/v1/${pair}`, `/v1/${pair}x`])) {
    const url = `http://test${path}`;
    const { link, statuses, location } = await answersFor(documented, { url });
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
    documented,
    ({ url }: Request) => url.replace("/v1/", "/v2/"),
  ];
  const rows: [target: string, host: string, locations: (string | undefined)[]][] = [
    ["/v1/a", "a", ["/v2/a", "/v2/a"]],
    ["/v1/a", "a:99999", []],
    ["/v1/a", "[::1", []],
    ["/v1/a", "a b", []],
    ["//evil.example/v1/a", "a", ["/v2/v1/a"]],
    ["/\\evil.example/v1/a", "a", ["/v2/v1/a"]],
    ["///evil.example/v1/a", "a", ["/v2/v1/a"]],
    ["/v1/..//evil.example", "a", ["/v2", "/v2/..//evil.example"]],
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
