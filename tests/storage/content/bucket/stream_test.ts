import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { StorageError } from "../../../../lib/errors/storage_error.ts";
import { contentOf, readAtOnce } from "../../../../lib/storage/content/bucket/stream.ts";

/** Long enough for anything immediate. */
const soon = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("contentOf() times out when no byte arrives while one is wanted", async () => {
  let ends = 0;
  const chunks = [new Uint8Array([1, 2])];
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      const chunk = chunks.shift();
      if (chunk !== undefined) controller.enqueue(chunk);
      else return new Promise(() => {});
    },
  }, { highWaterMark: 0 });
  const options = { length: 5, timeoutMs: 20 };
  const reader = contentOf({ stream: () => body, end: () => ends++ }, options).getReader();
  // Nobody reads, so this is not a fault.
  await new Promise((resolve) => setTimeout(resolve, 60));
  assertEquals((await reader.read()).value, new Uint8Array([1, 2]));
  await new Promise((resolve) => setTimeout(resolve, 60));
  assertEquals(ends, 0);
  await assertRejects(() => reader.read(), StorageError, "no byte of content within");
  assertEquals(ends, 1);
});

Deno.test("contentOf() reads nothing before it is requested, and ends with its reader", async () => {
  let [pulls, ends, cancels] = [0, 0, 0];
  const stream = () =>
    new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull(controller) {
        pulls++;
        controller.enqueue(new Uint8Array(2));
      },
      cancel: () => void cancels++,
    }, { highWaterMark: 0 });
  const open = (length: number) => contentOf({ stream, end: () => ends++ }, { length });
  const unread = open(100);
  await soon();
  assertEquals(pulls, 0);
  await unread.cancel();
  const reader = open(100).getReader();
  await reader.read();
  await reader.cancel();
  assertEquals([pulls, ends, cancels], [1, 2, 2]);
});

Deno.test("contentOf() fails when content ends early", async () => {
  const options = { length: 5 };
  const short = new Blob([new Uint8Array(3)]).stream();
  const reader = contentOf({ stream: () => short, end() {} }, options).getReader();
  await reader.read();
  await assertRejects(() => reader.read(), StorageError, "2 bytes early");
});

Deno.test("contentOf() ends early, and says why, where it is told whom to say it", async () => {
  const faults: unknown[] = [];
  const onFault = (fault: unknown) => faults.push(fault);
  const download = () => {
    let ends = 0;
    const stream = () => new Blob([new Uint8Array(3)]).stream();
    return { stream, end: () => ends++, ends: () => ends };
  };
  const short = download();
  const content = await new Response(contentOf(short, { length: 5 }, onFault)).bytes();
  assertEquals([content.length, short.ends()], [3, 1]);
  assertEquals(faults.map(String), ["StorageError: bucket: content ended 2 bytes early"]);
  const whole = download();
  assertEquals((await new Response(contentOf(whole, { length: 3 }, onFault)).bytes()).length, 3);
  await soon();
  assertEquals([whole.ends(), faults.length], [1, 1]);
});

Deno.test("contentOf() reports nothing when it is cancelled during a read", async () => {
  const faults: unknown[] = [];
  const failing = Promise.withResolvers<never>();
  const stream = () =>
    new ReadableStream<Uint8Array<ArrayBuffer>>({ pull: () => failing.promise }, {
      highWaterMark: 0,
    });
  const end = () => failing.reject(new DOMException("aborted", "AbortError"));
  const reader = contentOf({ stream, end }, { length: 5 }, (fault) => faults.push(fault))
    .getReader();
  const reading = reader.read();
  await soon();
  await reader.cancel();
  assertEquals([(await reading).done, faults], [true, []]);
});

Deno.test("readAtOnce() gives all content or an error, and ends the download in any case", async () => {
  const content = new Uint8Array([1, 2, 3]);
  const rows: [bytes: () => Promise<Uint8Array<ArrayBuffer>>, length: number, message?: RegExp][] =
    [
      [() => Promise.resolve(content), 3],
      [() => Promise.resolve(content), 5, /^bucket: content ended 2 bytes early$/],
      [() => Promise.reject(new TypeError("cut off")), 3, /^bucket: content cannot be read$/],
    ];
  for (const [bytes, length, message] of rows) {
    let ends = 0;
    const reading = readAtOnce({ bytes, end: () => ends++ }, length);
    if (message === undefined) assertEquals(await reading, content);
    else assertMatch((await assertRejects(() => reading, StorageError)).message, message);
    assertEquals(ends, 1);
  }
});
