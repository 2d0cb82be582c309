import { assertEquals, assertInstanceOf } from "@std/assert";
import fc from "fast-check";
import type { Answer, Field } from "../lib/http/answer.ts";
import { failure, problem } from "../lib/http/problem.ts";

const ID = "5b6ea11c-9c5e-4b58-8f6b-0a7a6cf5d1e0";

function contentOf({ content }: Answer): Uint8Array {
  assertInstanceOf(content, Uint8Array);
  return content;
}

const textOf = (answer: Answer) => new TextDecoder().decode(contentOf(answer));

Deno.test("problem() says the status, its phrase and the detail (RFC 9457 §3.1, §4.2.1)", () => {
  const rows: [status: number, title: string][] = [
    [400, "Bad Request"],
    [404, "Not Found"],
    [405, "Method Not Allowed"],
    [410, "Gone"],
    [412, "Precondition Failed"],
    [416, "Range Not Satisfiable"],
    [500, "Internal Server Error"],
    [503, "Service Unavailable"],
  ];
  for (const [status, title] of rows) {
    const answer = problem(status, { detail: "So it is" });
    assertEquals(answer.status, status);
    assertEquals(JSON.parse(textOf(answer)), { title, status, detail: "So it is" });
  }
});

Deno.test("problem() keeps itself out of caches unless it is told otherwise", () => {
  const rows: [options: { fields?: Field[]; cacheControl?: Field }, fields: Field[]][] = [
    [{}, [["Cache-Control", "no-store"]]],
    [{ fields: [["Allow", "GET"]] }, [["Cache-Control", "no-store"], ["Allow", "GET"]]],
    [{ cacheControl: ["Cache-Control", "max-age=9"] }, [["Cache-Control", "max-age=9"]]],
    [{ cacheControl: ["Cache-Control", "max-age=9"], fields: [["A", "b"], ["C", "d"]] }, [
      ["Cache-Control", "max-age=9"],
      ["A", "b"],
      ["C", "d"],
    ]],
  ];
  for (const [options, fields] of rows) {
    const answer = problem(404, { detail: "x", ...options });
    assertEquals(answer.fields, [
      ["Content-Type", "application/problem+json"],
      ["Content-Length", String(contentOf(answer).length)],
      ["X-Content-Type-Options", "nosniff"],
      ...fields,
    ]);
    assertEquals(answer.freshUntil, undefined);
  }
});

Deno.test("problem() states the length of its content, whatever the detail holds", () => {
  const texts = fc.string({ unit: fc.constantFrom("a", '"', "\\", "\n", "é", "€", "🎧", "\0") });
  fc.assert(fc.property(texts, (detail) => {
    const answer = problem(400, { detail });
    assertEquals(JSON.parse(textOf(answer)).detail, detail);
    const stated = answer.fields.find(([name]) => name === "Content-Length")?.[1];
    assertEquals(stated, String(new TextEncoder().encode(textOf(answer)).length));
  }));
});

Deno.test("failure() names the occurrence, and when to come back where that may help", () => {
  const rows: [status: 500 | 503, title: string, detail: string, retryAfter: Field[]][] = [
    [500, "Internal Server Error", "The server failed", []],
    [503, "Service Unavailable", "Storage is unavailable; try again", [["Retry-After", "5"]]],
  ];
  for (const [status, title, detail, retryAfter] of rows) {
    const answer = failure(status, ID);
    assertEquals(answer.status, status);
    const body = { title, status, detail, instance: `urn:uuid:${ID}` };
    assertEquals(JSON.parse(textOf(answer)), body);
    assertEquals(answer.fields.slice(3), [["Cache-Control", "no-store"], ...retryAfter]);
  }
});
