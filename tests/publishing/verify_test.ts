import { assert, assertEquals, assertRejects } from "@std/assert";
import { stub } from "@std/testing/mock";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { type Verification, verify, type VerifyOptions } from "../../lib/publishing/verify.ts";
import type { LinkedItem } from "../../lib/storage/item.ts";
import type { MediaStorage } from "../../lib/storage/media/media_storage.ts";
import { newToken } from "../../lib/storage/token.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openLocal } from "../support/local_storage.ts";
import { openMemory } from "../support/memory_storage.ts";
import { Origin } from "../support/origin.ts";
import { needing } from "../support/permissions.ts";
import { until } from "../support/within.ts";

const test = needing("environment", "files", "network");

const CONTENT = new TextEncoder().encode("content");
const { signal } = new AbortController();

/** Returns what verifying finds, each as its state and its token or digest, sorted. */
async function linesOf(
  storage: MediaStorage,
  options: Partial<VerifyOptions> = {},
): Promise<string[]> {
  const found: string[] = [];
  const onVerified = (verification: Verification) => {
    found.push(
      "unused" in verification
        ? `unused ${verification.unused}`
        : `${verification.outcome.state} ${verification.token}`,
    );
    return Promise.resolve();
  };
  await verify(storage, { signal, onVerified, ...options });
  return found.sort();
}

function linkTo(location: string): LinkedItem {
  return { token: newToken(), kind: "audio", location, publishedAt: 0, validator: '"a"' };
}

test("verify() skips items that are unpublished meanwhile", async () => {
  await using subject = await openLocal();
  const { storage } = subject;
  for (const method of ["compare", "open"] as const) {
    const { token } = await subject.publish(newMetadata(), CONTENT);
    const original = storage.content[method].bind(storage.content) as (
      item: never,
    ) => Promise<never>;
    using called = stub(
      storage.content as never,
      method,
      (async (item: never) => {
        await subject.unpublish(token, 5000);
        return await original(item);
      }) as never,
    ) as unknown as Disposable & { calls: unknown[] };
    assertEquals(await linesOf(storage, { withContent: true }), [], method);
    assertEquals(called.calls.length, 1);
  }
  const token = newToken();
  await using origin = new Origin(async () => {
    await storage.unpublish(token, 5000);
    return new Response(null, { status: 404 });
  });
  await storage.catalogue.add({ ...linkTo(origin.url("/")), token });
  assertEquals(await linesOf(storage), []);
});

test("verify() rejects when storage as a whole fails, in any way", async () => {
  const faults: [fault: (folder: string) => Promise<void>, message: RegExp][] = [
    [(folder) => Deno.remove(`${folder}/files`, { recursive: true }), / \(CONTENT\) is not /],
    [(folder) => Deno.writeTextFile(`${folder}/files/lock`, "another"), / \(CONTENT\) is not /],
    [
      async (folder) => {
        await Deno.remove(`${folder}/catalogue.sqlite`);
        await new Promise((resolve) => setTimeout(resolve, 1_000)); // the file is looked at later
      },
      /catalogue.*cannot be read/,
    ],
  ];
  for (const [fault, message] of faults) {
    await using subject = await openLocal();
    const { storage } = subject;
    const items = Array.from({ length: 60 }, () => subject.publish(newMetadata(), CONTENT));
    const [item] = await Promise.all(items);
    if (item === undefined) throw new TypeError();
    let count = 0;
    let isFaulty: Promise<void> | undefined;
    const onVerified = () => {
      count++;
      return isFaulty ??= (async () => {
        await fault(subject.folder);
        await subject.damage(item, undefined).catch(() => {});
      })();
    };
    const error = await assertRejects(() => verify(storage, { signal, onVerified }), StorageError);
    assert(message.test(error.message), error.message);
    assert(count < 40, `${count} were reported`);
  }
});

test("verify() stops requesting a host that keeps failing, checks the rest, and can leave URLs out", async () => {
  await using origin = new Origin(() => new Response("x", { headers: { ETag: '"a"' } }));
  await using failing = new Origin(() => new Response(null, { status: 503 }));
  await using subject = await openMemory();
  const { storage } = subject;
  await subject.publish(newMetadata(), CONTENT);
  for (let count = 0; count < 300; count++) {
    await storage.catalogue.add(linkTo(failing.url("/")));
    if (count % 3 === 0) await storage.catalogue.add(linkTo(origin.url("/")));
  }
  const states = (await linesOf(storage)).map((line) => line.split(" ")[0]);
  const count = (state: string) => states.filter((other) => other === state).length;
  assertEquals([count("same"), count("failed")], [101, 300]);
  const requested = failing.requests.length / 2; // by HEAD and GET
  assert(requested >= 50 && requested <= 66, `${requested} were requested`);
  assertEquals((await linesOf(storage, { withoutUrls: true })).length, 1);
});

test("verify() limits its concurrency, and ends when aborted", async () => {
  let [running, most] = [0, 0];
  await using origin = new Origin(async () => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 5));
    running--;
    return new Response("x", { headers: { ETag: '"a"' } });
  });
  await using subject = await openMemory();
  for (let count = 0; count < 100; count++) {
    await subject.storage.catalogue.add(linkTo(origin.url("/")));
  }
  assertEquals((await linesOf(subject.storage)).length, 100);
  assertEquals(most, 16);

  const controller = new AbortController();
  const reason = new TypeError("enough");
  const onVerified = () => Promise.resolve(controller.abort(reason));
  const options = { signal: controller.signal, onVerified };
  await assertRejects(() => verify(subject.storage, options), TypeError, "enough");
  assert(origin.requests.length <= 232);
  await until("the requests to end", () => running === 0);
});
