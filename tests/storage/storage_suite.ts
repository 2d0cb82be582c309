/**
 * The suite of every storage driver. A driver's test file opens storage with a few items, says how
 * to damage it, and runs this.
 */

import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createHash } from "node:crypto";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { UnpublishedError } from "../../lib/storage/errors.ts";
import { PERIOD_MS } from "../../lib/storage/generations.ts";
import type { ContentReference, PublishedItem } from "../../lib/storage/item.ts";
import type { ItemStorage } from "../../lib/storage/storage.ts";
import { newToken, type Token } from "../../lib/storage/token.ts";
import { bytesOf, streamOf } from "../support/body.ts";
import type { Test } from "../support/permissions.ts";

export type ItemMetadata = Omit<PublishedItem, keyof ContentReference>;

/** A driver under test, with functions that change its data from outside. */
export interface Subject extends AsyncDisposable {
  readonly storage: ItemStorage;
  publish(metadata: ItemMetadata, content: Uint8Array): Promise<PublishedItem>;
  unpublish(token: Token, at: number): Promise<void>;
  close(): Promise<void>;
  /** Replaces stored content with other bytes, or removes it. */
  damage(item: PublishedItem, content: Uint8Array | undefined): Promise<void>;
  /** The status for replaced content, if it differs from that for missing content. */
  readonly replaced?: 502;
}

const CONTENT = Uint8Array.from(
  { length: 200_000 },
  (_, index) => (index * 31 + (index >> 8)) % 256,
);

/** A clock that advances with every reading. */
let time = 0;
const later = () => time += PERIOD_MS;

/** Runs the suite on a driver; every test opens its own storage. */
export function testStorage(
  name: string,
  open: () => Subject | Promise<Subject>,
  register: Test = Deno.test,
): void {
  const test = (what: string, body: (subject: Subject) => Promise<void>) =>
    register(`${name} ${what}`, async () => {
      await using subject = await open();
      await body(subject);
    });

  test("find() does not know a token that was never published", async ({ storage }) => {
    assertEquals((await storage.find(newToken(), later())).state, "unknown");
  });

  test("find() returns an item as it was published", async ({ storage, publish }) => {
    const plain = newMetadata();
    const rich = { ...newMetadata("video"), name: 'a "b".mp4', language: "de-AT" };
    for (const metadata of [plain, rich]) {
      const item = await publish(metadata, CONTENT);
      assertEquals(item, { ...metadata, length: CONTENT.length, digest: sha256(CONTENT) });
      const found = await storage.find(metadata.token, later());
      assertEquals(found, { state: "published", kind: metadata.kind, item });
    }
  });

  test("open() returns the whole content and any part of it", async ({ storage, publish }) => {
    const item = await publish(newMetadata(), CONTENT);
    const end = CONTENT.length - 1;
    assertEquals(await bytesOf(() => storage.open(item)), CONTENT);
    for (const [first, last] of [[0, 0], [0, end], [end, end], [1, 65_536], [65_535, 131_073]]) {
      const range = { first: first as number, last: last as number };
      const part = await bytesOf(() => storage.open(item, range));
      assertEquals(part, CONTENT.slice(range.first, range.last + 1), `${first}-${last}`);
    }
  });

  test("open() releases everything once its stream is cancelled", async ({ storage, publish }) => {
    const item = await publish(newMetadata(), CONTENT);
    // The test runner detects leaks.
    await (await streamOf(() => storage.open(item))).cancel();
    const [end, long] = [CONTENT.length - 1, CONTENT.length - 2]; // shorter ones may not need a stream
    for (const last of [end, long]) {
      const range = { first: 1, last };
      await (await streamOf(() => storage.open(item, range))).cancel();
      const reader = (await streamOf(() => storage.open(item, range))).getReader();
      await reader.read();
      const reading = reader.read().catch(() => {});
      await reader.cancel();
      await reading;
    }
  });

  const damages: [string, Uint8Array | undefined][] = [
    ["missing", undefined],
    ["too short", CONTENT.subarray(1)],
    ["too long", new Uint8Array([...CONTENT, 0])],
  ];
  for (const [fault, content] of damages) {
    test(`open() fails when content is ${fault}, and find() from then on, too`, async (subject) => {
      const { storage, publish, damage } = subject;
      const item = await publish(newMetadata(), CONTENT);
      await damage(item, content);
      for (const operation of [() => storage.open(item), () => storage.find(item.token, later())]) {
        const { message } = await assertRejects(async () => await operation(), StorageError);
        assertStringIncludes(message, item.digest);
        assert(!message.includes(item.token), "the message must not contain the token");
      }
    });
  }

  test("open() distinguishes an unpublished item from a damaged one", async (subject) => {
    const { storage, publish, damage, unpublish } = subject;
    const item = await publish(newMetadata(), CONTENT);
    await damage(item, undefined); // a bucket's object stays
    await unpublish(item.token, 5000);
    await assertRejects(async () => await storage.open(item), UnpublishedError);
  });

  test("check() succeeds until storage is closed, and then everything fails", async (subject) => {
    const { storage, publish, close } = subject;
    const item = await publish(newMetadata(), CONTENT);
    await storage.check();
    await close();
    await assertRejects(() => storage.check(), StorageError);
    await assertRejects(async () => await storage.find(item.token, later()), StorageError);
  });
}

/** Makes metadata with a new token. */
export function newMetadata(kind: "audio" | "video" = "audio"): ItemMetadata {
  return { token: newToken(), kind, type: `${kind}/mp4`, publishedAt: 1_000_000_000_000 };
}

function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
