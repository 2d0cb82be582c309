import { assert, assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { describeError, FaultLog, lineLog, type LogEvent } from "../../lib/log/log.ts";
import { messageOf } from "../../lib/input/printable.ts";
import { newToken } from "../../lib/storage/token.ts";
import { UNREADABLE } from "../support/unreadable.ts";

Deno.test("lineLog() writes one JSON object per line, with a timestamp first", () => {
  using write = stub(console, "error");
  lineLog(() => Date.parse("2027-01-01T00:00:00Z"))({ event: "start", note: "two\nlines" });
  assertEquals(write.calls.map(({ args }) => args), [
    ['{"time":"2027-01-01T00:00:00.000Z","event":"start","note":"two\\nlines"}'],
  ]);
});

Deno.test("lineLog() outlives a disk that is full", () => {
  using _write = stub(console, "error", () => {
    throw new Error("No space left on device");
  });
  lineLog(Date.now)({ event: "start" });
});

Deno.test("FaultLog logs a fault once, then how often it occurred, and bounds what it remembers", () => {
  using time = stub(performance, "now", () => now);
  let now = 0;
  const events: LogEvent[] = [];
  const faults = new FaultLog((event) => events.push(event));
  const fail = () => faults.report(new StorageError("s3", `no answer at ${now}`), { status: 503 });
  const id = fail();
  for (now = 1_000; now <= 130_000; now += 1_000) assertEquals(fail(), id);
  assertEquals(events.map(({ repeated }) => repeated), [undefined, 60, 60]);
  assert(events.every((event) => event["id"] === id && event["status"] === 503));
  now += 60_000; // it was over
  assert(fail() !== id);
  for (let index = 0; index < 1_000; index++) {
    faults.report(new Error(String.fromCharCode(97 + index % 26).repeat(index + 1)));
  }
  assert(events.length < 110, `${events.length} lines`);
  assert(time.calls.length > 0);
});

Deno.test("FaultLog tells faults apart by what a store answers, but not by digests and times", () => {
  const ids = ["403", "503", "403 (ExpiredToken)"].map((answer) => {
    const events: LogEvent[] = [];
    const faults = new FaultLog((event) => events.push(event));
    const report = (said: string, object: number) =>
      faults.report(new StorageError("bucket", `content ${object}: the store answers ${said}`));
    assertEquals(report(answer, 10), report(answer, 11));
    assert(report(answer, 12) !== report("404", 12), answer);
    return events.map(({ cause }) => cause);
  });
  assert(ids.flat().length === 6);
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
  assertEquals(text.split("\n")[1], "TypeError: cannot open /media/(UUID)");
  assert(!text.toLowerCase().includes(token));
  assert(describeError(new Error("out", { cause: "disk full" })).includes("disk full"));
  const circular = new Error("itself");
  circular.cause = circular;
  assert(describeError(circular).startsWith("Error: itself\n"));
  assert(describeError("a string").includes("a string"));
  assert(describeError(undefined).includes("undefined"));
});

Deno.test("describeError() and FaultLog outlive what cannot be read", () => {
  const events: LogEvent[] = [];
  const faults = new FaultLog((event) => events.push(event));
  for (const [what, value] of Object.entries(UNREADABLE)) {
    for (const error of [value, new Error("outer", { cause: value })]) {
      assert(describeError(error).length > 0, what);
      faults.report(error);
    }
    assert(describeError(new Error("outer", { cause: value })).startsWith("Error: outer"), what);
    assertEquals(
      messageOf(new StorageError("s3", "outer", { cause: value })).slice(0, 9),
      "s3: outer",
    );
  }
  assert(events.every(({ cause }) => typeof cause === "string" && cause !== ""));
  const endless = Object.defineProperty(new Error("c"), "cause", {
    get: () => Object.create(endless),
  });
  assert(describeError(endless).startsWith("Error: c, caused by Error: c"));
});

Deno.test("describeError() redacts every token, wherever it appears", () => {
  const [one, other] = [newToken(), newToken()];
  const texts = [one, `${one}${other}`, `/${one} x${other}`, `%2F${one}%2F\n${other}`, `x${one}x`];
  for (const text of texts.flatMap((text) => [text, text.toUpperCase()])) {
    for (const error of [text, new Error(text), new Error("x", { cause: new Error(text) })]) {
      assert(!/[0-9a-f]{8}-[0-9a-f]{4}-4/i.test(describeError(error)), text);
    }
  }
});
