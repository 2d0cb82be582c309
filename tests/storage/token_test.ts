import { assertEquals } from "@std/assert";
import { newToken, parseToken } from "../../lib/storage/token.ts";

Deno.test("parseToken() refuses what is not a version 4 UUID", () => {
  const others = [
    "",
    "x",
    "5b6ea11c-9c5e-1b58-8f6b-0a7a6cf5d1e0", // version 1
    "5b6ea11c-9c5e-7b58-8f6b-0a7a6cf5d1e0", // version 7
    "5b6ea11c-9c5e-4b58-7f6b-0a7a6cf5d1e0", // another variant
    "5b6ea11c9c5e4b588f6b0a7a6cf5d1e0",
    "{5b6ea11c-9c5e-4b58-8f6b-0a7a6cf5d1e0}",
    "urn:uuid:5b6ea11c-9c5e-4b58-8f6b-0a7a6cf5d1e0",
    " 5b6ea11c-9c5e-4b58-8f6b-0a7a6cf5d1e0",
    "5b6ea11c-9c5e-4b58-8f6b-0a7a6cf5d1e0\n",
    "5b6ea11c-9c5e-4b58-8f6b-0a7a6cf5d1e",
    "00000000-0000-0000-0000-000000000000",
    "%35b6ea11c-9c5e-4b58-8f6b-0a7a6cf5d1e",
  ];
  for (const text of others) assertEquals(parseToken(text), undefined, text);
});

Deno.test("newToken() returns valid tokens, which parseToken() accepts in either case", () => {
  const tokens = new Set(Array.from({ length: 1000 }, newToken));
  assertEquals(tokens.size, 1000);
  for (const token of tokens) {
    assertEquals([parseToken(token), parseToken(token.toUpperCase())], [token, token]);
  }
});
