import { assertEquals } from "@std/assert";
import type { Field } from "../../lib/http/outcome.ts";
import { forOneClient } from "../../lib/lifecycle/client_responses.ts";

/** Values of Cache-Control in responses that a cache may store without being told, and what is sent. */
const VALUES: [stated: string | undefined, sent: string][] = [
  [undefined, "private"],
  ["", "private"],
  ["max-age=60", "private, max-age=60"],
  ["no-cache", "private, no-cache"],
  ["private", "private"],
  ["Private, max-age=60", "Private, max-age=60"],
  ['private="set-cookie"', 'private, private="set-cookie"'],
  ["public, max-age=60", "private, max-age=60"],
  ["PUBLIC", "private"],
  ["max-age=60, s-maxage=900,, immutable", "private, max-age=60, immutable"],
  ['s-maxage="900"', "private"],
  ['public="a\\", b", x', "private, x"],
  ["s-maxage=soon, x", "private, x"],
  ['x="public, s-maxage=9", y', 'private, x="public, s-maxage=9", y'],
  ["x-public, s-maxagent", "private, x-public, s-maxagent"],
  ["private, public", "private"],
  // For some caches a semicolon separates directives.
  ["public;max-age=60", "private, public;max-age=60"],
  ['public="a";max-age="0"', 'private, public="a";max-age="0"'],
  ['max-age=60, x="', 'private, max-age=60, x="'],
  ["no-store", "no-store"],
  ["No-Store, max-age=60, public", "No-Store, max-age=60"],
  ["no-store, must-understand", "private, no-store, must-understand"],
  ["no-store=1", "private, no-store=1"],
];

Deno.test("forOneClient() makes private what a shared cache might store", () => {
  for (const [stated, sent] of VALUES) {
    const fields: Field[] = stated === undefined ? [] : [["Cache-Control", stated]];
    for (const status of [200, 203, 204, 206, 300, 301, 304, 308, 404, 405, 410, 414, 501]) {
      for (const method of ["GET", "HEAD"]) {
        const result = forOneClient(fields, { method, status });
        assertEquals(result, [["Cache-Control", sent]], `${method} ${status} ${stated}`);
      }
    }
  }
});

/** Values of Cache-Control in responses that no cache may store unless told, and what is sent. */
const UNSTORED: [stated: string | undefined, sent: string | undefined][] = [
  [undefined, undefined],
  ["no-cache", "no-cache"],
  ["no-store", "no-store"],
  ["private", "private"],
  ["public", undefined],
  ["s-maxage=60", undefined],
  ["s-maxage=0", "no-store"],
  ["public, no-transform", "no-transform"],
  ["max-age=60", "private, max-age=60"],
  ["public, max-age=60", "private, max-age=60"],
  // Only some caches read an age or `public` here.
  ["public;max-age=60", "no-store"],
  ['max-age="60"', "no-store"],
  ['x="a, public', "no-store"],
  ["immutable;public", "no-store"],
  ["public, \u00a0max-age=60", "no-store"],
  ["Edge, cache-maxage=1h", "no-store"],
];

const STATUSES: [method: string, status: number][] = [
  ["GET", 302],
  ["HEAD", 302],
  ["GET", 307],
  ["GET", 401],
  ["GET", 403],
  ["GET", 500],
  ["GET", 503],
  ["POST", 200],
  ["POST", 410],
  ["PUT", 204],
  ["DELETE", 404],
  ["OPTIONS", 204],
  ["POST", 304],
];

Deno.test("forOneClient() gives nothing to what no cache could store", () => {
  for (const [stated, sent] of UNSTORED) {
    const fields: Field[] = stated === undefined ? [] : [["cache-control", stated]];
    for (const [method, status] of STATUSES) {
      const result = forOneClient(fields, { method, status });
      const name = stated === undefined ? "Cache-Control" : "cache-control";
      const expected = sent === undefined ? [] : [[name, sent]];
      assertEquals(result, expected as Field[], `${method} ${status} ${stated}`);
    }
  }
});

Deno.test("forOneClient() makes private what has Expires, whatever the status", () => {
  const expires: Field = ["Expires", "Fri, 01 Jan 2027 00:00:00 GMT"];
  for (const [method, status] of STATUSES) {
    const result = forOneClient([expires], { method, status });
    assertEquals(result, [expires, ["Cache-Control", "private"]]);
  }
});

Deno.test("forOneClient() removes what only shared caches read, and keeps the rest in order", () => {
  const fields: Field[] = [
    ["CDN-Cache-Control", "max-age=60"],
    ["ETag", '"a"'],
    ["Cloudflare-CDN-Cache-Control", "max-age=60"],
    ["Cache-Control", "public, max-age=60"],
    ["surrogate-control", "max-age=60"],
    ["Vary", "Authorization"],
    ["Edge-Control", "max-age=1h"],
    ["X-Accel-Expires", "60"],
    ["Expires", "0"],
    ["Surrogate-Key", "songs"],
  ];
  assertEquals(forOneClient(fields, { method: "GET", status: 200 }), [
    ["ETag", '"a"'],
    ["Cache-Control", "private, max-age=60"],
    ["Vary", "Authorization"],
    ["Expires", "0"],
    ["Surrogate-Key", "songs"],
  ]);
  const targeted: Field[] = [["X-ACCEL-EXPIRES", "@9"], ["CDN-CACHE-CONTROL", "max-age=9"]];
  assertEquals(forOneClient(targeted, { method: "GET", status: 302 }), []);
});

/** Fields with which an application keeps a response from some shared caches, and what is sent. */
const FORBIDDING: [name: string, value: string, sent: string][] = [
  ["X-Accel-Expires", "0", "0"],
  ["x-accel-expires", "@0", "0"],
  ["CDN-Cache-Control", "no-store", "no-store"],
  ["CDN-CACHE-CONTROL", "private, max-age=60", "no-store"],
  ["Cloudflare-CDN-Cache-Control", "no-cache", "no-store"],
  ["Surrogate-Control", "max-age=0", "no-store"],
  ["Edge-Control", "bypass-cache", "no-store"],
];

Deno.test("forOneClient() keeps what forbids a shared cache to store, which may have a default", () => {
  for (const [name, value, sent] of FORBIDDING) {
    for (const [status, added] of [[302, []], [200, [["Cache-Control", "private"]]]] as const) {
      const result = forOneClient([[name, value]], { method: "GET", status });
      assertEquals(result, [[name, sent], ...added] as Field[], `${name}: ${value}`);
    }
  }
});
