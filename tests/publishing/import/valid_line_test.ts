import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import {
  parseLine,
  validateLine as validateRaw,
} from "../../../lib/publishing/import/valid_line.ts";

const TOKEN = "6f1d8c1e-6f0a-4d3e-9c3b-0a1b2c3d4e5f";
const SHA_256 = "ab".repeat(32);
const AT_URL = { location: "https://h/a", kind: "audio" };
const CONTENT = { sha256: SHA_256, length: 7, type: "audio/mpeg" };
const validateLine = (members: Record<string, unknown>) => validateRaw({ members, missing: {} });
const TOMBSTONE = { state: "unpublished", token: TOKEN, kind: "video" };

Deno.test("validateLine() reads every source, and normalizes spellings", () => {
  type Row = [raw: Record<string, unknown>, line: Record<string, unknown>];
  const rows: Row[] = [
    [{ path: "a b.mp3" }, { source: "file", path: "a b.mp3" }],
    [AT_URL, { source: "url", ...AT_URL }],
    [{ location: "HTTPS://H/ü", type: "Audio/X" }, {
      ...{ source: "url", location: "https://h/%C3%BC", type: "Audio/X", kind: "audio" },
    }],
    [{ ...AT_URL, type: "video/mp4" }, { source: "url", ...AT_URL, type: "video/mp4" }],
    [{ location: "s3://b/k" }, { source: "object", location: "s3://b/k" }],
    [CONTENT, { source: "content", ...CONTENT, kind: "audio" }],
    [{ ...CONTENT, kind: "audio", type: "video/quicktime" }, {
      ...{ source: "content", ...CONTENT, kind: "audio", type: "video/quicktime" },
    }],
    [
      {
        ...{ ...CONTENT, state: "published", token: TOKEN.toUpperCase(), type: "AUDIO/mpeg" },
        ...{ sha256: SHA_256.toUpperCase(), language: "EN-gb", name: "ü.mp3" },
        publishedAt: "2026-11-21T08:15:26.123+02:00",
      },
      {
        ...{ source: "content", ...CONTENT, state: "published", token: TOKEN, kind: "audio" },
        ...{
          language: "en-GB",
          name: "ü.mp3",
          publishedAt: Date.UTC(2026, 10, 21, 6, 15, 26, 123),
        },
      },
    ],
    [TOMBSTONE, { source: "tombstone", ...TOMBSTONE }],
    [{ ...AT_URL, publishedAt: "2999-01-01" }, { // of a clock that is ahead
      ...{ source: "url", ...AT_URL, publishedAt: Date.UTC(2999, 0) },
    }],
    [{ ...TOMBSTONE, unpublishedAt: "2999-01-01" }, {
      ...{ source: "tombstone", ...TOMBSTONE, unpublishedAt: Date.UTC(2999, 0) },
    }],
    [{ ...AT_URL, length: "26186" }, { source: "url", ...AT_URL, length: 26186 }],
    ...['"abc"', 'W/"a, b"', '""', "Sun, 09 Sep 2001 01:46:40 GMT"].map((validator): Row => [
      { ...AT_URL, validator },
      { source: "url", ...AT_URL, validator },
    ]),
    [{ path: "a", name: "a\u200f\u202e\x1b[31m.mp3" }, { // as a name that is derived from a path
      ...{ source: "file", path: "a", name: "a___[31m.mp3" },
    }],
    [{ path: "a", name: "é".repeat(127) }, { source: "file", path: "a", name: "é".repeat(127) }],
  ];
  for (const [raw, line] of rows) {
    assertEquals<unknown>(validateLine(raw), line, JSON.stringify(raw));
  }
});

Deno.test("validateLine() refuses invalid lines, naming the field, the value and what is expected", () => {
  const rows: (readonly [raw: Record<string, unknown>, message: RegExp])[] = [
    [{ ...AT_URL, kind: "radio" }, /^"kind" is "radio"; expected "audio" or "video"$/],
    [{ ...AT_URL, kind: "audio\n" }, /^"kind" is "audio\\n"; /],
    [{ ...AT_URL, kind: "audio\r\n" }, /^"kind" is "audio\\r\\n"; /],
    [{ ...AT_URL, kind: "audio\t" }, /^"kind" is "audio\\t"; /],
    [{ ...AT_URL, kind: "audio " }, /^"kind" is "audio "; /],
    [{ ...AT_URL, kind: "audio\u00a0" }, /^"kind" is "audio\\u00a0"; /],
    [{ ...AT_URL, kind: "\u200baudio" }, /^"kind" is "\\u200baudio"; /],
    [{ location: "https://h/a" }, /^"kind" is missing; expected "audio" or "video"$/],
    [{ ...AT_URL, token: 5 }, /^"token" is 5; expected a version 4 UUID$/],
    [{ ...AT_URL, token: TOKEN.replace("-4", "-1") }, /expected a version 4 UUID$/],
    [{ ...AT_URL, state: "gone" }, /^"state" is "gone"; expected "published" or "unp/],
    [{ ...AT_URL, length: -1 }, /^"length" is -1; expected a number of bytes, from 1 on$/],
    [{ ...AT_URL, length: 0 }, /^"length" is 0; expected a number of bytes, from 1 on$/],
    [{ ...AT_URL, length: 1.5 }, /^"length" is 1.5; expected a number of bytes, from 1 on$/],
    ...["", " 7", "7.0", "1e3", "-7", "0"].map((length) =>
      [{ ...AT_URL, length }, /^"length" is ".*"; expected a number of bytes, from 1 on$/] as const
    ),
    [{ ...AT_URL, length: 2 ** 53 }, /expected a number of bytes, from 1 on$/],
    [{ ...AT_URL, type: "a\nb" }, /^"type" is "a\\nb"; expected 1 to 255/],
    [{ ...AT_URL, validator: "x".repeat(256) }, /"x{64}…"; expected an ETag like "abc" or an HT/],
    [{ ...AT_URL, validator: `"${"x".repeat(254)}"` }, /"x{63}…"; expected an ETag like "abc"/],
    ...["", '"abc', 'abc"', 'W/"a', "a b", '"ü"', "Sun, 09 Sep"].map((validator) =>
      [{ ...AT_URL, validator }, /^"validator" is .*; expected an ETag like "abc" or an H/] as const
    ),
    [{ ...AT_URL, name: "a.mp3" }, /^"name" is unknown here; expe/],
    [{ ...AT_URL, sha256: SHA_256 }, /^"sha256" is unknown here/],
    [{ ...AT_URL, publishedAt: "yesterday" }, /"yesterday"; expected an ISO 86/],
    [{ ...AT_URL, publishedAt: "2026-02-30" }, /expected an ISO 8601 date/],
    ...["publishedAt", "kind", "location", "name", "id"].map((name) =>
      [
        { ...AT_URL, [name]: null },
        new RegExp(`^"${name}" is null; leave it out, e.g. with jq --compact-output "del`),
      ] as const
    ),
    [{ ...AT_URL, location: ["x"] }, /^"location" is an array; /],
    [{ ...AT_URL, location: "ftp://h/" }, /"ftp:\/\/h\/"; expected an http/],
    [{ ...AT_URL, location: "https:" }, /^"location" is "https:"; expected an htt/],
    [{ ...AT_URL, location: "https://h/#x" }, /"https:\/\/h\/#x" has a fragment/],
    [{ location: "s3://b" }, /^"location" is "s3:\/\/b"; expected s3:\/\/BUCKET\/KEY/],
    [{ path: "" }, /^"path" is ""; expected a path$/],
    [{ path: "a", type: "text/html" }, /"text\/html"; expected an audio or video type/],
    [{ path: "a", type: "audio/x\ny" }, /expected an audio or video type/],
    [{ path: "a", name: "a/b" }, /^"name" is "a\/b"; expected a file name of 1 to 255/],
    ...["", ".", "..", "a\\b", "é".repeat(128)]
      .map((name) => [{ path: "a", name }, /; expected a file name of 1 to 255 b/] as const),
    [
      { path: "a", language: "e" },
      /^"language" is "e"; expected a BCP 47 language tag, e\.g\. en-GB$/,
    ],
    [{ path: "a", location: "https://h/" }, /^"location" is unknown here/],
    [{ ...CONTENT, sha256: "ab" }, /^"sha256" is "ab"; expected 64 hexadecimal digits$/],
    [{ sha256: SHA_256 }, /^"length" is missing; expected a number of bytes, from 1 on, or a path/],
    [
      { url: "https://h/a", kind: "audio" },
      /^"url" is unknown here; .*, or a path or loc/,
    ],
    [{ ...TOMBSTONE, state: "deleted" }, /^"state" is "deleted"; expected "published" or/],
    [
      { ...AT_URL, publishedAt: "1969-12-31" },
      /; expected an ISO 8601 date, or a date and time with an offset, from 1970 on$/,
    ],
    [{}, /^"sha256" is missing; expected 64 .*, or a path or location instead$/],
    [{ state: "unpublished", kind: "audio" }, /^"token" is missing; expected a version 4/],
    [{ ...TOMBSTONE, type: "audio/mpeg" }, /^"type" is unknown here/],
    [{ ...TOMBSTONE, path: "a" }, /^"path" is unknown here/],
  ];
  for (const [raw, message] of rows) {
    const error = assertThrows(() => validateLine(raw), RefusedError);
    assertMatch(error.message, message);
  }
  const secret = { ...AT_URL, location: "https://user:secret@h/" };
  assertEquals(
    assertThrows(() => validateLine(secret), RefusedError).message.includes("secret"),
    false,
  );
});

Deno.test("validateLine() refuses an ETag without quotes, and writes it with them", () => {
  const rows: [text: string, csv: string, json: string][] = [
    ["abc", '"""abc"""', '"\\"abc\\""'],
    ["W/abc", '"W/""abc"""', '"W/\\"abc\\""'],
    ["9a0364b9e99bb480dd25e1f0284c8555-2", '"""9a0364b9e99bb480dd25e1f0284c8555-2"""', ""],
  ];
  for (const [validator, csv, json] of rows) {
    for (const location of ["https://h/a", "s3://b/k"]) {
      const raw = { ...AT_URL, location, validator };
      const { message } = assertThrows(() => validateLine(raw), RefusedError);
      const start =
        `"validator" is "${validator}"; expected an ETag in its quotes: ${csv} in CSV, `;
      assertEquals(message.slice(0, start.length), start);
      assertEquals(message.endsWith(`${json} in JSON`), true, message);
    }
  }
});

Deno.test("validateLine() derives an empty token only if that is asked for", () => {
  const derived = "; with --derive-tokens, it is derived from the content or the URL";
  for (const token of ["", null]) {
    for (const stated of [{ path: "a.mp3" }, AT_URL, CONTENT]) {
      const raw = { members: { ...stated, token }, missing: {} };
      const { message } = assertThrows(() => validateRaw(raw), RefusedError);
      assertEquals(
        message,
        `"token" is ${token ?? "null"}; expected a version 4 UUID${derived}`
          .replace("is ;", 'is "";'),
      );
      const read = validateRaw(raw, { derivesTokens: true });
      assertEquals(read, validateLine(stated));
    }
    const gone = { members: { ...TOMBSTONE, token }, missing: {} };
    const { message } = assertThrows(() => validateRaw(gone), RefusedError);
    assertMatch(
      message,
      /; expected a version 4 UUID$/,
      "a tombstone has nothing to derive it from",
    );
    assertThrows(() => validateRaw(gone, { derivesTokens: true }), RefusedError, "is missing");
  }
});

Deno.test("validateLine() says how a value is written that is missing", () => {
  const hint = ", which CSV has for a missing value; JSON lines can have it as a value";
  const rows: [members: Record<string, unknown>, missing: Record<string, string>, text: string][] =
    [
      [{}, { path: "NA" }, `"path" is "NA"${hint}`],
      [{ location: "https://h/a" }, { kind: "None" }, `"kind" is "None"${hint}`],
      [{ location: "https://h/a" }, { name: "nan", kind: "NA" }, `"kind" is "NA"${hint}`],
      [
        { path: "a", token: "" },
        { token: "\\N" },
        '"token" is "\\N"; expected a version 4 UUID; with',
      ],
    ];
  for (const [members, missing, text] of rows) {
    const { message } = assertThrows(() => validateRaw({ members, missing }), RefusedError);
    assertEquals(message.includes(text), true, message);
  }
});

Deno.test("parseLine() refuses what is not a JSON object, and quotes its beginning", () => {
  const encode = (text: string) => new TextEncoder().encode(text);
  assertEquals(parseLine(encode('\ufeff {"a": 1} \r\n')), { a: 1 });
  const rows: [line: Uint8Array, message: RegExp][] = [
    [encode("[1]\n"), /^"\[1\]" is not a JSON object$/],
    [encode("null\r\n"), /^"null" is not a JSON object$/],
    [encode('{"a": 1\n'), /^"\{"a": 1" is not a JSON object$/],
    [encode("[".repeat(60_000)), /^"\[{64}…" is not a JSON object$/],
    [encode("\u001b[2J"), /^"\\u001b\[2J" is not a JSON object$/],
    [Uint8Array.of(0x7b, 0xff, 0x7d), /^"\{\ufffd\}" is not UTF-8$/],
  ];
  for (const [line, message] of rows) {
    assertMatch(assertThrows(() => parseLine(line), RefusedError).message, message);
  }
});

Deno.test("parseLine() refuses a member that occurs twice, whatever its spelling", () => {
  const encode = (text: string) => new TextEncoder().encode(text);
  const rows: [line: string, name?: string][] = [
    ['{"token":"a","token":"a"}', "token"],
    ['{"token" : "a", "path":"b", "to\\u006ben"\n: "c"}', "token"],
    ['{"a\\"":1,"a\\u0022":2}', 'a"'],
    ['{"__proto__":1,"__proto__":2}', "__proto__"],
    ['{"path":"\\"path\\":","name":"\\\\"}'],
    ['{"path":"a\\\\","name":"path\\":"}'],
    ['{"path":{"path":1},"name":[{"name":1}]}'],
    ['{"path":"token","token":"path"}'],
    ["{}"],
  ];
  for (const [line, name] of rows) {
    if (name === undefined) assertEquals<unknown>(parseLine(encode(line)), JSON.parse(line));
    else {
      const { message } = assertThrows(() => parseLine(encode(line)), RefusedError);
      assertEquals(message, `"${name}" occurs twice; expected it once`);
    }
  }
});
