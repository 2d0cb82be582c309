import { assertEquals } from "@std/assert";
import {
  type EntityTag,
  matchesStrongly,
  matchesWeakly,
  parseEntityTags,
} from "../../lib/http/entity_tag.ts";

const strong = (opaque: string): EntityTag => ({ weak: false, opaque });
const weak = (opaque: string): EntityTag => ({ weak: true, opaque });

Deno.test("parseEntityTags() parses lists of quoted strings", () => {
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

Deno.test("parseEntityTags() takes time linear in the length", () => {
  const separators = ", \t".repeat(50_000);
  for (const value of [`${separators}x`, `"a"${separators}"`, `${'"a", '.repeat(50_000)}x`]) {
    assertEquals(parseEntityTags(value), []);
  }
});

Deno.test("matchesStrongly() and matchesWeakly() follow the table in RFC 9110 §8.8.3.2", () => {
  const rows: [a: EntityTag, b: EntityTag, strongly: boolean, weakly: boolean][] = [
    [weak("1"), weak("1"), false, true],
    [weak("1"), weak("2"), false, false],
    [weak("1"), strong("1"), false, true],
    [strong("1"), strong("1"), true, true],
  ];
  for (const [a, b, strongly, weakly] of rows) {
    const note = JSON.stringify([a, b]);
    assertEquals([matchesStrongly(a, b), matchesStrongly(b, a)], [strongly, strongly], note);
    assertEquals([matchesWeakly(a, b), matchesWeakly(b, a)], [weakly, weakly], note);
  }
});
