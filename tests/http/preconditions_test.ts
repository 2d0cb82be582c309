import { assertEquals } from "@std/assert";
import {
  type EntityTag,
  evaluatePreconditions,
  matchesStrongly,
  matchesWeakly,
  parseEntityTags,
  requestedRange,
  type Validators,
} from "../../lib/http/preconditions.ts";

type Fields = Record<string, string>;

const NOW = Date.parse("2026-11-21T12:00:00Z");
const EARLIER = "Thu, 19 Nov 2026 23:59:59 GMT";
const DATE = "Fri, 20 Nov 2026 00:00:00 GMT";
const LATER = "Fri, 20 Nov 2026 00:00:01 GMT";

/** Its tag contains a comma, so that splitting a list at commas matches nothing. */
const DATED: Validators = {
  etag: { weak: false, opaque: "a,b" },
  lastModified: Date.parse("2026-11-20T00:00:00Z"),
};
const UNDATED: Validators = { ...DATED, lastModified: undefined };
const WEAK: Validators = { ...DATED, etag: { weak: true, opaque: "a,b" } };

// Dates have tests of their own, and tags have theirs below.
Deno.test("evaluatePreconditions() follows the order of RFC 9110 §13.2.2", () => {
  const rows: [fields: Fields, status: 304 | 412 | undefined, validators?: Validators][] = [
    [{}, undefined],
    [{ Range: "bytes=0-1", "If-Range": '"x"' }, undefined],

    // Step 1, If-Match: one strong match is enough.
    [{ "If-Match": '"a,b"' }, undefined],
    [{ "If-Match": "*" }, undefined],
    [{ "If-Match": '"x", "a,b"' }, undefined],
    [{ "If-Match": 'W/"x", "a,b"' }, undefined],
    [{ "If-Match": 'W/"a,b"' }, 412],
    [{ "If-Match": '"a"' }, 412],
    [{ "If-Match": '"a", "b"' }, 412],
    [{ "If-Match": "" }, 412],
    [{ "If-Match": "a,b" }, 412],
    [{ "If-Match": '"a,b"' }, 412, WEAK],
    [{ "If-Match": 'W/"a,b"' }, 412, WEAK],
    [{ "If-Match": "*" }, undefined, WEAK],

    // Step 2, If-Unmodified-Since, unless there is If-Match.
    [{ "If-Unmodified-Since": EARLIER }, 412],
    [{ "If-Unmodified-Since": DATE }, undefined],
    [{ "If-Unmodified-Since": LATER }, undefined],
    [{ "If-Unmodified-Since": "Thu Nov 19 23:59:59 2026" }, 412],
    [{ "If-Unmodified-Since": "2026-11-19" }, undefined],
    [{ "If-Unmodified-Since": EARLIER }, undefined, UNDATED],
    [{ "If-Match": '"a,b"', "If-Unmodified-Since": EARLIER }, undefined],
    [{ "If-Match": "*", "If-Unmodified-Since": EARLIER }, undefined],
    [{ "If-Match": '"x"', "If-Unmodified-Since": LATER }, 412],
    [{ "If-Match": "x", "If-Unmodified-Since": LATER }, 412],

    // Step 3, If-None-Match: one weak match is enough for 304.
    [{ "If-None-Match": '"a,b"' }, 304],
    [{ "If-None-Match": 'W/"a,b"' }, 304],
    [{ "If-None-Match": "*" }, 304],
    [{ "If-None-Match": '"x", W/"a,b"' }, 304],
    [{ "If-None-Match": '"a,b"' }, 304, WEAK],
    [{ "If-None-Match": 'W/"a,b"' }, 304, WEAK],
    [{ "If-None-Match": '"x"' }, undefined],
    [{ "If-None-Match": '"a", "b", W/"a,b,"' }, undefined],
    [{ "If-None-Match": "" }, undefined],

    // Step 4, If-Modified-Since, unless there is If-None-Match.
    [{ "If-Modified-Since": EARLIER }, undefined],
    [{ "If-Modified-Since": DATE }, 304],
    [{ "If-Modified-Since": LATER }, 304],
    [{ "If-Modified-Since": "Friday, 20-Nov-26 00:00:00 GMT" }, 304],
    [{ "If-Modified-Since": "" }, undefined],
    [{ "If-Modified-Since": LATER }, undefined, UNDATED],
    [{ "If-None-Match": '"x"', "If-Modified-Since": LATER }, undefined],
    [{ "If-None-Match": "", "If-Modified-Since": LATER }, undefined],
    [{ "If-None-Match": '"a,b"', "If-Modified-Since": EARLIER }, 304],

    // 412 takes precedence over 304.
    [{ "If-Match": '"x"', "If-None-Match": '"a,b"' }, 412],
    [{ "If-Match": '"x"', "If-Modified-Since": DATE }, 412],
    [{ "If-Match": '"a,b"', "If-None-Match": '"a,b"' }, 304],
    [{ "If-Match": '"a,b"', "If-Modified-Since": DATE }, 304],
    [{ "If-Unmodified-Since": EARLIER, "If-None-Match": "*" }, 412],
    [{ "If-Unmodified-Since": EARLIER, "If-Modified-Since": DATE }, 412],
    [{ "If-Unmodified-Since": DATE, "If-Modified-Since": DATE }, 304],
  ];
  for (const [fields, status, validators = DATED] of rows) {
    const note = `${JSON.stringify(fields)} of ${JSON.stringify(validators)}`;
    assertEquals(evaluatePreconditions(new Headers(fields), validators, NOW), status, note);
  }
});

Deno.test("requestedRange() returns the range unless If-Range does not match", () => {
  const part = { first: 2, last: 3 };
  type Range = ReturnType<typeof requestedRange>;
  const rows: [ifRange: string | undefined, range: Range, validators?: Validators][] = [
    [undefined, part],
    ['"a,b"', part],
    [DATE, part],
    ["Friday, 20-Nov-26 00:00:00 GMT", part],
    ["Fri Nov 20 00:00:00 2026", part],
    ['W/"a,b"', undefined],
    ['"x"', undefined],
    ['"a,b", "x"', undefined],
    ['"a,b", "a,b"', undefined],
    ["a,b", undefined],
    ['"a,b', undefined],
    ["*", undefined],
    ["", undefined],
    [EARLIER, undefined],
    [LATER, undefined], // a date must match exactly (§13.1.5)
    ["2026-11-20T00:00:00Z", undefined],
    [`${DATE}, ${DATE}`, undefined],
    [DATE, undefined, UNDATED],
    ['"a,b"', part, UNDATED],
    ['"a,b"', undefined, WEAK],
    ['W/"a,b"', undefined, WEAK],
    [DATE, part, WEAK],
  ];
  for (const [ifRange, range, validators = DATED] of rows) {
    const fields = new Headers({ Range: "bytes=2-3" });
    if (ifRange !== undefined) fields.set("If-Range", ifRange);
    const note = `If-Range: ${ifRange} of ${JSON.stringify(validators)}`;
    assertEquals(requestedRange(fields, { ...validators, length: 10 }, NOW), range, note);
    fields.set("Range", "bytes=10-");
    const beyond = requestedRange(fields, { ...validators, length: 10 }, NOW);
    assertEquals(beyond, range && "unsatisfiable", note);
    fields.delete("Range");
    assertEquals(requestedRange(fields, { ...validators, length: 10 }, NOW), undefined, note);
  }
});

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
