/** Properties of the lifecycle library for any fields, by random fields and independent parsers. */

// deno-lint-ignore-file no-import-prefix -- a start would download what the import map has

import { assert, assertEquals } from "@std/assert";
import fc from "npm:fast-check@4.10.2";
import { parseItem } from "npm:structured-headers@2.1.0";
import { parseLinks } from "../../lib/http/link.ts";
import { inspect } from "../../lib/lifecycle/checking/inspect.ts";
import { underHold } from "../../lib/lifecycle/hold.ts";
import { type BrownoutStatus, momentAt, type Policy } from "../../lib/lifecycle/policy.ts";
import { refusal } from "../../lib/lifecycle/refusal.ts";

const parts = [
  ...["@", "-", "1798761600", ".5", "true", "?1", ";", " ", "a", "=", '"b"', '"', ":YQ==:", "%"],
  ...[",", "*", "\\", "?0", "false"],
];
const values = fc.array(fc.oneof(fc.constantFrom(...parts), fc.string({ maxLength: 3 })), {
  maxLength: 8,
})
  .map((parts) => parts.join(""));
const dates = fc.tuple(fc.constantFrom("@1", "@-1", "@253402300799", "@253402300800"), values)
  .map(([date, rest]) => `${date};a${rest}`);

Deno.test("inspect() accepts the same dates as an independent parser", () => {
  const valid = new Set<boolean>();
  fc.assert(
    fc.property(fc.oneof(values, dates), (value) => {
      const headers = sendable({ deprecation: value });
      const sent = headers?.get("deprecation") ?? undefined;
      if (sent === undefined) return;
      let isDate = false;
      try {
        // It rejects parameters of a Date, but not those of its Integer (RFC 9651 §4.2.9).
        const [seconds] = parseItem(sent.replace(/^@/, ""));
        isDate = /^@-?\d+(?![\d.])/.test(sent) && Math.abs(Number(seconds)) <= 253_402_300_799;
      } catch { /* malformed */ }
      const { state, faults } = inspect({ status: 400, headers: new Headers(headers), url: "" });
      const isAccepted = faults.every(({ name }) => name !== "invalid-deprecation");
      const isFalse = /^(?:\?0|false)$/i.test(sent); // announces nothing
      // Parameters mean nothing here, so malformed ones may pass.
      if (isFalse) assertEquals([isAccepted, state], [true, "none"]);
      else if (isDate || !sent.includes(";")) assertEquals(isAccepted, isDate, sent);
      valid.add(isDate);
    }),
    { numRuns: 5000, examples: [['@1;a=%"b"'], ['@1;a="b"']] },
  );
  assertEquals(valid.size, 2);
});

Deno.test("inspect() never throws, whatever a server sends", () => {
  const names = [
    ...["deprecation", "sunset", "link", "cache-control"],
    ...["expires", "date", "retry-after", "surrogate-control"],
  ];
  const text = fc.oneof(
    values,
    fc.string(),
    fc.constantFrom("<__proto__>; rel=__proto__", "<//>;rel=sunset"),
  );
  const fields = fc.dictionary(fc.constantFrom(...names), text);
  const status = fc.constantFrom(200, 304, 308, 410, 503, 0);
  fc.assert(
    fc.property(fields, status, fc.constantFrom("", "http://a/", "x"), (fields, status, url) => {
      const headers = sendable(fields);
      if (headers !== undefined) inspect({ status, headers, url });
    }),
  );
});

Deno.test("parseLinks() reads what was written", () => {
  const rel = fc.array(fc.constantFrom("sunset", "next", "https://a/b,c;d"), { minLength: 1 });
  const target = fc.constantFrom("/a", "/a,b;c=d", "https://a/?q=\"'", "");
  const extra = fc.constantFrom(
    "",
    '; title="<x>, \\"y\\"; rel=z"',
    "; a",
    " ;; b=c",
    "; rel=late",
  );
  fc.assert(fc.property(fc.array(fc.record({ target, rel, extra })), (links) => {
    const value = links.map(({ target, rel, extra }) =>
      `<${target}>; rel="${rel.join(" ")}"${extra}`
    );
    assertEquals(
      parseLinks(value.join(" , ")),
      links.map(({ target, rel }) => ({ target, rel })),
    );
  }));
});

/** Returns fields as they can be sent, if they can. */
function sendable(fields: Record<string, string>): Headers | undefined {
  try {
    return new Headers(fields);
  } catch {
    return undefined;
  }
}

Deno.test("a policy under any holds refuses what it refused before, except while one lasts", () => {
  const day = Date.parse("2027-01-01");
  const instant = fc.integer({ min: 0, max: 60 }).map((hours) => day + hours * 3_600_000);
  const interval = fc.tuple(instant, instant).filter(([a, b]) => a !== b)
    .map(([a, b]) => ({ start: Math.min(a, b), end: Math.max(a, b) }));
  const status = fc.constantFrom(503, 410) as fc.Arbitrary<BrownoutStatus>;
  const brownouts = fc.array(fc.tuple(interval, status), { maxLength: 4 });
  const sunset = fc.option(instant, { nil: undefined });
  const policies = fc.tuple(brownouts, sunset).map(([drawn, sunsetAt]): Policy => {
    const ordered = drawn.map(([interval, status]) => ({ ...interval, status }))
      .sort((a, b) => a.start - b.start)
      .filter(({ start, end }, at, all) =>
        end < (sunsetAt ?? Infinity) && all.slice(0, at).every((other) => other.end <= start)
      );
    const common = { brownoutStatus: 503, afterSunset: "gone", documentation: undefined } as const;
    return { ...common, deprecatedAt: day, sunsetAt, brownouts: ordered };
  });
  const holds = fc.array(interval.map((each) => ({ ...each, because: "b" })), { maxLength: 4 });
  let spared = 0;
  fc.assert(
    fc.property(policies, holds, (policy, holds) => {
      const held = holds.reduce(underHold, policy);
      const last = Math.max(...holds.map(({ end }) => end));
      for (let now = day; now < day + 62 * 3_600_000; now += 1_800_000) {
        const [before, after] = [policy, held].map((each) => {
          const refused = refusal(each, { now, maxAge: 300 });
          return refused && [refused.status, momentAt(each, now).phase] as const;
        });
        const isHeld = holds.some(({ start, end }) => start <= now && now < end);
        // The sunset comes once: after a hold that moved it, at the end of the last one.
        const isLater = before?.[1] === "removed" && now < last;
        assertEquals(after, isHeld || isLater ? undefined : before);
        if (isHeld && before !== undefined) spared++;
        const { until } = momentAt(held, now);
        assert(until > now);
      }
    }),
    { numRuns: 2_000 },
  );
  assert(spared > 1_000, `${spared} instants were spared`);
});
