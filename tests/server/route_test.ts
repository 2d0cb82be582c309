import { assert, assertEquals } from "@std/assert";
import fc from "../support/fast_check.ts";
import { createMatcher, type Route } from "../../lib/server/route.ts";
import { parseToken } from "../../lib/storage/token.ts";

const TOKEN = "5b6ea11c-9c5e-4b58-8f6b-0a7a6cf5d1e0";

const ROUTES: readonly Route[] = [
  { path: "/audio/:token", serves: ["audio"], successor: "/media/:token" },
  { path: "/media/:token", serves: ["audio", "video"] },
  { path: "/healthz", serves: "health" },
];

const match = createMatcher(ROUTES);

Deno.test("createMatcher() finds the route, the segment and the token", () => {
  const rows: [url: string, path?: string, segment?: string, token?: string][] = [
    [`http://x.test/audio/${TOKEN}`, "/audio/:token", TOKEN, TOKEN],
    [`http://x.test/media/${TOKEN}`, "/media/:token", TOKEN, TOKEN],
    [`https://x.test:8443/media/${TOKEN}`, "/media/:token", TOKEN, TOKEN],
    [`http://[::1]:8000/media/${TOKEN}`, "/media/:token", TOKEN, TOKEN],
    [`http://x.test/media/${TOKEN}?a=/healthz#b`, "/media/:token", TOKEN, TOKEN],
    [`http://x.test/media/${TOKEN}?`, "/media/:token", TOKEN, TOKEN],
    [`http://x.test/y/../media/./${TOKEN}`, "/media/:token", TOKEN, TOKEN],
    [`http://x.test/media/${TOKEN.toUpperCase()}`, "/media/:token", TOKEN.toUpperCase(), TOKEN],
    ["http://x.test/healthz", "/healthz", ""],
    ["http://x.test/healthz?now", "/healthz", ""],
    [`http://x.test:99999/media/${TOKEN}`, "/media/:token", TOKEN, TOKEN], // the Host check rejects it

    // Percent-encoded, but unreserved (RFC 3986 §6.2.2.2).
    [`http://x.test/%6dedia/${TOKEN}`, "/media/:token", TOKEN, TOKEN],
    [`http://x.test/%6Dedi%61/${TOKEN.replaceAll("-", "%2D")}`, "/media/:token", TOKEN, TOKEN],
    [`http://x.test/media/%35${TOKEN.slice(1)}`, "/media/:token", TOKEN, TOKEN],
    [`http://x.test/media/x/%2E%2e/${TOKEN}`, "/media/:token", TOKEN, TOKEN],
    ["http://x.test/media/%7E%5F%2e", "/media/:token", "~_."],
    ["http://x.test/he%61lthz?%61", "/healthz", ""],

    // A route, but not a token.
    ["http://x.test/media/x", "/media/:token", "x"],
    ["http://x.test/media/:token", "/media/:token", ":token"],
    [`http://x.test/media/%2535${TOKEN.slice(1)}`, "/media/:token", `%2535${TOKEN.slice(1)}`],
    ["http://x.test/media/%40%5B%60%7B%3a", "/media/:token", "%40%5B%60%7B%3a"],
    [`http://x.test/media/${TOKEN}%2F`, "/media/:token", `${TOKEN}%2F`],
    [`http://x.test/media/${TOKEN}%00`, "/media/:token", `${TOKEN}%00`],
    [`http://x.test/media/${TOKEN}.mp3`, "/media/:token", `${TOKEN}.mp3`],
    ["http://x.test/media/é", "/media/:token", "%C3%A9"],

    // Long.
    [`http://x.test/media/${"x".repeat(500)}`, "/media/:token", "x".repeat(500)],
    [`http://x.test/media/${TOKEN}${"x".repeat(500)}`, "/media/:token", TOKEN + "x".repeat(500)],
    [`http://x.test/${"x/../".repeat(200)}media/${TOKEN}`, "/media/:token", TOKEN, TOKEN],
    [`http://x.test/media/${TOKEN}/${"x".repeat(500)}`],
    [`http://x.test/media/${"x/".repeat(300)}`],
    [`http://x.test/media/${"/".repeat(600)}`],
    [`http://x.test/media${"x".repeat(600)}/${TOKEN}`],

    // No route.
    ["http://x.test/"],
    ["http://x.test/media"],
    ["http://x.test/media/"],
    [`http://x.test/media/${TOKEN}/`],
    [`http://x.test/media/${TOKEN}/x`],
    [`http://x.test//media/${TOKEN}`],
    [`http://x.test/media//${TOKEN}`],
    [`http://x.test/Media/${TOKEN}`],
    [`http://x.test/%4dedia/${TOKEN}`],
    [`http://x.test%2Fmedia/${TOKEN}`],
    [`http://x.test/%2Fmedia/${TOKEN}`],
    [`http://x.test/video/${TOKEN}`],
    [`http://x.test/y/media/${TOKEN}`],
    [`http://x.test/?/media/${TOKEN}`],
    ["http://x.test/healthz/"],
    ["http://x.test/HEALTHZ"],
    ["http://x.test/healthzz"],
    [`/media/${TOKEN}`], // not a URL
    ["*"],
    [""],
  ];
  for (const [url, path, segment = "", token] of rows) {
    const target = match(url);
    const seen = [target.route?.path, target.segment, target.token as string | undefined];
    assertEquals(seen, [path, segment, token], url);
  }
});

Deno.test("createMatcher() finds no route if the Host field is invalid", () => {
  const url = `http://a/media/${TOKEN}?/healthz`; // as Deno builds it
  assertEquals(match(url, `a/media/${TOKEN}?`), { segment: "", hasInvalidHost: true });
  assertEquals(match(url, "a").token as string | undefined, TOKEN);
});

Deno.test("createMatcher() returns the first matching route, as the same object", () => {
  const rows: [url: string, index: number][] = [
    [`http://x.test/media/${TOKEN}`, 1],
    ["http://x.test/healthz", 2],
  ];
  const twice = createMatcher([...ROUTES, ...ROUTES.map((route) => ({ ...route }))]);
  for (const [url, index] of rows) assert(twice(url).route === ROUTES[index], url);
  assertEquals(createMatcher([])("http://x.test/healthz"), { segment: "" });
});

Deno.test("createMatcher() accepts the same tokens as parseToken()", () => {
  const hex = fc.string({ unit: fc.constantFrom(..."0123456789abcdefABCDEF-"), minLength: 1 });
  const segments = fc.oneof(fc.uuid(), fc.uuid({ version: 4 }), hex);
  fc.assert(fc.property(segments, fc.boolean(), (text, isUpper) => {
    const segment = isUpper ? text.toUpperCase() : text;
    const target = match(`http://x.test/audio/${segment}`);
    assert(target.route === ROUTES[0]);
    assertEquals(target.segment, segment);
    assertEquals(target.token, parseToken(segment));
  }));
});

Deno.test("createMatcher() never throws", () => {
  const unit = fc.constantFrom("http://", "x.test", "/", "media", "..", "%", "2F", "?", "#", "\0");
  fc.assert(fc.property(fc.string({ unit }), (url) => {
    const { route, segment } = match(url);
    assert(route === undefined ? segment === "" : ROUTES.includes(route));
  }));
});
