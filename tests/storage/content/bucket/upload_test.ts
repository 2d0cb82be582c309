/** Uploading to a store, and to one that rejects content or stops. */

import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createHash } from "node:crypto";
import { StorageError } from "../../../../lib/errors/storage_error.ts";
import { upload } from "../../../../lib/storage/content/bucket/upload.ts";
import type { Source } from "../../../../lib/storage/content/content_store.ts";
import { needing } from "../../../support/permissions.ts";
import { freePort } from "../../../support/ports.ts";
import { refusal, response, ScriptedStore } from "../../../support/scripted_store.ts";

const test = needing("network", "environment");

const LOCAL = { hostname: "127.0.0.1", port: 0, onListen() {} };
const CHUNK = new Uint8Array(64 * 1024).fill(7);
/** The length of a source without an end. */
const ENDLESS = Number.MAX_SAFE_INTEGER;

/** Yields chunks that all use one buffer, as when a file is read. */
function source(count: number, change?: (chunk: Uint8Array, index: number) => void): Source {
  return {
    async *read() {
      const chunk = new Uint8Array(CHUNK.length);
      for (let index = 0; index < count; index++) {
        chunk.set(CHUNK);
        change?.(chunk, index);
        yield await Promise.resolve(chunk);
      }
    },
  };
}

const optionsFor = (port: number, count: number) => ({
  url: new URL(`http://127.0.0.1:${port}/media/key`),
  headers: new Headers({ "X-Signed": "yes" }),
  length: count * CHUNK.length,
});

test("upload() sends content with its length, and returns the answer", async () => {
  const hash = createHash("sha256");
  await using server = Deno.serve(LOCAL, async (request) => {
    assertEquals(request.method, "PUT");
    assertEquals(request.headers.get("content-length"), String(40 * CHUNK.length));
    assertEquals(request.headers.get("x-signed"), "yes");
    assertEquals(request.headers.get("transfer-encoding"), null);
    for await (const chunk of request.body ?? []) hash.update(chunk);
    const headers = { "x-amz-bucket-region": "eu-west-1" };
    return new Response("<Code>Fine</Code>", { status: 203, headers });
  });
  const answer = await upload({ ...optionsFor(server.addr.port, 40), source: source(40) });
  assertEquals([answer.status, answer.text], [203, "<Code>Fine</Code>"]);
  assertEquals(answer.headers.get("x-amz-bucket-region"), "eu-west-1");
  const sent = createHash("sha256");
  for (let index = 0; index < 40; index++) sent.update(CHUNK);
  assertEquals(hash.digest("hex"), sent.digest("hex"));
});

test("upload() returns an early answer, and sends nothing more", async () => {
  await using store = new ScriptedStore();
  store.isPatient = true;
  store.script = () => refusal(403, "AccessDenied");
  const options = { ...optionsFor(store.port, 1), length: ENDLESS, source: source(Infinity) };
  const answer = await upload(options);
  assertEquals(answer.status, 403);
  assertStringIncludes(answer.text, "AccessDenied");
});

test("upload() fails when the store stops reading, or does not answer", async () => {
  await using store = new ScriptedStore();
  store.script = () => new Promise(() => {}); // reads only the head
  const options = { ...optionsFor(store.port, 1), length: ENDLESS, source: source(Infinity) };
  const stalled = () => upload({ ...options, stallTimeoutMs: 100 });
  await assertRejects(stalled, StorageError, "accepted no data for 0.1 s");

  const refused = () => upload({ ...optionsFor(freePort(), 1), source: source(1) }); // nobody listens
  await assertRejects(refused, StorageError, "cannot be reached");
});

test("upload() ends at once when aborted, and rejects with what its source throws", async () => {
  await using store = new ScriptedStore();
  store.script = () => new Promise(() => {});
  const controller = new AbortController();
  const endless = { ...source(Infinity), signal: controller.signal };
  const sending = upload({ ...optionsFor(store.port, 1), length: ENDLESS, source: endless });
  setTimeout(() => controller.abort(new RangeError("enough")), 200); // while it waits
  await assertRejects(() => sending, RangeError, "enough");

  const broken = source(5, (_, index) => {
    if (index === 3) throw new RangeError("broken");
  });
  const reading = () => upload({ ...optionsFor(store.port, 5), source: broken });
  await assertRejects(reading, RangeError, "broken");

  store.script = () => response(200, {});
  const aborted = { ...source(1), signal: AbortSignal.abort(new RangeError("before")) };
  const late = () => upload({ ...optionsFor(store.port, 1), source: aborted });
  await assertRejects(late, RangeError, "before");
});
