import { assertEquals, assertRejects } from "@std/assert";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import { MAX_LINE_BYTES, readLines } from "../../../lib/publishing/import/lines.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** Returns the numbers and texts of lines, read from chunks of some size after a first one. */
async function linesOf(bytes: Uint8Array<ArrayBuffer>, size: number, first = size) {
  async function* chunks() {
    for (let [start, end] = [0, first]; start < bytes.length; [start, end] = [end, end + size]) {
      yield await Promise.resolve(bytes.slice(start, end));
    }
  }
  const lines = (await Array.fromAsync(readLines(chunks()))).flat();
  return lines.map(({ number, bytes }) => [number, new TextDecoder().decode(bytes)] as const);
}

Deno.test("readLines() yields every line unchanged, wherever chunks begin and end", async () => {
  for (const text of ["", "\n", "a", "a\n", `ü\r\n\n\r\nb ${"x".repeat(9)}ü\n\nc`]) {
    const bytes = bytesOf(text);
    const expected = (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).map((line, at) => [at + 1, line]);
    for (let size = 1; size <= bytes.length + 1; size++) {
      for (let first = 0; first < size; first++) {
        assertEquals<unknown>(await linesOf(bytes, size, first), expected);
      }
    }
  }
  assertEquals((await linesOf(bytesOf("x".repeat(MAX_LINE_BYTES)), 1_000)).length, 1);
});

Deno.test("readLines() refuses a line that is too long, after those before it", async () => {
  const lines = readLines(new Blob(["a\nb\n", "x".repeat(9 * MAX_LINE_BYTES)]).stream());
  assertEquals((await lines.next()).value?.length, 2);
  const message = "Line 3 is longer than 65536 bytes; expected one item per line";
  await assertRejects(() => Array.fromAsync(lines), RefusedError, message);
  const bytes = bytesOf(`a\nb\n${"x".repeat(MAX_LINE_BYTES)}\nc\n`);
  for (const size of [1_000, MAX_LINE_BYTES, 3 * MAX_LINE_BYTES]) { // however the input comes
    await assertRejects(() => linesOf(bytes, size), RefusedError, message);
  }
});
