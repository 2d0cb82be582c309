/** The suite of storage made of any catalogue and any content store. */

import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import type { TokenEntry } from "../../../lib/storage/catalogue/catalogue.ts";
import {
  type ContentReference,
  entryOf,
  type LinkedItem,
  MAX_LOCATION,
  MAX_STATED,
  type PublishedItem,
} from "../../../lib/storage/item.ts";
import { newToken } from "../../../lib/storage/token.ts";
import { newMetadata, testStorage } from "../storage_suite.ts";
import { type MediaSubject, publishTo } from "../../support/media_subject.ts";
import type { Test } from "../../support/permissions.ts";

const CONTENT = new TextEncoder().encode("content");
const OTHER = new TextEncoder().encode("other content");

/** More than any engine's batch, and not a multiple of one. */
const MANY = 1_213;

/** Rounds of a race, of which a bucket has none: nothing is deleted there. */
const roundsOn = ({ storage }: MediaSubject) => storage.content.kind === "bucket" ? 1 : 20;

/** Returns what is left of content once no item uses it: all in a bucket, and else nothing. */
const left = ({ storage }: MediaSubject, ...digests: string[]) =>
  storage.content.kind === "bucket" ? digests : [];

/** Makes an item at a URL with a new token and no optional properties. */
export function linkedItem(kind: "audio" | "video" = "audio"): LinkedItem {
  const location = "https://cdn.example/a/b.mp3?c=d%20e";
  return { token: newToken(), kind, location, publishedAt: 1_000_000_000_000 };
}

/** Runs the suite on a catalogue and a content store; every test opens its own. */
export function testMediaStorage(
  name: string,
  open: () => MediaSubject | Promise<MediaSubject>,
  register: Test = Deno.test,
): void {
  testStorage(name, open, register);

  const test = (what: string, body: (subject: MediaSubject) => Promise<void>) =>
    register(`${name} ${what}`, async () => {
      await using subject = await open();
      await body(subject);
    });

  const linked = (): TokenEntry => {
    const item = linkedItem();
    return [item.token, entryOf(item)];
  };
  const buried = (): TokenEntry => [
    newToken(),
    { state: "unpublished", kind: "video", unpublishedAt: 5000 },
  ];

  test("never reuses a token, for a URL or for content", async (subject) => {
    const { storage, publish, digests } = subject;
    const linked = linkedItem();
    await storage.catalogue.add(linked);
    const first = await publish(newMetadata(), CONTENT);
    for (const { token } of [linked, first]) {
      const before = await storage.find(token);
      for (const content of [CONTENT, new Uint8Array([1])]) {
        const again = { ...newMetadata("video"), token };
        await assertRejects(() => publish(again, content), RefusedError);
      }
      await assertRejects(() => storage.catalogue.add({ ...linked, token }), RefusedError);
      assertEquals(await storage.find(token), before);
      await storage.unpublish(token, 5000);
      await assertRejects(() => storage.catalogue.add({ ...linked, token }), RefusedError);
    }
    assertEquals((await digests()).length, left(subject, "CONTENT", "1").length);
  });

  test("unpublish() keeps only the kind of an item, and returns whether there was one", async (subject) => {
    const { storage, publish } = subject;
    const linked = { ...linkedItem("video"), type: "video/mp4", length: 1, validator: '"x"' };
    await storage.catalogue.add(linked);
    for (const { token } of [linked, await publish(newMetadata("video"), CONTENT)]) {
      const before = await storage.catalogue.version();
      assertEquals(await storage.unpublish(token, 5000), true);
      assert(await storage.catalogue.version() !== before, "the version changes");
      assertEquals(await storage.unpublish(token, 6000), false);
      const tombstone = { state: "unpublished", kind: "video", unpublishedAt: 5000 } as const;
      assertEquals(await storage.find(token), tombstone);
      assertEquals(await storage.catalogue.find(token), tombstone);
    }
    assertEquals(await storage.unpublish(newToken(), 5000), false);
  });

  test("publish() stores the same content once", async (subject) => {
    const items = await fulfilled(
      Array.from({ length: 8 }, () => subject.publish(newMetadata(), CONTENT)),
    );
    assertEquals(await subject.digests(), [items[0]?.digest]);

    for (const { token } of items.slice(1)) assert(await subject.storage.unpublish(token, 5000));
    assertEquals(await subject.digests(), [items[0]?.digest]);
    assert(await subject.storage.unpublish(items[0]?.token ?? newToken(), 5000));
    assertEquals(await subject.digests(), left(subject, items[0]?.digest ?? ""));
  });

  test("keeps content that is published while it is unpublished", async (subject) => {
    for (let round = 0; round < roundsOn(subject); round++) {
      const { token } = await subject.publish(newMetadata(), CONTENT);
      const [, item] = await fulfilled([
        subject.storage.unpublish(token, 5000),
        subject.publish(newMetadata(), CONTENT),
      ]);
      assertEquals((await subject.storage.find(item.token)).state, "published");
      await subject.storage.unpublish(item.token, 5000);
      assertEquals(await subject.digests(), left(subject, item.digest));
    }
  });

  test("keeps the location of an object published in place, and never removes it", async (subject) => {
    const { storage } = subject;
    const { token: copied, digest, length } = await subject.publish(newMetadata(), CONTENT);
    const object = { digest, length, location: "s3://bucket/ü b/c.mp3", validator: '"x-1"' };
    const item = { ...newMetadata("video"), ...object };
    await storage.catalogue.add(item);
    const { token } = item;
    assertEquals(await storage.catalogue.find(token), { state: "published", kind: "video", item });
    await assertRejects(() => storage.catalogue.add(item), RefusedError);

    const before = await storage.catalogue.version();
    await storage.catalogue.setValidator(token, '"x-2"');
    assert(await storage.catalogue.version() !== before, "the version changes");
    const renewed = { ...item, validator: '"x-2"' };
    assertEquals(await storage.catalogue.find(token), entryOf(renewed));

    assert(await storage.unpublish(copied, 5000)); // an object in place does not use the copy
    assertEquals(await subject.digests(), left(subject, digest));
    const { token: again } = await subject.publish(newMetadata(), CONTENT);
    assert(await storage.unpublish(token, 5000));
    await storage.catalogue.setValidator(token, '"x-3"'); // too late
    assertEquals((await storage.catalogue.find(token)).state, "unpublished");
    assertEquals(await subject.digests(), [digest]);
    assert(await storage.unpublish(again, 5000));
  });

  test("findByContent() finds an item with the same content and name in the same place", async (subject) => {
    const { storage } = subject;
    const named = (name: string) => ({ ...newMetadata(), name });
    const copy = await subject.publish(named("a 'b'.mp3"), CONTENT);
    const { digest, length } = copy;
    await subject.publish(newMetadata(), CONTENT);
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

  test("publish() publishes nothing twice for publishers that do so at once, if asked", async (subject) => {
    const { storage } = subject;
    const publish = (name: string, content: Uint8Array, reuse = true) =>
      publishTo(storage, { ...newMetadata(), name }, content, reuse);
    const published = await fulfilled(
      Array.from({ length: 12 }, (_, at) => publish(`${at % 3}.mp3`, at % 2 ? CONTENT : OTHER)),
    );
    assertEquals(new Set(published.map(({ token }) => token)).size, 6);
    for (const item of published) {
      assertEquals(await storage.catalogue.findByContent(item, item.name ?? ""), item);
      assertEquals((await storage.find(item.token)).state, "published");
    }
    const [first] = published as [PublishedItem];
    assert((await publish("0.mp3", OTHER, false)).token !== first.token, "unless it is not asked");

    await subject.damage(first, undefined);
    assertEquals(await publish("1.mp3", OTHER), published[4]);
    assertEquals((await storage.find(first.token)).state, "published", "its content is back");

    const location = { location: "s3://media/elsewhere", validator: '"1"' };
    const object = { ...newMetadata(), name: "0.mp3", ...location };
    const { digest, length } = first;
    for (const validator of ['"1"', '"2"']) {
      const added = { ...object, ...newMetadata(), digest, length, validator };
      assertEquals(await storage.catalogue.addUnlessPublished(added), added);
      const again = { ...added, token: newToken() };
      assertEquals(await storage.catalogue.addUnlessPublished(again), added);
    }
    const taken = { ...object, digest, length, token: first.token, name: "other" };
    await assertRejects(() => storage.catalogue.addUnlessPublished(taken), RefusedError);
    await storage.unpublish(first.token, 5000);
    assertEquals((await Array.fromAsync(storage.catalogue.list())).length, 9);
  });

  test("returns an item at a URL as it was published", async ({ storage, digests }) => {
    const stem = "http://[::1]:8000/";
    const items: LinkedItem[] = [
      linkedItem(),
      { ...linkedItem("video"), type: "video/mp4", length: 2 ** 52, validator: 'W/"1"' },
      { ...linkedItem(), type: "application/octet-stream", length: 0 },
      {
        ...linkedItem(),
        location: stem + "~".repeat(MAX_LOCATION - stem.length),
        type: "x".repeat(MAX_STATED),
        validator: " ".repeat(MAX_STATED),
      },
    ];
    for (const item of items) {
      const before = await storage.catalogue.version();
      await storage.catalogue.add(item);
      assert(await storage.catalogue.version() !== before, "the version changes");
      const expected = { state: "linked", kind: item.kind, item } as const;
      assertEquals(await storage.find(item.token), expected);
      assertEquals(await storage.catalogue.find(item.token), expected);
    }
    assertEquals(await storage.catalogue.isEmpty(), false);
    assertEquals(await digests(), []);
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

  test("isUnused() finds content that no item uses", async (subject) => {
    const { storage } = subject;
    const used = await subject.publish(newMetadata(), CONTENT);
    const unused = await subject.publish(newMetadata(), OTHER);
    await subject.unpublish(unused.token, 5000);
    if (storage.content.kind === "bucket") await subject.damage(unused, undefined);
    assert(!await storage.isUnused(unused.digest)); // it is gone
    await subject.damage(unused, OTHER);
    const { digest, length } = unused;
    const location = { location: "s3://media/elsewhere", validator: '"1"' };
    await storage.catalogue.add({ ...newMetadata(), digest, length, ...location });
    assert(await storage.isUnused(unused.digest));
    assert(!await storage.isUnused(used.digest));
    await subject.publish(newMetadata(), OTHER);
    assert(!await storage.isUnused(unused.digest));

    const listed = await Array.fromAsync(storage.content.list());
    assertEquals(listed.sort(), [used.digest, unused.digest].sort());
  });

  test("addAll() adds items of every sort; findAll() and list() return them", async (subject) => {
    const { storage } = subject;
    assert(await storage.catalogue.isEmpty());
    const { token: first, digest, length } = await subject.publish(newMetadata(), CONTENT);
    const of = (count: number, make: () => TokenEntry) => Array.from({ length: count }, make);
    const entries = [
      ...of(MANY, linked),
      ...of(20, buried),
      ...of(20, () => {
        const item = { ...newMetadata("video"), name: 'ü "x".mp4', language: "de", digest, length };
        return [item.token, entryOf(item)];
      }),
    ];
    const before = await storage.catalogue.version();
    const { added, faults } = await storage.addAll(entries);
    assertEquals([added, faults.size], [new Set(entries.map(([token]) => token)), 0]);
    assert(await storage.catalogue.version() !== before, "the version changes");

    const tokens = entries.map(([token]) => token);
    const found = await storage.catalogue.findAll([...tokens, newToken()]);
    assertEquals(found, new Map(entries));
    for (const [token, entry] of entries.slice(-30)) assertEquals(await storage.find(token), entry);
    assertEquals((await storage.catalogue.findAll([])).size, 0);
    const listed = await Array.fromAsync(storage.catalogue.list(), ([token]) => token);
    assertEquals(listed.filter((token) => token !== first), tokens.toSorted());
  });

  test("addAll() skips tokens that were used before, and returns the others", async (subject) => {
    const { storage } = subject;
    const [first, second, tombstone] = [linked(), linked(), buried()];
    await storage.addAll([first, tombstone]);
    const before = await storage.catalogue.version();
    const again: TokenEntry[] = [
      [first[0], buried()[1]],
      second,
      [tombstone[0], linked()[1]],
    ];
    const { added } = await storage.addAll(again);
    assertEquals(added, new Set([second[0]]));
    assert(await storage.catalogue.version() !== before, "the version changes");
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
    for (let round = 0; round < roundsOn(subject); round++) {
      const { token, digest, length } = await subject.publish(newMetadata(), CONTENT);
      const item = { ...newMetadata(), digest, length };
      const [, { added, faults }] = await Promise.all([
        storage.unpublish(token, 5000),
        storage.addAll([[item.token, entryOf(item)]]),
      ]);
      assertEquals(added.size + faults.size, 1);
      assertEquals(await subject.digests(), added.size === 1 ? [digest] : left(subject, digest));
      if (added.size === 1) await storage.unpublish(item.token, 5000);
    }
  });
}

/** Waits for all, so that none outlives its test; throws the first reason if any is rejected. */
async function fulfilled<T extends Promise<unknown>[]>(
  promises: readonly [...T],
): Promise<{ [At in keyof T]: Awaited<T[At]> }> {
  await Promise.allSettled(promises);
  return await Promise.all(promises);
}
