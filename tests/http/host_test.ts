import { assertEquals } from "@std/assert";
import { isHost } from "../../lib/http/host.ts";

Deno.test("isHost() accepts a host with or without a port, and nothing that ends an authority", () => {
  const rows: [value: string | null, isValid: boolean][] = [
    [null, true],
    ["", true],
    ["media.example", true],
    ["media.example:8000", true],
    ["media.example:", true],
    ["media.example:08000", true],
    ["MEDIA.example.", true],
    ["127.0.0.1:8000", true],
    ["[::1]", true],
    ["[::1]:8000", true],
    ["a_b", true],
    ["a%41", true],
    ["a".repeat(300), true],
    ["256.1.1.1", true], // a name by the grammar
    ["xn--a", true],
    ["a..b", true],
    ["[v1.a:b]", true],

    ["h/media/x?", false],
    ["h?", false],
    ["h#", false],
    ["h\\x", false],
    ["user@h", false],
    ["not a host", false],
    ["h\t", false],
    ["h:99999", false],
    ["h:x", false],
    ["h:1:2", false],
    ["[::1", false],
    ["::1", false],
    ['a"b', false],
    ["{a}", false],
    ["[]", false],
    ["[v1]", false],
    ["%", false],
    ["h<x", false],
    ["\u00e4.example", false],
    ["h/".repeat(30_000), false],
  ];
  for (const [value, isValid] of rows) assertEquals(isHost(value), isValid, String(value));
});

Deno.test("isHost() accepts only values that leave the path of their URL unchanged", () => {
  const chars = [..."ab.:[]/?#@\\% 19-_\t"];
  const pairs = chars.flatMap((a) => chars.map((b) => a + b));
  for (const value of pairs.flatMap((a) => [...chars, ...pairs].map((b) => a + b))) {
    if (!isHost(value) || !URL.canParse(`http://${value}`)) continue; // or only by RFC 3986
    assertEquals(new URL(`http://${value}/healthz`).pathname, "/healthz");
  }
});
