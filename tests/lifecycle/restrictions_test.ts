import { assertEquals } from "@std/assert";
import type { Field } from "../../lib/http/outcome.ts";
import { keepRestrictions } from "../../lib/lifecycle/restrictions.ts";

const NOW = Date.parse("2027-07-01T00:00:00Z");
const NEVER = "no-store, no-transform";
const KEPT = "max-age=300, no-transform";
const NINE = "max-age=9, no-transform, stale-while-revalidate=0";
const NONE = "max-age=0, no-transform, stale-while-revalidate=0";
type Fields = Record<string, string>;
type Row = [said: Fields, expected: Fields];

/** What the application says in Cache-Control, and what a refusal says that has 300 seconds. */
const VALUES: [said: string, expected: string][] = [
  ["", KEPT],
  // What permits goes.
  ["public, immutable, must-understand, no-transform, stale-if-error=5", KEPT],
  ["max-age=600, public, stale-while-revalidate=60", `${KEPT}, stale-while-revalidate=0`],
  // What restricts stays.
  ["PRIVATE", `${KEPT}, private`],
  ['private="x-a, x-b"', `${KEPT}, private`],
  ['no-cache="set-cookie", no-cache', `${KEPT}, no-cache`],
  ["must-revalidate, proxy-revalidate", `${KEPT}, proxy-revalidate, must-revalidate`],
  ["no-store", NEVER],
  ["no-store, must-understand, private, max-age=9", `${NEVER}, private`],
  // The shortest lifetime counts.
  ["max-age=9", NINE],
  ["s-maxage=9, max-age=60", NINE],
  ["Max-Age=60 , MAX-AGE=9", NINE],
  ["max-age=0", NONE],
  // What is not understood restricts.
  ...[
    ...["Max-Age = 9;a", "max-age=60, max-age=9.9", "max-age=9, a", "max-age", "max-age=soon"],
    ...["max-age=-1", "max-age=9x", "max-age=9 x", 'max-age="9"', "s-maxage=, max-age=9"],
    ...["a=b;no-store", 'x="max-age=9"', "x-private", "max-age=1d", 'max-age=9, x="', "@"],
  ].map((said): [string, string] => [said, NEVER]),
];

/** What it says in any field, and all that the refusal says. */
const ROWS: Row[] = [
  ...VALUES.map(([said, expected]): Row => [
    { "Cache-Control": said },
    { "Cache-Control": expected },
  ]),
  [{ "X-A": "private" }, { "Cache-Control": KEPT }],
  [{ "Vary": "Accept" }, { "Cache-Control": KEPT }], // it stays as it is
  [{ "Expires": "Thu, 01 Jul 2027 00:00:09 GMT" }, { "Cache-Control": NINE }],
  [{ "Expires": "Thu, 01 Jul 2027 00:01:00 GMT", "Date": "Thu, 01 Jul 2027 00:00:51 GMT" }, {
    "Cache-Control": NINE,
  }],
  [{ "Expires": "Thu, 01 Jul 2027 00:00:09 GMT", "Date": "Wed, 30 Jun 2027 23:59:00 GMT" }, {
    "Cache-Control": NINE,
  }],
  [{ "Expires": "0" }, { "Cache-Control": NONE }],
  // The fields that only some caches read: what restricts there restricts every cache.
  [{ "CDN-Cache-Control": "public" }, { "Cache-Control": KEPT }],
  [{ "CDN-Cache-Control": "max-age=9", "Surrogate-Control": "max-age=600" }, {
    "Cache-Control": NINE,
  }],
  [{ "Cloudflare-CDN-Cache-Control": "private, max-age=9" }, {
    "Cloudflare-CDN-Cache-Control": "max-age=9, no-transform, private, stale-while-revalidate=0",
    "Cache-Control": "max-age=9, no-transform, private, stale-while-revalidate=0",
  }],
  [{ "Surrogate-Control": 'no-store, content="ESI/1.0"' }, {
    "Surrogate-Control": NEVER,
    "Cache-Control": NEVER,
  }],
  ...["!no-store, max-age=9", "cache-maxage=9s", "max-age=9+9", "bypass-cache", 'content="ESI/1.0"']
    .flatMap((said) =>
      ["Edge-Control", "Surrogate-Control"].map((name): Row => [{ [name]: said }, {
        [name]: NEVER,
        "Cache-Control": NEVER,
      }])
    ),
  [{ "Cache-Control": "private", "CDN-Cache-Control": "public" }, {
    "Cache-Control": `${KEPT}, private`,
  }],
  [{ "Cache-Control": "private", "CDN-Cache-Control": "private" }, {
    "Cache-Control": `${KEPT}, private`,
    "CDN-Cache-Control": `${KEPT}, private`,
  }],
  // Beside another field, must-revalidate permits what a cache of that field could not do.
  [{ "Cache-Control": "must-revalidate", "CDN-Cache-Control": "max-age=9" }, {
    "Cache-Control": NINE,
  }],
  [{ "X-Accel-Expires": "0" }, { "X-Accel-Expires": "0", "Cache-Control": NONE }],
  [{ "X-Accel-Expires": "@1" }, { "X-Accel-Expires": "0", "Cache-Control": NONE }],
  [{ "X-Accel-Expires": "9" }, { "Cache-Control": NINE }],
  [{ "X-Accel-Expires": `@${NOW / 1000 + 9}` }, { "Cache-Control": NINE }],
  [{ "X-Accel-Expires": "9s" }, { "X-Accel-Expires": "0", "Cache-Control": NONE }],
];

Deno.test("keepRestrictions() keeps what restricts caches, and drops what permits", () => {
  for (const [said, expected] of ROWS) {
    const kept = keepRestrictions([["Cache-Control", KEPT]], Object.entries(said), NOW);
    assertEquals(Object.fromEntries(kept), expected, JSON.stringify(said));
    // A refusal that no cache may store says so in the same fields.
    const never = keepRestrictions([["Cache-Control", NEVER]], Object.entries(said), NOW);
    assertEquals(never.map(([name]) => name), kept.map(([name]) => name));
    for (const [name, value] of never) {
      if (name === "X-Accel-Expires") continue;
      assertEquals(value.startsWith(NEVER) && !/max-age|stale/.test(value), true, value);
    }
  }
});

Deno.test("keepRestrictions() restricts what refusalFields says to caches, too", () => {
  const refused = {
    "Cache-Control": "public, stale-if-error=60",
    "CDN-Cache-Control": "max-age=600",
    "X-Accel-Expires": "600",
    "Expires": "Thu, 01 Jul 2027 00:10:00 GMT",
    "Vary": "Accept",
    "Link": "</a>",
    "X-Accel-Buffering": "no",
  };
  const rows: Row[] = [
    [{}, refused],
    [{ "CDN-Cache-Control": "private", "Vary": "Origin" }, {
      "Cache-Control": "public, stale-if-error=60, private",
      "CDN-Cache-Control": "max-age=600, private",
      "Vary": "Origin, Accept",
      "Link": "</a>",
      "X-Accel-Buffering": "no",
    }],
    [{ "Cache-Control": "max-age=9" }, {
      "Cache-Control": "public, stale-if-error=0, max-age=9, stale-while-revalidate=0",
      "CDN-Cache-Control": "max-age=9, stale-while-revalidate=0",
      "Vary": "Accept",
      "Link": "</a>",
      "X-Accel-Buffering": "no",
    }],
  ];
  for (const [said, expected] of rows) {
    const kept = keepRestrictions(Object.entries(refused), Object.entries(said), NOW);
    assertEquals(kept.length, Object.keys(expected).length);
    assertEquals(Object.fromEntries(kept), expected);
  }
});

Deno.test("keepRestrictions() lets no cache store a refusal with what caches read in different ways", () => {
  for (const refused of ['max-age=60, x="', "max-age=60;a", "max-age=1d"]) {
    const fields: Field[] = [["Cache-Control", refused]];
    for (const [said, more] of [["private", ", private"], ["max-age=9", ""]]) {
      const kept = keepRestrictions(fields, [["Cache-Control", said ?? ""]], NOW);
      assertEquals(kept, [["Cache-Control", NEVER + more]]);
    }
    assertEquals(keepRestrictions(fields, [], NOW), fields); // nothing restricts it
  }
});
