/**
 * The suite of batch operations, for every engine and content store.
 */

import { assert, assertEquals } from "@std/assert";
import type { CatalogueRecord } from "../../../lib/storage/catalogue/catalogue.ts";
import { entryOf } from "../../../lib/storage/item.ts";
import { newToken } from "../../../lib/storage/token.ts";
import type { MediaSubject } from "../../support/media_subject.ts";
import type { Test } from "../../support/permissions.ts";
import { linkedItem } from "./linked_item_suite.ts";
import { newMetadata } from "../storage_suite.ts";

const CONTENT = new TextEncoder().encode("content");

/** More than any engine's batch, and not a multiple of one. */
const MANY = 1_213;

/** Runs the suite; every test opens its own storage. */
export function testBatches(
  name: string,
  open: () => MediaSubject | Promise<MediaSubject>,
  register: Test = Deno.test,
): void {
  const test = (what: string, body: (subject: MediaSubject) => Promise<void>) =>
    register(`${name} ${what}`, async () => {
      await using subject = await open();
      await body(subject);
    });

  const linked = (): CatalogueRecord => {
    const item = linkedItem();
    return [item.token, entryOf(item)];
  };
  const buried = (): CatalogueRecord => [
    newToken(),
    { state: "unpublished", kind: "video", unpublishedAt: 5000 },
  ];

  test("addAll() adds items of every sort, and lookUpAll() returns them", async (subject) => {
    const { storage } = subject;
    const { digest, length } = await subject.publish(newMetadata(), CONTENT);
    const of = (count: number, make: () => CatalogueRecord) => Array.from({ length: count }, make);
    const records = [
      ...of(MANY, linked),
      ...of(20, buried),
      ...of(20, () => {
        const item = { ...newMetadata("video"), name: 'ü "x".mp4', language: "de", digest, length };
        return [item.token, entryOf(item)];
      }),
    ];
    const before = await storage.version();
    const { added, faults } = await storage.addAll(records);
    assertEquals([added, faults.size], [new Set(records.map(([token]) => token)), 0]);
    assert(await storage.version() !== before, "the version changes");

    const tokens = records.map(([token]) => token);
    const found = await storage.catalogue.findAll([...tokens, newToken()]);
    assertEquals(found, new Map(records));
    for (const [token, entry] of records.slice(-30)) assertEquals(await storage.find(token), entry);
    assertEquals((await storage.catalogue.findAll([])).size, 0);
  });

  test("addAll() skips tokens that were ever used, and reports them", async (subject) => {
    const { storage } = subject;
    const [first, second, tombstone] = [linked(), linked(), buried()];
    await storage.addAll([first, tombstone]);
    const before = await storage.version();
    const again: CatalogueRecord[] = [
      [first[0], buried()[1]],
      second,
      [tombstone[0], linked()[1]],
    ];
    const { added } = await storage.addAll(again);
    assertEquals(added, new Set([second[0]]));
    assert(await storage.version() !== before, "the version changes");
    const expected = new Map([first, second, tombstone]);
    assertEquals(await storage.catalogue.findAll(again.map(([token]) => token)), expected);
  });

  test("addAll() skips items whose content is missing, and names it", async (subject) => {
    const { storage } = subject;
    const { digest, length } = await subject.publish(newMetadata(), CONTENT);
    const make = (facts: { digest?: string; length?: number; location?: string }) => {
      const item = {
        ...{ ...newMetadata(), digest, length, ...facts },
        ...(facts.location === undefined ? {} : { validator: '"x"' }),
      };
      return [item.token, entryOf(item)] as const;
    };
    const [sound, other] = [make({}), linked()];
    const faulty = [
      make({ digest: "ab".repeat(32) }),
      make({ length: length + 1 }),
      make({ location: "s3://elsewhere/a.mp3" }),
    ];
    const { added, faults } = await storage.addAll([...faulty, sound, other]);
    assertEquals(added, new Set([sound[0], other[0]]));
    assertEquals(new Set(faults.keys()), new Set(faulty.map(([token]) => token)));
    assertEquals((await storage.catalogue.findAll(faulty.map(([token]) => token))).size, 0);
  });

  test("keeps content that is added while its last item is unpublished", async (subject) => {
    const { storage } = subject;
    for (let round = 0; round < 20; round++) {
      const { token, digest, length } = await subject.publish(newMetadata(), CONTENT);
      const item = { ...newMetadata(), digest, length };
      const [, { added, faults }] = await Promise.all([
        storage.unpublish(token, 5000),
        storage.addAll([[item.token, entryOf(item)]]),
      ]);
      assertEquals([added.size, faults.size].toSorted(), [0, 1]);
      assertEquals(await subject.digests(), added.size === 1 ? [digest] : []);
      if (added.size === 1) await storage.unpublish(item.token, 5000);
    }
  });
}
