import { assert, assertEquals, assertRejects } from "@std/assert";
import { KvCatalogue } from "../../../lib/storage/kv/catalogue.ts";
import { openKv } from "../../../lib/storage/kv/kv.ts";
import { StorageError } from "../../../lib/storage/storage.ts";
import { description } from "../storage_suite.ts";

Deno.test("KvCatalogue takes a malformed record for a fault, not for absence", async () => {
  using kv = await openKv(":memory:");
  const catalogue = new KvCatalogue(kv);
  const item = { ...description(), digest: "ab".repeat(32), length: 7 };
  await catalogue.add(item);
  const whole = (await kv.get(["item", item.token])).value as Record<string, unknown>;
  const tombstone = { state: "unpublished", kind: "video", unpublishedAt: 5 };
  const rows: [record: unknown, faults: string | undefined][] = [
    [whole, undefined],
    [{ ...whole, writtenBy: "a later version" }, undefined],
    [{ ...whole, name: "", language: "de-AT" }, undefined],
    [tombstone, undefined],
    [
      { state: "published", kind: "audio", type: "audio/mpeg" },
      "length, digest, publishedAt",
    ],
    [{ ...whole, kind: "text" }, "kind"],
    [{ ...whole, type: "text/html" }, "type"],
    [{ ...whole, type: "audio/mpeg\r\nX: y" }, "type"],
    [{ ...whole, length: -1 }, "length"],
    [{ ...whole, length: 1.5 }, "length"],
    [{ ...whole, length: "7" }, "length"],
    [{ ...whole, digest: "AB".repeat(32) }, "digest"],
    [{ ...whole, digest: "../../etc/passwd" }, "digest"],
    [{ ...whole, publishedAt: NaN }, "publishedAt"],
    [{ ...whole, name: 7 }, "name"],
    [{ ...whole, language: "de\n" }, "language"],
    [{ ...tombstone, unpublishedAt: "yesterday" }, "unpublishedAt"],
    [{ ...whole, state: "constructor" }, "state"],
    [{}, "state"],
    ["published", "state"],
    [7, "state"],
  ];
  for (const [record, faults] of rows) {
    await kv.set(["item", item.token], record);
    if (faults === undefined) {
      const finding = await catalogue.find(item.token);
      assert(finding.state !== "unknown" && !JSON.stringify(finding).includes("later version"));
      continue;
    }
    const error = await assertRejects(() => catalogue.find(item.token), StorageError);
    assertEquals(error.message, `kv: a record of the catalogue is malformed (${faults})`);
  }
});
