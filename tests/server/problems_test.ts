import { assertEquals, assertInstanceOf, assertMatch } from "@std/assert";
import type { Field } from "../../lib/http/outcome.ts";
import { problemDetails } from "../../lib/http/problem.ts";
import { PROBLEM_TYPES } from "../../lib/server/problems.ts";

Deno.test("problemDetails() sets the length of its content for any detail", () => {
  for (const detail of ["", "a", '"\\\n\0', "é", "€", "🎧 é\u2028"]) {
    const fields: Field[] = [["A", "b"], ["C", "d"]];
    const outcome = problemDetails({ status: 404, title: "Not Found", detail, fields });
    assertInstanceOf(outcome.body, Uint8Array);
    const text = new TextDecoder().decode(outcome.body);
    assertEquals(JSON.parse(text), { title: "Not Found", status: 404, detail });
    assertEquals(outcome.fields, [
      ["Content-Type", "application/problem+json"],
      ["Content-Length", String(outcome.body.length)],
      ["X-Content-Type-Options", "nosniff"],
      ...fields,
    ]);
  }
});

Deno.test("every problem type has its own name, title and meaning", () => {
  const types = Object.entries(PROBLEM_TYPES);
  for (const [name, { title, meaning }] of types) {
    assertMatch(name, /^[a-z]+(-[a-z]+)*$/); // a fragment, and an id
    assertMatch(title, /^[A-Z][\w ]*$/);
    assertMatch(meaning, /^[A-Z].*\.$/);
  }
  for (const member of ["title", "meaning"] as const) {
    assertEquals(new Set(types.map(([, type]) => type[member])).size, types.length);
  }
});
