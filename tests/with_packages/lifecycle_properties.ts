/** Properties of the lifecycle library for any fields, by random fields and independent parsers. */

// deno-lint-ignore-file no-import-prefix -- a start would download what the import map has

import { assertEquals } from "@std/assert";
import fc from "npm:fast-check@4.10.2";
import { parseItem } from "npm:structured-headers@2.1.0";
import { parseLinks } from "../../lib/http/link.ts";
import { inspect } from "../../lib/lifecycle/checking/inspect.ts";

const parts = [
  ...["@", "-", "1798761600", ".5", "true", "?1", ";", " ", "a", "=", '"b"', '"', ":YQ==:", "%"],
  ...[",", "*", "\\"],
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
      const { faults } = inspect({ status: 400, headers: new Headers(headers), url: "" });
      const isAccepted = faults.every(({ name }) => name !== "invalid-deprecation");
      // Parameters mean nothing here, so malformed ones may pass.
      if (isDate || !sent.includes(";")) assertEquals(isAccepted, isDate, sent);
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
