import { assert, assertEquals, assertMatch } from "@std/assert";
import { isPublicUrl, parseLocation } from "../../lib/publishing/location.ts";
import { MAX_LOCATION } from "../../lib/storage/item.ts";

/** An absolute URI (RFC 3986 §4.3) with either scheme, without user information. */
const ABSOLUTE_URI =
  /^https?:\/\/(\[[0-9a-f:.]+\]|([\w.~!$&'()*+,;=-]|%[0-9a-f]{2})+)(:\d+)?(\/([\w.~!$&'()*+,;=:@-]|%[0-9a-f]{2})*)*(\?([\w.~!$&'()*+,;=:@/?-]|%[0-9a-f]{2})*)?$/i;

Deno.test("isPublicUrl() distinguishes URLs from file paths", () => {
  for (const text of ["https://h/", "http://h", "HTTPS://H/x", "http://"]) {
    assert(isPublicUrl(text), text);
  }
  for (
    const text of ["a.mp3", "./https://h/", "/https:/h", "https:/h", "http", "C:\\a", "ftp://h"]
  ) {
    assert(!isPublicUrl(text), text);
  }
});

Deno.test("parseLocation() returns valid ASCII, and keeps what is valid", () => {
  const rows: [given: string, location: string][] = [
    ["https://cdn.example/a.mp3", "https://cdn.example/a.mp3"],
    ["https://cdn.example", "https://cdn.example/"],
    ["HTTPS://CDN.Example:443/A/../B.mp3", "https://cdn.example/B.mp3"],
    ["http://cdn.example:8080/a?b=c&d", "http://cdn.example:8080/a?b=c&d"],
    ["http://192.168.0.1/a", "http://192.168.0.1/a"],
    ["http://[::1]:8000/a", "http://[::1]:8000/a"],
    ["http://localhost/a", "http://localhost/a"],
    [
      "https://bücher.example/ä ö.mp3?ü=ß",
      "https://xn--bcher-kva.example/%C3%A4%20%C3%B6.mp3?%C3%BC=%C3%9F",
    ],
    ["https://cdn.example/🎧.mp3", "https://cdn.example/%F0%9F%8E%A7.mp3"],
    ["https://cdn.example/%e9%2F%25", "https://cdn.example/%e9%2F%25"],
    ["https://cdn.example/100%.mp3?50%5", "https://cdn.example/100%25.mp3?50%255"],
    [
      "https://cdn.example/a[1]|^.mp3?b[]={|\\^`}",
      "https://cdn.example/a%5B1%5D%7C%5E.mp3?b%5B%5D=%7B%7C%5C%5E%60%7D",
    ],
    ["https://cdn.example/a\"<>'", "https://cdn.example/a%22%3C%3E'"],
    ["https://cdn.example/;a=1,(2)/@:$!*+~", "https://cdn.example/;a=1,(2)/@:$!*+~"],
  ];
  for (const [given, location] of rows) {
    assertEquals(parseLocation(given), location);
    assertMatch(location, ABSOLUTE_URI);
  }
});

Deno.test("parseLocation() returns its own results unchanged, for any URL", () => {
  const chars = [...String.fromCodePoint(...Array(0x180).keys()), "€", "\ud83c", "🎧", "%e", "%ff"];
  for (const char of chars.filter((char) => !/[#\p{Cc}]/u.test(char))) {
    for (const host of ["h", "[::1]:8080", "bücher.example:443"]) {
      const location = parseLocation(`https://${host}/${char}/..${char}?${char}&${char}`);
      assertMatch(location, ABSOLUTE_URI);
      assertEquals(parseLocation(location), location);
      assertEquals(new URL(location).href, location); // so that clients request exactly this
    }
  }
});

Deno.test("parseLocation() refuses URLs that are not for everybody, and shows no secrets", () => {
  const stem = "https://cdn.example/";
  const rows: [given: string, refusal: RegExp | undefined][] = [
    ["https://", /^"https:\/\/" is not a URL; expected one like https:\/\/host\/path$/],
    ["https://a b/", /^"https:\/\/a b\/" is not a URL/],
    ["https://h:99999/", /is not a URL/],
    ["https://h/a\nb", /^"https:\/\/h\/a\\nb" is not a URL/],
    ["https://h/a\r", /is not a URL/],
    ["https://\u202eh\u0000/", /^"https:\/\/\\u202eh\\u0000\/" is not a URL/],
    [
      "https://me:secret@h/a?b",
      /^"https:\/\/h\/a\?b" was given with a user or password, .*expected a URL that needs none$/,
    ],
    ["https://secret@h/", /^"https:\/\/h\/" was given with a user/],
    ["https://me:secret", /^"https:\/\/me:…" is not a URL/],
    ["https://me:se:cr@et@h:99999/", /^"https:\/\/…@h:99999\/" is not a URL/],
    ["https://me:secr#et@h/", /^"https:\/\/…@h\/" is not a URL/],
    ["https://me:sec/ret@h/", /^"https:\/\/…@h\/" is not a URL/],
    ["https://me:sec\nret@h/", /^"https:\/\/…@h\/" is not a URL/],
    [
      `${stem}a?X-Amz-Expires=60&X-Amz-Signature=secret`,
      /^"https:\/\/cdn\.example\/a" was given with X-Amz-Signature, which expires/,
    ],
    [
      `${stem}a?x-goog-signature=secret#x`,
      /^"https:\/\/cdn\.example\/a(#x)?" was given with x-goog-signature, /,
    ],
    ...[
      "Policy=p&Signature=secret&Key-Pair-Id=K",
      "Expires=1&Signature=secret&Key-Pair-Id=K",
      "AWSAccessKeyId=A&Signature=secret&Expires=1",
      "GoogleAccessId=A&Expires=1&Signature=secret",
    ].map((query): [string, RegExp] => [`${stem}a?${query}`, /\/a" was given with Signature, whi/]),
    [`${stem}a?sv=2022-11-02&se=2027-01-01&sr=b&sp=r&sig=secret`, /\/a" was given with sig, which/],
    [`${stem}a?si=policy&sig=secret`, /\/a" was given with sig, which/],
    [`${stem}a?signature=mine&sig=1`, undefined],
    [
      `${stem}a#t=10`,
      /^"https:\/\/cdn\.example\/a#t=10" has a fragment, .*expected a URL without one$/,
    ],
    [`${stem}a#`, /has a fragment/],
    [stem + "a".repeat(MAX_LOCATION - stem.length), undefined],
    [
      stem + "a".repeat(MAX_LOCATION - stem.length + 1),
      /^"https:\/\/cdn\.example\/a{44}"… has 2049 characters; expected 2048 at most$/,
    ],
    [stem + "ä".repeat(400), /^"https:\/\/cdn\.example\/(%C3%A4)+%?C?3?"… has 2420 characters/],
  ];
  for (const [given, refusal] of rows) {
    let message: string | undefined;
    try {
      parseLocation(given);
    } catch (error) {
      const { name } = error as Error;
      assertEquals(name, "RefusedError");
      message = (error as Error).message;
    }
    if (refusal === undefined) assertEquals(message, undefined);
    else assertMatch(message ?? "", refusal, given.slice(0, 100));
    assert(!message?.replaceAll(/\W/g, "").includes("secret"), message);
  }
});
