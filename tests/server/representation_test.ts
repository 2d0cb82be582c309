import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { assertSpyCalls } from "@std/testing/mock";
import fc from "../support/fast_check.ts";
import type { Content } from "../../lib/http/answer.ts";
import type { ByteRange } from "../../lib/http/byte_range.ts";
import { representText } from "../../lib/documents/documents.ts";
import { lengthFields, representItem } from "../../lib/server/representation.ts";
import { newToken } from "../../lib/storage/token.ts";
import type { PublishedItem } from "../../lib/storage/storage.ts";
import { streamOf } from "../support/body.ts";
import { OneItem } from "../support/one_item.ts";

/** SHA-256 of "abc", the first example of FIPS 180-2. Its base64 has both "+" and "/". */
const DIGEST = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const REPR_DIGEST = "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:";

const PUBLISHED_AT = Date.parse("2026-11-20T00:00:00.999Z");
const LAST_MODIFIED = Date.parse("2026-11-20T00:00:00Z");
const NOW = Date.parse("2026-11-21T12:00:00Z");

const ITEM: PublishedItem = {
  token: newToken(),
  kind: "audio",
  type: "audio/mpeg",
  length: 3,
  digest: DIGEST,
  publishedAt: PUBLISHED_AT,
};

Deno.test("representItem() separates validators from content fields", () => {
  const { content: _content, ...rest } = representItem(ITEM, new OneItem(), NOW);
  assertEquals(rest, {
    length: 3,
    etag: { weak: false, opaque: DIGEST },
    lastModified: LAST_MODIFIED,
    validatorFields: [
      ["ETag", `"${DIGEST}"`],
      ["Last-Modified", "Fri, 20 Nov 2026 00:00:00 GMT"],
    ],
    contentFields: [
      ["Content-Type", "audio/mpeg"],
      ["Accept-Ranges", "bytes"],
      ["Repr-Digest", REPR_DIGEST],
      ["X-Content-Type-Options", "nosniff"],
    ],
  });
});

Deno.test("representItem() has the name and the language if known", () => {
  const rows: [
    facts: Partial<PublishedItem>,
    language: string | null,
    disposition: string | null,
  ][] = [
    [{}, null, null],
    [{ language: "en-GB" }, "en-GB", null],
    [{ name: "a.mp3" }, null, 'inline; filename="a.mp3"'],
    [{ name: "", language: "de" }, "de", 'inline; filename=""'],
  ];
  for (const [facts, language, disposition] of rows) {
    const item = { ...ITEM, ...facts };
    const { contentFields } = representItem(item, new OneItem(), NOW);
    const fields = new Headers(
      contentFields.map(([name, value]): [string, string] => [name, value]),
    );
    assertEquals(fields.get("content-language"), language);
    assertEquals(fields.get("content-disposition"), disposition);
  }
});

Deno.test("representItem() dates the item in whole seconds, no later than now", () => {
  const rows: [publishedAt: string, now: string, stated: string][] = [
    ["2026-11-20T00:00:00.000Z", "2026-11-21T00:00:00.000Z", "Fri, 20 Nov 2026 00:00:00 GMT"],
    ["2026-11-20T00:00:00.999Z", "2026-11-20T00:00:00.999Z", "Fri, 20 Nov 2026 00:00:00 GMT"],
    ["2026-11-20T00:00:00.500Z", "2026-11-20T00:00:00.400Z", "Fri, 20 Nov 2026 00:00:00 GMT"],
    ["2026-11-20T00:00:05.000Z", "2026-11-20T00:00:03.900Z", "Fri, 20 Nov 2026 00:00:03 GMT"],
    ["2027-11-20T00:00:00.000Z", "2026-11-20T00:00:00.000Z", "Fri, 20 Nov 2026 00:00:00 GMT"],
  ];
  for (const [publishedAt, now, stated] of rows) {
    const item = { ...ITEM, publishedAt: Date.parse(publishedAt) };
    const { lastModified, validatorFields } = representItem(
      item,
      new OneItem(),
      Date.parse(now),
    );
    const note = `${publishedAt} at ${now}`;
    assertEquals(lastModified, Date.parse(stated), note);
    assertEquals(validatorFields.at(-1), ["Last-Modified", stated], note);
  }
});

Deno.test("representItem() opens only the requested content, and only on demand", async () => {
  for (const range of [undefined, { first: 1, last: 2 }]) {
    const storage = new OneItem({ open: () => Promise.resolve(new Blob().stream()) });
    const content = representItem(ITEM, storage, NOW).content(range);
    assertSpyCalls(storage.open, 0);
    assert(typeof content === "function");
    await (await streamOf(content)).cancel();
    assertEquals(storage.open.calls.map(({ args }) => args), [[ITEM, range]]);
  }
});

Deno.test("representText() describes its text, without a date", () => {
  const { content, ...rest } = representText({
    type: "text/html; charset=utf-8",
    text: "abc",
    validatorFields: [["Vary", "Accept"]],
    contentFields: [["Content-Language", "en"]],
  });
  assertEquals(rest, {
    length: 3,
    etag: { weak: false, opaque: DIGEST },
    lastModified: undefined,
    validatorFields: [["ETag", `"${DIGEST}"`], ["Vary", "Accept"]],
    contentFields: [
      ["Content-Type", "text/html; charset=utf-8"],
      ["Accept-Ranges", "bytes"],
      ["Repr-Digest", REPR_DIGEST],
      ["X-Content-Type-Options", "nosniff"],
      ["Content-Language", "en"],
    ],
  });
  assertEquals(decode(content()), "abc");
});

Deno.test("representText() counts and slices bytes", () => {
  const ranges = fc.tuple(fc.string({ minLength: 1, unit: "grapheme" }), fc.nat(), fc.nat());
  fc.assert(fc.property(ranges, ([text, one, other]) => {
    const bytes = [...new TextEncoder().encode(text)];
    const { length, content } = representText({ type: "text/plain", text });
    assertEquals(length, bytes.length);
    const first = Math.min(one % length, other % length);
    const last = Math.max(one % length, other % length);
    const part = content({ first, last });
    assertInstanceOf(part, Uint8Array);
    assertEquals([...part], bytes.filter((_, index) => first <= index && index <= last));
  }));
});

Deno.test("representText() gives different texts different tags", () => {
  const tagOf = (text: string) => representText({ type: "text/plain", text }).etag.opaque;
  assertEquals(tagOf("a"), tagOf("a"));
  assert(tagOf("a") !== tagOf("b"));
});

Deno.test("lengthFields() distinguishes the whole from a part", () => {
  const rows: [length: number, range: ByteRange | undefined, fields: [string, string][]][] = [
    [0, undefined, [["Content-Length", "0"]]],
    [1000, undefined, [["Content-Length", "1000"]]],
    [1000, { first: 0, last: 0 }, [["Content-Length", "1"], ["Content-Range", "bytes 0-0/1000"]]],
    [1000, { first: 10, last: 19 }, [
      ["Content-Length", "10"],
      ["Content-Range", "bytes 10-19/1000"],
    ]],
    [1000, { first: 0, last: 999 }, [
      ["Content-Length", "1000"],
      ["Content-Range", "bytes 0-999/1000"],
    ]],
  ];
  for (const [length, range, fields] of rows) assertEquals(lengthFields(length, range), fields);
});

function decode(content: Content): string {
  assertInstanceOf(content, Uint8Array);
  return new TextDecoder().decode(content);
}
