/**
 * The suite of verification, for any catalogue and any content store.
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { sampleOf } from "../../../lib/storage/catalogue/sample.ts";
import { isUnused, unusedIn } from "../../../lib/storage/content/unused.ts";
import type { CatalogueEntry } from "../../../lib/storage/item.ts";
import type { Token } from "../../../lib/storage/token.ts";
import type { MediaSubject } from "../../support/media_subject.ts";
import type { Test } from "../../support/permissions.ts";
import { newMetadata } from "../storage_suite.ts";

const CONTENT = new TextEncoder().encode("content");
const OTHER = new TextEncoder().encode("other content");

/** Runs the suite on a catalogue and a content store; every test opens its own. */
export function testVerification(
  name: string,
  open: () => MediaSubject | Promise<MediaSubject>,
  register: Test,
): void {
  const test = (what: string, body: (subject: MediaSubject) => Promise<void>) =>
    register(`${name} ${what}`, async () => {
      await using subject = await open();
      await body(subject);
    });

  test("compare() compares stored content without reading it", async (subject) => {
    const { storage } = subject;
    const item = await subject.publish(newMetadata(), CONTENT);
    const rows: [content: Uint8Array | undefined, state: string, reason: string][] = [
      [CONTENT.slice(1), "different", `content ${item.digest} has 6 bytes instead of 7`],
      [OTHER, "different", `content ${item.digest} has 13 bytes instead of 7`],
      [CONTENT.toReversed(), "same", ""],
      [undefined, "missing", `content ${item.digest} is missing`],
      [CONTENT, "same", ""],
    ];
    assertEquals(await storage.content.compare(item), { state: "same" });
    for (const [content, state, reason] of rows) {
      await subject.damage(item, content);
      const comparison = await storage.content.compare(item);
      assertEquals(comparison.state, state);
      assertStringIncludes("reason" in comparison ? comparison.reason : "", reason);
    }
  });

  test("sampleOf() yields the requested number of random published items", async (subject) => {
    const { storage } = subject;
    assertEquals(await tokensOf(sampleOf(storage.catalogue, 3)), []);
    const tokens: Token[] = [];
    for (let count = 0; count < 24; count++) {
      tokens.push((await subject.publish(newMetadata(), CONTENT)).token);
    }
    const published = tokens.splice(4).toSorted();
    for (const token of tokens) await subject.unpublish(token, 5000);

    for (const size of [1, 7, 19, 20]) {
      const sample = await tokensOf(sampleOf(storage.catalogue, size));
      assertEquals([sample.length, new Set(sample).size], [size, size]);
      assert(sample.every((token) => published.includes(token)));
    }
    assertEquals((await tokensOf(sampleOf(storage.catalogue, 5_000))).sort(), published);
    const first = new Set<Token | undefined>();
    for (let round = 0; round < 40; round++) {
      first.add((await tokensOf(sampleOf(storage.catalogue, 1)))[0]);
    }
    assert(first.size > 3, `${first.size} items were ever taken`);
  });

  test("unusedIn() and isUnused() find content that no item uses", async (subject) => {
    const { storage } = subject;
    const used = await subject.publish(newMetadata(), CONTENT);
    const left = await subject.publish(newMetadata(), OTHER);
    assertEquals(await Array.fromAsync(unusedIn(storage)), []);
    await subject.unpublish(left.token, 5000);
    assert(!await isUnused(storage, left.digest)); // it is gone
    await subject.damage(left, OTHER);
    const { digest, length } = left;
    const location = { location: "s3://media/elsewhere", validator: '"1"' };
    await storage.catalogue.add({ ...newMetadata(), digest, length, ...location });
    assertEquals(await Array.fromAsync(unusedIn(storage)), [
      left.digest,
    ]);
    assert(await isUnused(storage, left.digest));
    assert(!await isUnused(storage, used.digest));
    await subject.publish(newMetadata(), OTHER);
    assert(!await isUnused(storage, left.digest));

    const read = async function* () {
      yield await Promise.resolve(new Uint8Array(100));
    };
    await using _staged = await storage.stage({ read });
    assertEquals(await Array.fromAsync(unusedIn(storage)), []);
  });
}

async function tokensOf(entries: AsyncIterable<[Token, CatalogueEntry]>): Promise<Token[]> {
  return await Array.fromAsync(entries, ([token]) => token);
}
