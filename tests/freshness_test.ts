import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { formatHttpDate } from "../lib/http/http_date.ts";
import { limitFreshness } from "../lib/lifecycle/freshness.ts";

const NOW = Date.parse("2027-01-01T00:00:00Z");

/** What a response states, and what it states with 100 seconds left of the phase. */
const ROWS: [stated: Record<string, string>, limited: string][] = [
  [{ "cache-control": "max-age=300" }, "max-age=100, must-revalidate"],
  [{ "cache-control": "max-age=60" }, "max-age=60, must-revalidate"],
  [{ "cache-control": "max-age=0" }, "max-age=0, must-revalidate"],
  [{ "cache-control": 'Max-Age="300"' }, "max-age=100, must-revalidate"],
  [
    { "cache-control": "private, max-age=300, s-maxage=50" },
    "private, max-age=100, s-maxage=50, must-revalidate",
  ],
  [{ "cache-control": "s-maxage=900, max-age=5" }, "s-maxage=100, max-age=5, must-revalidate"],
  [{ "cache-control": "max-age=300, must-revalidate" }, "max-age=100, must-revalidate"],
  [
    { "cache-control": "max-age=50, stale-while-revalidate=900, stale-if-error=86400" },
    "max-age=50, must-revalidate",
  ],
  [{ "cache-control": "stale-if-error=9, max-age=50" }, "max-age=50, must-revalidate"],
  [{ "cache-control": "max-age=soon" }, "max-age=0, must-revalidate"],
  [
    { "cache-control": 'private="a, max-age=9", max-age=300' },
    'private="a, max-age=9", max-age=100, must-revalidate',
  ],
  [{ "cache-control": "no-store" }, "no-store"],
  [{ "cache-control": "no-cache, max-age=300" }, "no-cache, max-age=300"],
  [
    { "cache-control": 'no-cache="set-cookie", max-age=300' },
    'no-cache="set-cookie", max-age=100, must-revalidate',
  ],
  [{}, "max-age=0, must-revalidate"],
  [{ "cache-control": "public" }, "public, max-age=0, must-revalidate"],
  [{ expires: formatHttpDate(NOW + 60_000) }, "max-age=60, must-revalidate"],
  [{ expires: formatHttpDate(NOW + 900_000) }, "max-age=100, must-revalidate"],
  [{ expires: formatHttpDate(NOW - 1000) }, "max-age=0, must-revalidate"],
  [{ expires: "0" }, "max-age=0, must-revalidate"],
  [
    { expires: formatHttpDate(NOW + 900_000), "cache-control": "max-age=7" },
    "max-age=7, must-revalidate",
  ],
];

Deno.test("limitFreshness() lets nothing be used beyond the phase", () => {
  for (const [stated, limited] of ROWS) {
    const headers = new Headers(stated);
    limitFreshness(headers, { until: NOW + 100_999, now: NOW });
    assertEquals(headers.get("cache-control"), limited, JSON.stringify(stated));
    const isUntouched = limited === stated["cache-control"];
    if (!isUntouched) assertEquals(headers.get("expires"), null);
  }
});

Deno.test("limitFreshness() leaves no Expires beside what it limits, changed or not", () => {
  const stated = { "cache-control": "max-age=7, must-revalidate", expires: "0" };
  const headers = new Headers(stated);
  limitFreshness(headers, { until: NOW + 100_999, now: NOW });
  assertEquals([...headers], [["cache-control", stated["cache-control"]]]);
});

Deno.test("limitFreshness() changes nothing while no change lies ahead", () => {
  for (const [stated] of ROWS) {
    const headers = new Headers(stated);
    assertEquals(limitFreshness(headers, { until: Infinity, now: NOW }), Infinity);
    assertEquals([...headers], [...new Headers(stated)]);
  }
});

Deno.test("limitFreshness() tells until when it would state the same", () => {
  const stated = (maxAge: number, until: number, now: number) => {
    const headers = new Headers({ "cache-control": `max-age=${maxAge}` });
    const unchanged = limitFreshness(headers, { until, now });
    return { unchanged, value: headers.get("cache-control") };
  };
  fc.assert(fc.property(
    fc.nat(500),
    fc.integer({ min: 1, max: 1_000_000 }),
    (maxAge, left) => {
      const until = NOW + left;
      const { unchanged, value } = stated(maxAge, until, NOW);
      assert(unchanged > NOW && unchanged <= until);
      assertEquals(stated(maxAge, until, unchanged - 1).value, value);
      if (unchanged < until) assert(stated(maxAge, until, unchanged).value !== value);
    },
  ));
});

Deno.test("limitFreshness() states nothing negative once the phase is over", () => {
  const headers = new Headers({ "cache-control": "max-age=300" });
  limitFreshness(headers, { until: NOW - 5000, now: NOW });
  assertEquals(headers.get("cache-control"), "max-age=0, must-revalidate");
});
