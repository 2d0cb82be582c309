import { assertEquals } from "@std/assert";
import { prefersJson } from "../../lib/pages/accept.ts";

/** The values of Accept that choose JSON. */
const JSON_ROWS = [
  "application/json",
  "Application/JSON",
  "application/json;charset=utf-8",
  "application/json; charset=utf-8; version=2",
  'application/json;profile="a,b;q=0", text/html;q=0.5',
  "application/json;version=1;q=0.9, text/html;q=0.8",
  "application/*+json",
  "application/vnd.api+json;version=1",
  "application/ld+json, text/html;q=0.9",
  "application/problem+json;q=0, application/json",
  "application/json, text/plain, */*",
  "application/json, text/html;q=0.5",
  "application/*",
  "text/html;q=0",
  "text/html; q=0.000",
  "text/*;q=0",
  "text/html;q=0, image/png",
  "text/html;q=0, */*;q=0.1",
  "text/html;charset=utf-8;q=0, application/json;q=0.1",
  `application/json${" ".repeat(1000 - "application/json".length)}`,
];

/** Those that choose HTML. */
const HTML_ROWS = [
  undefined,
  "",
  ",",
  "*/*",
  "text/html",
  "text/html;charset=utf-8, application/json;q=0.5",
  "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
  "application/json, text/html",
  "application/json;q=0.5, text/html",
  "application/json;q=0",
  "application/*;q=0",
  "application/json;q=0, text/html;q=0",
  "*/*;q=0",
  "image/png", // rather than 406
  "application/jsonp",
  "application/json-seq",
  'text/plain;a="application/json',
  `application/json${" ".repeat(1001 - "application/json".length)}`,
  `application/json${",application/json".repeat(3_500)}`,
];

Deno.test("prefersJson() follows Accept by types and weights, and is HTML otherwise", () => {
  for (const [rows, isJson] of [[JSON_ROWS, true], [HTML_ROWS, false]] as const) {
    for (const accept of rows) {
      const headers = { get: () => accept ?? null };
      assertEquals(prefersJson(headers), isJson, accept);
    }
  }
});
