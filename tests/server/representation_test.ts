import { assertEquals, assertMatch } from "@std/assert";
import { representText } from "../../lib/documents/documents.ts";
import { inlineDisposition, representItem } from "../../lib/server/representation.ts";
import { OneItem } from "../support/one_item.ts";

Deno.test("representItem() dates the item in whole seconds, no later than now", () => {
  const rows: [publishedAt: string, now: string, stated: string][] = [
    ["2026-11-20T00:00:00.000Z", "2026-11-21T00:00:00.000Z", "Fri, 20 Nov 2026 00:00:00 GMT"],
    ["2026-11-20T00:00:00.999Z", "2026-11-20T00:00:00.999Z", "Fri, 20 Nov 2026 00:00:00 GMT"],
    ["2026-11-20T00:00:00.500Z", "2026-11-20T00:00:00.400Z", "Fri, 20 Nov 2026 00:00:00 GMT"],
    ["2026-11-20T00:00:05.000Z", "2026-11-20T00:00:03.900Z", "Fri, 20 Nov 2026 00:00:03 GMT"],
    ["2027-11-20T00:00:00.000Z", "2026-11-20T00:00:00.000Z", "Fri, 20 Nov 2026 00:00:00 GMT"],
  ];
  const storage = new OneItem();
  for (const [publishedAt, now, stated] of rows) {
    const item = { ...storage.item, publishedAt: Date.parse(publishedAt) };
    const { lastModified, validatorFields } = representItem(item, storage, Date.parse(now));
    const note = `${publishedAt} at ${now}`;
    assertEquals(lastModified, Date.parse(stated), note);
    assertEquals(validatorFields.at(-1), ["Last-Modified", stated], note);
  }
});

/** SHA-256 of "abc", the first example of FIPS 180-2. Its base64 has both "+" and "/". */
const DIGEST = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const REPR_DIGEST = "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:";

Deno.test("representText() describes its text, without a date", async () => {
  const { open: _, ...rest } = await representText("text/html; charset=utf-8", "abc", {
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
});

Deno.test("representText() counts and slices bytes", async () => {
  const text = "aé€🎧";
  const bytes = new TextEncoder().encode(text);
  const { length, open } = await representText("text/plain", text);
  assertEquals(length, bytes.length);
  assertEquals(await open(), bytes);
  for (const [first, last] of [[0, 9], [1, 1], [2, 6]] as const) {
    assertEquals(await open({ first, last }), bytes.slice(first, last + 1));
  }
});

/** The only form of the field (RFC 6266 §4.1), with a quoted and an extended name. */
const FIELD_VALUE =
  /^inline; filename="((?:[ !#-[\]-~]|\\["\\])*)"(?:; filename\*=UTF-8''([\w.!#$&+^`|~%-]*))?$/;

Deno.test("inlineDisposition() quotes ASCII names, and extends others", () => {
  const rows: [filename: string, value: string][] = [
    ["a.mp3", 'inline; filename="a.mp3"'],
    ["a, b; c.mp3", 'inline; filename="a, b; c.mp3"'],
    ['say "hi".mp3', 'inline; filename="say \\"hi\\".mp3"'],
    ["back\\slash.mp3", 'inline; filename="back\\\\slash.mp3"'],
    ["für.mp3", "inline; filename=\"f_r.mp3\"; filename*=UTF-8''f%C3%BCr.mp3"],
    ["100%.mp3", "inline; filename=\"100%.mp3\"; filename*=UTF-8''100%25.mp3"],
    ["€'(*).mp3", "inline; filename=\"_'(*).mp3\"; filename*=UTF-8''%E2%82%AC%27%28%2A%29.mp3"],
    ["", 'inline; filename=""'],
    ["\x7f.mp3", "inline; filename=\"_.mp3\"; filename*=UTF-8''%7F.mp3"],
    ["\ud83c.mp3", "inline; filename=\"_.mp3\"; filename*=UTF-8''%EF%BF%BD.mp3"], // half a surrogate pair
    ["🎧.mp3", "inline; filename=\"_.mp3\"; filename*=UTF-8''%F0%9F%8E%A7.mp3"],
  ];
  for (const [filename, value] of rows) assertEquals(inlineDisposition(filename), value);
});

Deno.test("inlineDisposition() returns a valid field value that decodes to the name", () => {
  const units = [..."a;,=*'% ", '"', "\\", "é", "€", "🎧", "\ud83c", "\x7f", "\n"];
  const pairs = units.flatMap((a) => units.map((b) => a + b));
  for (const filename of pairs.flatMap((a) => units.map((b) => a + b))) {
    const value = inlineDisposition(filename);
    assertMatch(value, FIELD_VALUE);
    const [, quoted = "", extended] = FIELD_VALUE.exec(value) ?? [];
    const name = quoted.replaceAll(/\\(.)/g, "$1");
    assertEquals(name, [...filename].map((char) => /[ -~]/.test(char) ? char : "_").join(""));
    // Recipients prefer the extended form (RFC 6266 §4.3), so it is sent only if needed.
    const isNeeded = name !== filename || filename.includes("%");
    const decoded = extended === undefined ? undefined : decodeURIComponent(extended);
    assertEquals(decoded, isNeeded ? filename.toWellFormed() : undefined);
  }
});
