import { assert, assertEquals } from "@std/assert";
import {
  isPrintable,
  printable,
  printableLines,
  quoted,
  quotedClearly,
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

Deno.test("printable() escapes what is not seen, and keeps what joins letters", () => {
  const rows: [text: string, shown: string, clearly?: string][] = [
    ["a\u200bb", "a\\u200bb"],
    ["a\u3164", "a\\u3164"],
    ["a\u00adb", "a\\u00adb"],
    ["\u2060\u034f\u115f\u2800\uffa0", "\\u2060\\u034f\\u115f\\u2800\\uffa0"],
    ["\u{e0fff}", "\\udb43\\udfff"],
    ["👩\u200d🚀 ❤\ufe0f", "👩\u200d🚀 ❤\ufe0f", "👩\\u200d🚀 ❤\\ufe0f"],
    ["می\u200cشود", "می\u200cشود", "می\\u200cشود"],
    ["a b\u00a0c\u3000", "a b\u00a0c\u3000", "a b\\u00a0c\\u3000"],
  ];
  for (const [text, shown, clearly = shown] of rows) {
    assertEquals(printable(text), shown);
    assertEquals(isPrintable(text), true, "a file may have this name");
    assertEquals(quotedClearly(text), `"${clearly}"`);
  }
});

Deno.test("printable() keeps JSON equivalent", () => {
  const text = String.fromCharCode(...Array(65_536).keys()) + "🎧\u{e0001}";
  const shown = printable(JSON.stringify({ text }));
  assertEquals(JSON.parse(shown), { text });
  assert(isPrintable(shown));
});
