import { assert, assertEquals } from "@std/assert";
import { borrowBytes, MAX_BORROWED, returnBytes } from "../../lib/storage/borrowed_bytes.ts";

Deno.test("bytes are borrowed again once they are returned, and not before", () => {
  const first = borrowBytes(MAX_BORROWED);
  const second = borrowBytes(10);
  assertEquals([first.length, second.length], [MAX_BORROWED, 10]);
  assert(first.buffer !== second.buffer);
  returnBytes(second);
  const third = borrowBytes(20);
  assert(third.buffer === second.buffer);
  const fourth = borrowBytes(20);
  assert(fourth.buffer !== third.buffer);
});

Deno.test("bytes that were not borrowed last are never borrowed by others", () => {
  const kept = borrowBytes(10);
  const last = borrowBytes(10);
  returnBytes(new Uint8Array(10));
  returnBytes(kept);
  const next = borrowBytes(10);
  for (const other of [kept, last]) assert(next.buffer !== other.buffer);
});
