import { assert, assertEquals } from "@std/assert";
import { borrowBytes, returnBytes } from "../../lib/storage/borrowed_bytes.ts";

Deno.test("bytes are borrowed again once they are returned, and not before", () => {
  const first = borrowBytes(20);
  const second = borrowBytes(20);
  assertEquals([first.length, second.length], [20, 20]);
  assert(first.buffer !== second.buffer);
  returnBytes(second);
  const third = borrowBytes(10);
  assertEquals(third.length, 10);
  assert(third.buffer === second.buffer);
  const fourth = borrowBytes(10);
  assert(fourth.buffer !== third.buffer);
});

Deno.test("more bytes than were returned can be borrowed", () => {
  returnBytes(borrowBytes(10));
  const more = borrowBytes(1_000);
  assertEquals(more.length, 1_000);
  returnBytes(more);
  assert(borrowBytes(10).buffer === more.buffer);
});

Deno.test("bytes that were not borrowed last are never borrowed by others", () => {
  const kept = borrowBytes(10);
  const last = borrowBytes(10);
  returnBytes(new Uint8Array(10));
  returnBytes(kept);
  const next = borrowBytes(10);
  for (const other of [kept, last]) assert(next.buffer !== other.buffer);
});
