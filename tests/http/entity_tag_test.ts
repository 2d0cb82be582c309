import { assert, assertEquals } from "@std/assert";
import fc from "../support/fast_check.ts";
import { matchesStrongly, matchesWeakly, parseEntityTags } from "../../lib/http/entity_tag.ts";

Deno.test("parseEntityTags() parses lists of quoted strings", () => {
  const strong = (opaque: string) => ({ weak: false, opaque });
  const weak = (opaque: string) => ({ weak: true, opaque });
  const rows: [value: string, tags: ReturnType<typeof parseEntityTags>][] = [
    ["*", "*"],
    [" * ", "*"],
    ['"a"', [strong("a")]],
    ['W/"a"', [weak("a")]],
    ['""', [strong("")]],
    ['"a,b"', [strong("a,b")]],
    ['"a", "b"', [strong("a"), strong("b")]],
    ['"a","b",W/"c"', [strong("a"), strong("b"), weak("c")]],
    [', ,"a",\t, "b" ,', [strong("a"), strong("b")]],
    ['"a\\b"', [strong("a\\b")]], // a backslash is an ordinary character (RFC 9110 §8.8.3)
    ['"\xe4"', [strong("\xe4")]],
    // A list with any malformed part matches nothing.
    ["", []],
    [",", []],
    ["a", []],
    ['"a', []],
    ['a"', []],
    ['w/"a"', []],
    ['W/ "a"', []],
    ['"a" "b"', []],
    ['"a""b"', []],
    ['"a", b', []],
    ['"a b"', []],
    ['"a", *', []],
    ["*, *", []],
    ["\xa0*", []], // not whitespace in HTTP
    ["*\v", []],
  ];
  for (const [value, tags] of rows) assertEquals(parseEntityTags(value), tags, value);
});

const tags = fc.array(fc.record({
  weak: fc.boolean(),
  opaque: fc.string({
    unit: fc.constantFrom(..."!#$,;=*/\\abcXYZ019~\x80\xff"),
    maxLength: 12,
  }),
}));
const separators = fc.stringMatching(/^[ \t]{0,2},[ \t,]{0,3}$/);

Deno.test("parseEntityTags() parses any list, with any spacing", () => {
  fc.assert(fc.property(tags, separators, (tags, separator) => {
    const value = tags.map(({ weak, opaque }) => `${weak ? "W/" : ""}"${opaque}"`).join(separator);
    assertEquals(parseEntityTags(value), tags);
  }));
});

Deno.test("parseEntityTags() never throws, and takes time linear in the length", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'"W/*, \ta'), maxLength: 40 }), (text) => {
      assert(Array.isArray(parseEntityTags(text)) || text.trim() === "*");
    }),
  );
  parseEntityTags(", \t".repeat(50_000));
  parseEntityTags('"a", '.repeat(50_000) + "x");
});

Deno.test("matchesStrongly() and matchesWeakly() follow the table in RFC 9110 §8.8.3.2", () => {
  const rows: [a: string, b: string, strongly: boolean, weakly: boolean][] = [
    ['W/"1"', 'W/"1"', false, true],
    ['W/"1"', 'W/"2"', false, false],
    ['W/"1"', '"1"', false, true],
    ['"1"', '"1"', true, true],
  ];
  for (const [a, b, strongly, weakly] of rows) {
    const [first, second] = [a, b].map((text) => {
      const tags = parseEntityTags(text);
      assert(tags !== "*" && tags[0] !== undefined);
      return tags[0];
    });
    assert(first !== undefined && second !== undefined);
    assertEquals([matchesStrongly(first, second), matchesWeakly(first, second)], [
      strongly,
      weakly,
    ]);
    assertEquals([matchesStrongly(second, first), matchesWeakly(second, first)], [
      strongly,
      weakly,
    ]);
  }
});
