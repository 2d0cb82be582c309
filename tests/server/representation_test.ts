import { assertEquals } from "@std/assert";
import { representText } from "../../lib/documents/documents.ts";
import { representItem } from "../../lib/server/representation.ts";
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
