import { assertEquals, assertInstanceOf, assertMatch } from "@std/assert";
import fc from "../support/fast_check.ts";
import type { Answer, Field } from "../../lib/http/answer.ts";
import { type Problem, problemAnswer } from "../../lib/http/problem.ts";
import {
  failure,
  problem,
  PROBLEM_TYPES,
  type ProblemOptions,
} from "../../lib/server/problem_types.ts";

const ID = "5b6ea11c-9c5e-4b58-8f6b-0a7a6cf5d1e0";
const PLAIN: Problem = { status: 404, detail: "So it is", fields: [] };

function contentOf({ content }: Answer): Uint8Array {
  assertInstanceOf(content, Uint8Array);
  return content;
}

const bodyOf = (answer: Answer) => JSON.parse(new TextDecoder().decode(contentOf(answer)));

Deno.test("problemAnswer() has a type with its title, or neither (RFC 9457 §4.2.1)", () => {
  const phrases: [status: number, title: string][] = [
    [400, "Bad Request"],
    [404, "Not Found"],
    [410, "Gone"],
    [503, "Service Unavailable"],
  ];
  for (const [status, title] of phrases) {
    const blank = problemAnswer({ ...PLAIN, status }, {});
    assertEquals(blank.status, status);
    assertEquals(bodyOf(blank), { title, status, detail: "So it is" });
    const type = { uri: "/why#x", title: "X" };
    assertEquals(bodyOf(problemAnswer({ ...PLAIN, status, type }, {})), {
      type: "/why#x",
      title: "X",
      status,
      detail: "So it is",
    });
  }
});

Deno.test("problemAnswer() has a successor and documentation if known", () => {
  const rows = [
    {},
    { successor: "/media/x" },
    { documentation: "https://test/why" },
    { successor: "/media/x", documentation: "/why" },
  ];
  for (const links of rows) {
    const { title: _, ...body } = bodyOf(problemAnswer(PLAIN, links));
    assertEquals(body, { status: 404, detail: "So it is", ...links });
  }
});

Deno.test("problemAnswer() sets the length of its content for any detail", () => {
  const texts = fc.string({ unit: fc.constantFrom("a", '"', "\\", "\n", "é", "€", "🎧", "\0") });
  fc.assert(fc.property(texts, (detail) => {
    const fields: Field[] = [["A", "b"], ["C", "d"]];
    const answer = problemAnswer({ ...PLAIN, detail, fields, freshUntil: 9 }, {});
    assertEquals([bodyOf(answer).detail, answer.freshUntil], [detail, 9]);
    assertEquals(answer.fields, [
      ["Content-Type", "application/problem+json"],
      ["Content-Length", String(contentOf(answer).length)],
      ["X-Content-Type-Options", "nosniff"],
      ...fields,
    ]);
  }));
});

Deno.test("problem() has an explained type with its status, and is not cached", () => {
  const rows: [options: Partial<ProblemOptions>, fields: Field[]][] = [
    [{}, [["Cache-Control", "no-store"]]],
    [{ fields: [["Allow", "GET"]] }, [["Cache-Control", "no-store"], ["Allow", "GET"]]],
  ];
  for (const [options, fields] of rows) {
    const made = problem(400, "malformed-token", { detail: "x", ...options });
    const type = { uri: "/deprecation#malformed-token", title: "Malformed token" };
    assertEquals(made, { status: 400, type, detail: "x", fields });
  }
});

/** Never called: the compiler must reject these. */
export function misspelt(): void {
  // @ts-expect-error No other status is allowed with a type,
  problem(410, "malformed-token", { detail: "x" });
  // @ts-expect-error and no type is without an explanation.
  problem(400, "malformed", { detail: "x" });
}

Deno.test("every problem type has its own name, title and meaning", () => {
  const types = Object.entries(PROBLEM_TYPES);
  for (const [name, { status, title, meaning }] of types) {
    assertMatch(name, /^[a-z]+(-[a-z]+)*$/); // a fragment, and an id
    assertMatch(title, /^[A-Z][\w ]*$/);
    assertMatch(meaning, /^[A-Z].*\.$/);
    assertEquals(status >= 400 && status <= 599, true, name);
  }
  for (const member of ["title", "meaning"] as const) {
    assertEquals(new Set(types.map(([, type]) => type[member])).size, types.length);
  }
});

Deno.test("failure() identifies the occurrence, and says when to retry if that may help", () => {
  const rows: [
    status: 500 | 502 | 503,
    type: Problem["type"],
    detail: string,
    retryAfter: Field[],
  ][] = [
    [500, { uri: "/deprecation#server-fault", title: "Server fault" }, "The server failed", []],
    [
      502,
      { uri: "/deprecation#content-replaced", title: "Content replaced" },
      "The content was replaced",
      [],
    ],
    [
      503,
      { uri: "/deprecation#storage-unavailable", title: "Storage unavailable" },
      "Storage is unavailable; retry later",
      [["Retry-After", "5"]],
    ],
  ];
  for (const [status, type, detail, retryAfter] of rows) {
    const fields: Field[] = [["Cache-Control", "no-store"], ...retryAfter];
    assertEquals(failure(status, ID), {
      status,
      type,
      detail,
      instance: `urn:uuid:${ID}`,
      fields,
    });
  }
});
