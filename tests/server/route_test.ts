import { assert, assertEquals } from "@std/assert";
import { normalizeUrl, pathOf } from "../../lib/server/route.ts";
import { ROUTES } from "../support/routes.ts";

const TOKEN = "5b6ea11c-9c5e-4b58-8f6b-0a7a6cf5d1e0";

/** Returns the path of the route that a URL matches, and the segment at its token. */
function match(url: string): [path?: string, segment?: string] {
  for (const route of ROUTES) {
    const matched = route.pattern.exec(normalizeUrl(url));
    if (matched !== null) return [pathOf(route), matched.pathname.groups["token"] ?? ""];
  }
  return [];
}

Deno.test("normalizeUrl() lets URLPattern find the route and the segment", () => {
  const rows: [url: string, path?: string, segment?: string][] = [
    [`http://x.test/audio/${TOKEN}`, "/audio/:token", TOKEN],
    [`http://x.test/media/${TOKEN}`, "/media/:token", TOKEN],
    [`https://x.test:8443/media/${TOKEN}`, "/media/:token", TOKEN],
    [`http://[::1]:8000/media/${TOKEN}`, "/media/:token", TOKEN],
    [`http://x.test/media/${TOKEN}?a=/healthz#b`, "/media/:token", TOKEN],
    [`http://x.test/media/${TOKEN}?`, "/media/:token", TOKEN],
    [`http://x.test/y/../media/./${TOKEN}`, "/media/:token", TOKEN],
    [`http://x.test/media/${TOKEN.toUpperCase()}`, "/media/:token", TOKEN.toUpperCase()],
    ["http://x.test/healthz", "/healthz", ""],
    ["http://x.test/healthz?now", "/healthz", ""],
    [`http://x.test:99999/media/${TOKEN}`, "/media/:token", TOKEN], // the Host check rejects it

    // Percent-encoded, but unreserved (RFC 3986 §6.2.2.2).
    [`http://x.test/%6dedia/${TOKEN}`, "/media/:token", TOKEN],
    [`http://x.test/%6Dedi%61/${TOKEN.replaceAll("-", "%2D")}`, "/media/:token", TOKEN],
    [`http://x.test/media/%35${TOKEN.slice(1)}`, "/media/:token", TOKEN],
    [`http://x.test/media/x/%2E%2e/${TOKEN}`, "/media/:token", TOKEN],
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
    [`http://x.test/media/${"x".repeat(500)}`, "/media/:token", "x".repeat(64)],
    [`http://x.test/media/${TOKEN}${"x".repeat(500)}`, "/media/:token", TOKEN + "x".repeat(28)],
    [`http://x.test/${"x/../".repeat(200)}media/${TOKEN}`, "/media/:token", TOKEN],
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
    [`http://x.test/image/${TOKEN}`],
    [`http://x.test/y/media/${TOKEN}`],
    [`http://x.test/?/media/${TOKEN}`],
    ["http://x.test/healthz/"],
    ["http://x.test/HEALTHZ"],
    ["http://x.test/healthzz"],
    [`/media/${TOKEN}`], // not a URL
    ["*"],
    [""],
  ];
  for (const [url, ...expected] of rows) assertEquals(match(url), expected, url);
});

Deno.test("normalizeUrl() is bounded, whatever the URL, and never throws", () => {
  const pieces = ["http://", "x.test", "/", "media", "..", "%", "2F", "?", "#", "\0"];
  const pairs = pieces.flatMap((a) => pieces.map((b) => a + b));
  for (const url of pieces.flatMap((a) => pairs.flatMap((b) => [a + b, a + b.repeat(250)]))) {
    const normalized = normalizeUrl(url);
    assert(URL.canParse(normalized) && normalized.length < 300, url);
    assertEquals(normalizeUrl(normalized), normalized);
    match(url);
  }
});
