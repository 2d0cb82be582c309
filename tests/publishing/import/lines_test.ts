import { assert, assertEquals } from "@std/assert";
import { type ImportLine, MAX_LINE, readLines } from "../../../lib/publishing/import/lines.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const textOf = ({ bytes }: Pick<ImportLine, "bytes">) => new TextDecoder().decode(bytes);

async function linesOf(chunks: readonly Uint8Array<ArrayBuffer>[]): Promise<ImportLine[]> {
  const given = new Blob([...chunks]).size;
  async function* each() {
    for (const chunk of chunks) yield await Promise.resolve(chunk);
  }
  const lines = (await Array.fromAsync(readLines(each()))).flat();
  assertEquals(new Blob(lines.map(({ bytes }) => new Uint8Array(bytes))).size, given, "all bytes");
  return lines;
}

Deno.test("readLines() yields every line unchanged, wherever chunks begin and end", async () => {
  for (const text of ["", "\n", "a", "a\n", `ü\r\n\n\r\nb ${"x".repeat(9)}ü\n\nc`, "a\nü\n"]) {
    const bytes = bytesOf(text);
    for (let size = 1; size <= bytes.length + 1; size++) {
      for (let first = 0; first < size; first++) {
        const count = Math.ceil(bytes.length / size);
        const rest = Array.from({ length: count }, (_, at) => first + at * size);
        const chunks = [0, ...rest].map((start, index) => bytes.slice(start, rest[index]));
        const lines = await linesOf(chunks);
        assertEquals(lines.map(textOf), text.match(/[^\n]*\n|[^\n]+$/g) ?? []);
        assertEquals(lines.map(({ number }) => number), lines.map((_, index) => index + 1));
        assert(lines.every(({ isWhole }) => isWhole));
      }
    }
  }
});

Deno.test("readLines() yields a line that is too long in pieces, and continues after it", async () => {
  const long = "x".repeat(5 * MAX_LINE);
  for (const size of [1000, MAX_LINE - 1, MAX_LINE, MAX_LINE + 1, 10 * MAX_LINE]) {
    const bytes = bytesOf(`a\n${long}\nb\n${long}`);
    const chunks = Array.from(
      { length: Math.ceil(bytes.length / size) },
      (_, at) => bytes.slice(at * size, (at + 1) * size),
    );
    const lines = await linesOf(chunks);
    const whole = lines.filter(({ isWhole }) => isWhole);
    assertEquals(whole.map((line) => [line.number, textOf(line)]), [[1, "a\n"], [3, "b\n"]]);
    for (const [number, text] of [[2, `${long}\n`], [4, long]] as const) {
      const pieces = lines.filter((line) => line.number === number);
      assertEquals(pieces.map(textOf).join(""), text);
    }
    assert(lines.every((line) => line.bytes.length <= MAX_LINE + size), "never held whole");
  }
});

Deno.test("readLines() yields the longest allowed line whole", async () => {
  const longest = "x".repeat(MAX_LINE - 1) + "\n";
  const lines = await linesOf([bytesOf(longest), bytesOf(longest), bytesOf(`x${longest}`)]);
  assertEquals(lines.map(({ number, isWhole }) => [number, isWhole]), [[1, true], [2, true], [
    3,
    false,
  ]]);
});
