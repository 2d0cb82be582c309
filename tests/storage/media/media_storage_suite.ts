/**
 * The suite of storage made of any catalogue and any content store.
 */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { TokenTakenError } from "../../../lib/storage/catalogue/catalogue.ts";
import type { ContentReference } from "../../../lib/storage/item.ts";
import { newToken } from "../../../lib/storage/token.ts";
import type { MediaSubject } from "../../support/media_subject.ts";
import type { Test } from "../../support/permissions.ts";
import { testBatches } from "./batch_suite.ts";
import { testLinkedItems } from "./linked_item_suite.ts";
import { newMetadata, testStorage } from "../storage_suite.ts";
import { testVerification } from "./verification_suite.ts";

const CONTENT = new TextEncoder().encode("content");

/** Runs the suite on a catalogue and a content store; every test opens its own. */
export function testMediaStorage(
  name: string,
  open: () => MediaSubject | Promise<MediaSubject>,
  register: Test = Deno.test,
): void {
  testStorage(name, open, register);
  testLinkedItems(name, open, register);
  testVerification(name, open, register);
  testBatches(name, open, register);

  const test = (what: string, body: (subject: MediaSubject) => Promise<void>) =>
    register(`${name} ${what}`, async () => {
      await using subject = await open();
      await body(subject);
    });

  test("publish() never reuses a token", async (subject) => {
    const first = await subject.publish(newMetadata(), CONTENT);
    const again = { ...newMetadata("video"), token: first.token };
    await assertRejects(() => subject.publish(again, CONTENT), TokenTakenError);
    await assertRejects(() => subject.publish(again, new Uint8Array([1])), TokenTakenError);
    const found = await subject.storage.find(first.token);
    assertEquals(found, { state: "published", kind: "audio", item: first });

    await subject.unpublish(first.token, 5000);
    await assertRejects(() => subject.publish(again, CONTENT), TokenTakenError);
    assertEquals(await subject.digests(), []);
  });

  test("publish() stores the same content once", async (subject) => {
    const items = await fulfilled(
      Array.from({ length: 8 }, () => subject.publish(newMetadata(), CONTENT)),
    );
    assertEquals(await subject.digests(), [items[0]?.digest]);

    for (const { token } of items.slice(1)) assert(await subject.storage.unpublish(token, 5000));
    assertEquals(await subject.digests(), [items[0]?.digest]);
    assert(await subject.storage.unpublish(items[0]?.token ?? newToken(), 5000));
    assertEquals(await subject.digests(), []);
  });

  test("unpublish() returns whether there was something to unpublish", async (subject) => {
    const { token } = await subject.publish(newMetadata(), CONTENT);
    assertEquals(await subject.storage.unpublish(newToken(), 5000), false);
    assertEquals(await subject.storage.unpublish(token, 5000), true);
    assertEquals(await subject.storage.unpublish(token, 6000), false);
    const tombstone = { state: "unpublished", kind: "audio", unpublishedAt: 5000 } as const;
    assertEquals(await subject.storage.catalogue.find(token), tombstone);
  });

  test("keeps content that is published while it is unpublished", async (subject) => {
    for (let round = 0; round < 20; round++) {
      const { token } = await subject.publish(newMetadata(), CONTENT);
      const [, item] = await fulfilled([
        subject.storage.unpublish(token, 5000),
        subject.publish(newMetadata(), CONTENT),
      ]);
      assertEquals((await subject.storage.find(item.token)).state, "published");
      await subject.storage.unpublish(item.token, 5000);
    }
    assertEquals(await subject.digests(), []);
  });

  test("records the location of an object published in place, and never removes it", async (subject) => {
    const { storage } = subject;
    const { token: copied, digest, length } = await subject.publish(newMetadata(), CONTENT);
    const object = { digest, length, location: "s3://bucket/ü b/c.mp3", validator: '"x-1"' };
    const item = { ...newMetadata("video"), ...object };
    await storage.catalogue.add(item);
    const { token } = item;
    assertEquals(await storage.catalogue.find(token), { state: "published", kind: "video", item });
    await assertRejects(() => storage.catalogue.add(item), TokenTakenError);

    assert(await storage.unpublish(copied, 5000)); // an object in place does not use the copy
    assertEquals(await subject.digests(), []);
    const { token: again } = await subject.publish(newMetadata(), CONTENT);
    assert(await storage.unpublish(token, 5000));
    assertEquals(await subject.digests(), [digest]);
    assert(await storage.unpublish(again, 5000));
  });

  test("findByContent() finds an item with the same content and name in the same place", async (subject) => {
    const { storage } = subject;
    const named = (name?: string) => ({
      ...newMetadata(),
      ...(name === undefined ? {} : { name }),
    });
    const copy = await subject.publish(named("a 'b'.mp3"), CONTENT);
    const { digest, length } = copy;
    await subject.publish(named(), CONTENT);
    const other = await subject.publish(named("a 'b'.mp3"), new Uint8Array([1]));
    const object = { digest, length, location: "s3://bucket/a.mp3", validator: '"1"' };
    const inPlace = { ...named("a 'b'.mp3"), ...object };
    await storage.catalogue.add(inPlace);

    const content = { digest, length };
    assertEquals(await storage.findByContent(content, "a 'b'.mp3"), copy);
    assertEquals(await storage.findByContent(other, "a 'b'.mp3"), other);
    assertEquals(await storage.catalogue.findByContent(object, "a 'b'.mp3"), inPlace);
    const strangers: [ContentReference, string][] = [
      [content, "A 'b'.mp3"],
      [content, ""],
      [{ ...content, digest: "0".repeat(64) }, "a 'b'.mp3"],
      [{ ...object, validator: '"2"' }, "a 'b'.mp3"],
      [{ ...object, location: "s3://bucket/b.mp3" }, "a 'b'.mp3"],
    ];
    for (const [content, name] of strangers) {
      assertEquals(await storage.findByContent(content, name), undefined);
    }
    await storage.unpublish(copy.token, 5000);
    assertEquals(await storage.findByContent(content, "a 'b'.mp3"), undefined);
    await storage.unpublish(inPlace.token, 5000);
    assertEquals(await storage.catalogue.findByContent(object, "a 'b'.mp3"), undefined);
  });

  test("list() lists everything ordered by token", async (subject) => {
    assert(await subject.storage.catalogue.isEmpty());
    const tokens = [];
    for (let count = 0; count < 250; count++) {
      tokens.push((await subject.publish(newMetadata(), CONTENT)).token);
    }
    await subject.unpublish(tokens[7] ?? newToken(), 5000);
    const listed = await Array.fromAsync(subject.storage.catalogue.list());
    assertEquals(listed.map(([token]) => token), tokens.toSorted());
    assertEquals(listed.filter(([, { state }]) => state === "unpublished").length, 1);
    assert(!await subject.storage.catalogue.isEmpty());
  });
}

/** Waits for all, so that none outlives its test; throws the first reason if any is rejected. */
async function fulfilled<T extends Promise<unknown>[]>(
  promises: readonly [...T],
): Promise<{ [At in keyof T]: Awaited<T[At]> }> {
  await Promise.allSettled(promises);
  return await Promise.all(promises);
}
