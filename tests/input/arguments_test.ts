import { assertEquals, assertThrows } from "@std/assert";
import { InvalidArgumentError } from "commander";
import { headerOption } from "../../lib/input/arguments.ts";

const parse = (line: string) => headerOption("request").parseArg?.(line, undefined);

Deno.test("--header takes every field of RFC 9110, without the whitespace before its value", () => {
  const rows: [line: string, name: string, value: string][] = [
    ["Authorization: Basic a:b", "Authorization", "Basic a:b"],
    ["X-Empty:", "X-Empty", ""],
    ["a:\t b\tc", "a", "b\tc"],
    ["!#$%&'*+-.^_`|~0aZ: ~", "!#$%&'*+-.^_`|~0aZ", "~"],
    ["City: Malmö", "City", "Malmö"],
  ];
  for (const [line, name, value] of rows) {
    assertEquals(parse(line), [[name, value]]);
    assertEquals(new Headers(parse(line)).get(name), value);
  }
});

Deno.test("--header refuses what is no field", () => {
  const lines = ["", "a", ": b", "a b: c", " a: b", "a : b", "ä: b", "a: b\nc", "a: \0", "a: 日"];
  for (const line of lines) {
    assertThrows(() => parse(line), InvalidArgumentError, 'Expected "NAME: VALUE", where NAME is');
  }
});
