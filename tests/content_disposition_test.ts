import { assertEquals, assertMatch } from "@std/assert";
import fc from "fast-check";
import { inlineDisposition } from "../lib/http/content_disposition.ts";

Deno.test("inlineDisposition() quotes what ASCII can say, and extends what it cannot", () => {
  const rows: [filename: string, value: string][] = [
    ["a.mp3", 'inline; filename="a.mp3"'],
    ["a, b; c.mp3", 'inline; filename="a, b; c.mp3"'],
    ['say "hi".mp3', 'inline; filename="say \\"hi\\".mp3"'],
    ["back\\slash.mp3", 'inline; filename="back\\\\slash.mp3"'],
    ["für.mp3", "inline; filename=\"f_r.mp3\"; filename*=UTF-8''f%C3%BCr.mp3"],
    ["100%.mp3", "inline; filename=\"100%.mp3\"; filename*=UTF-8''100%25.mp3"],
    ["€'(*).mp3", "inline; filename=\"_'(*).mp3\"; filename*=UTF-8''%E2%82%AC%27%28%2A%29.mp3"],
    ["🎧.mp3", "inline; filename=\"_.mp3\"; filename*=UTF-8''%F0%9F%8E%A7.mp3"],
  ];
  for (const [filename, value] of rows) assertEquals(inlineDisposition(filename), value);
});

Deno.test("inlineDisposition() gives a field value that can be sent, and the name back", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (filename) => {
    const value = inlineDisposition(filename);
    new Headers({ "Content-Disposition": value });
    assertMatch(
      value,
      /^inline; filename="(?:[^"\\]|\\["\\])*"(?:; filename\*=UTF-8''[\w.!#$&+^`|~%-]*)?$/,
    );
    const extended = /filename\*=UTF-8''(.*)$/.exec(value)?.[1];
    if (extended !== undefined) assertEquals(decodeURIComponent(extended), filename.toWellFormed());
  }));
});
