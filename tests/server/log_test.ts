import { assert, assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import fc from "../support/fast_check.ts";
import { newToken } from "../../lib/storage/token.ts";
import { describeError, lineLog } from "../../lib/server/log.ts";

Deno.test("lineLog() writes one JSON object per line, with a timestamp first", () => {
  using write = stub(console, "error");
  lineLog(() => Date.parse("2027-01-01T00:00:00Z"))({ event: "start", note: "two\nlines" });
  assertEquals(write.calls.map(({ args }) => args), [
    ['{"time":"2027-01-01T00:00:00.000Z","event":"start","note":"two\\nlines"}'],
  ]);
});

Deno.test("describeError() includes every cause, but no token", () => {
  const token = newToken();
  const innermost = new TypeError(`cannot open /media/${token.toUpperCase()}`);
  const error = new Error("storage failed", { cause: new RangeError("out", { cause: innermost }) });
  const text = describeError(error);
  assert(
    text.startsWith(
      "Error: storage failed, caused by RangeError: out, caused by TypeError: cannot",
    ),
  );
  assert(text.includes("log_test.ts"), "the innermost stack is missing");
  assertEquals(text.split("\n")[1], "TypeError: cannot open /media/(token)");
  assert(!text.toLowerCase().includes(token));
  assert(describeError(new Error("out", { cause: "disk full" })).includes("disk full"));
  const circular = new Error("itself");
  circular.cause = circular;
  assert(describeError(circular).startsWith("Error: itself\n"));
  assert(describeError("a string").includes("a string"));
  assert(describeError(undefined).includes("undefined"));
});

Deno.test("describeError() redacts every token, wherever it appears", () => {
  const texts = fc.array(fc.constantFrom(" ", "/", "x", "\n", "%2F", newToken(), newToken()));
  fc.assert(fc.property(texts, fc.boolean(), (parts, isUpper) => {
    const text = parts.map((part) => isUpper ? part.toUpperCase() : part).join("");
    for (const error of [text, new Error(text), new Error("x", { cause: new Error(text) })]) {
      assert(!/[0-9a-f]{8}-[0-9a-f]{4}-4/i.test(describeError(error)), text);
    }
  }));
});
