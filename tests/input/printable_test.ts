import { assert, assertEquals } from "@std/assert";
import {
  isPrintable,
  printable,
  printableLines,
  quoted,
  withoutUnprintable,
} from "../../lib/input/printable.ts";

Deno.test("printable() escapes terminal controls, and keeps the characters of every script", () => {
  const rows: [text: string, shown: string][] = [
    ["a.mp3", "a.mp3"],
    ["für 東京 שלום 🎧 👩‍🚀 e\u0301", "für 東京 שלום 🎧 👩‍🚀 e\u0301"],
    ["\x1b[31m", "\\u001b[31m"],
    ["a\nb\r\tc\x7f", "a\\nb\\r\\tc\\u007f"],
    ["\x9b31m", "\\u009b31m"],
    ["a\u202egpj.mp3", "a\\u202egpj.mp3"],
    ["\u2066\u2069\u200e\u200f\u061c", "\\u2066\\u2069\\u200e\\u200f\\u061c"],
    ["\u2028\u2029\ufeff", "\\u2028\\u2029\\ufeff"],
    ["\ud83c", "\\ud83c"], // a lone surrogate
    ["\u{e0001}", "\\udb40\\udc01"],
  ];
  for (const [text, shown] of rows) {
    assertEquals(printable(text), shown);
    assertEquals(isPrintable(text), text === shown);
    assertEquals(quoted(text), `"${shown}"`);
    assert(isPrintable(withoutUnprintable(text)));
  }
  assertEquals(printableLines("a\x1b\nb\u202e"), "a\\u001b\nb\\u202e");
  assertEquals(withoutUnprintable("a\u202egpj\n.mp3"), "a_gpj_.mp3");
});

Deno.test("printable() keeps JSON equivalent", () => {
  const text = String.fromCharCode(...Array(65_536).keys()) + "🎧\u{e0001}";
  const shown = printable(JSON.stringify({ text }));
  assertEquals(JSON.parse(shown), { text });
  assert(isPrintable(shown));
});
