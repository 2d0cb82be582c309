import { assertEquals, assertMatch } from "@std/assert";
import { inlineDisposition } from "../../lib/http/content_disposition.ts";

/** The only form of the field (RFC 6266 §4.1), with a quoted and an extended name. */
const FIELD_VALUE =
  /^inline; filename="((?:[ !#-[\]-~]|\\["\\])*)"(?:; filename\*=UTF-8''([\w.!#$&+^`|~%-]*))?$/;

Deno.test("inlineDisposition() quotes ASCII names, and extends others", () => {
  const rows: [filename: string, value: string][] = [
    ["a.mp3", 'inline; filename="a.mp3"'],
    ["a, b; c.mp3", 'inline; filename="a, b; c.mp3"'],
    ['say "hi".mp3', 'inline; filename="say \\"hi\\".mp3"'],
    ["back\\slash.mp3", 'inline; filename="back\\\\slash.mp3"'],
    ["für.mp3", "inline; filename=\"f_r.mp3\"; filename*=UTF-8''f%C3%BCr.mp3"],
    ["100%.mp3", "inline; filename=\"100%.mp3\"; filename*=UTF-8''100%25.mp3"],
    ["€'(*).mp3", "inline; filename=\"_'(*).mp3\"; filename*=UTF-8''%E2%82%AC%27%28%2A%29.mp3"],
    ["", 'inline; filename=""'],
    ["\x7f.mp3", "inline; filename=\"_.mp3\"; filename*=UTF-8''%7F.mp3"],
    ["\ud83c.mp3", "inline; filename=\"_.mp3\"; filename*=UTF-8''%EF%BF%BD.mp3"], // half a surrogate pair
    ["🎧.mp3", "inline; filename=\"_.mp3\"; filename*=UTF-8''%F0%9F%8E%A7.mp3"],
  ];
  for (const [filename, value] of rows) assertEquals(inlineDisposition(filename), value);
});

Deno.test("inlineDisposition() returns a valid field value that decodes to the name", () => {
  const units = [..."a;,=*'% ", '"', "\\", "é", "€", "🎧", "\ud83c", "\x7f", "\n"];
  const pairs = units.flatMap((a) => units.map((b) => a + b));
  for (const filename of pairs.flatMap((a) => units.map((b) => a + b))) {
    const value = inlineDisposition(filename);
    assertMatch(value, FIELD_VALUE);
    const [, quoted = "", extended] = FIELD_VALUE.exec(value) ?? [];
    const name = quoted.replaceAll(/\\(.)/g, "$1");
    assertEquals(name, [...filename].map((char) => /[ -~]/.test(char) ? char : "_").join(""));
    // Recipients prefer the extended form (RFC 6266 §4.3), so it is sent only if needed.
    const isNeeded = name !== filename || filename.includes("%");
    const decoded = extended === undefined ? undefined : decodeURIComponent(extended);
    assertEquals(decoded, isNeeded ? filename.toWellFormed() : undefined);
  }
});
