import { assert, assertEquals } from "@std/assert";
import { newToken } from "../lib/http/token.ts";
import { describeError, lineLog } from "../lib/log.ts";

Deno.test("lineLog() writes one JSON object a line, with the time first", () => {
  const lines: string[] = [];
  const write = console.error;
  console.error = (line: string) => lines.push(line);
  try {
    lineLog(() => Date.parse("2027-01-01T00:00:00Z"))({ event: "start", note: "two\nlines" });
  } finally {
    console.error = write;
  }
  assertEquals(lines, ['{"time":"2027-01-01T00:00:00.000Z","event":"start","note":"two\\nlines"}']);
});

Deno.test("describeError() tells of every cause, and of no token", () => {
  const token = newToken();
  const innermost = new TypeError(`cannot open /media/${token.toUpperCase()}`);
  const error = new Error("storage failed", { cause: new RangeError("out", { cause: innermost }) });
  const text = describeError(error);
  assert(
    text.startsWith(
      "Error: storage failed, caused by RangeError: out, caused by TypeError: cannot",
    ),
  );
  assert(text.includes("log_test.ts"), "the stack of the innermost");
  assert(!text.toLowerCase().includes(token));
  assert(describeError("a string").includes("a string"));
  assert(describeError(undefined).includes("undefined"));
});
