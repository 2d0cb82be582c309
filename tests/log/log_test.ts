import { assert, assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { describeError, FaultLog, lineLog, type LogEvent } from "../../lib/log/log.ts";
import { messageOf } from "../../lib/input/printable.ts";
import { readFault } from "../../lib/storage/content/bucket/responses.ts";
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
  const fail = () => {
    const fault = new StorageError("s3", `no answer at ${now}`, { kind: "no answer" });
    return faults.log(fault, { status: 503 });
  };
  const id = fail();
  for (now = 1_000; now <= 130_000; now += 1_000) assertEquals(fail(), id);
  assertEquals(events.map(({ repeated }) => repeated), [undefined, 60, 60]);
  assert(events.every((event) => event["id"] === id && event["status"] === 503));
  now += 60_000; // it was over
  assert(fail() !== id);
  for (let index = 0; index < 1_000; index++) {
    faults.log(new StorageError("s3", String.fromCharCode(97 + index % 26).repeat(index + 1)));
  }
  assert(events.length < 110, `${events.length} lines`);
  assert(time.calls.length > 0);
});

Deno.test("FaultLog tells faults apart by kind, cause, place and what a store answers, whatever values their texts have", () => {
  const failAs = (code: string, index: number) =>
    Object.assign(new Error(`${code} at ${"x".repeat(index)}`), { code });
  const unreadable = (index: number, cause: Error) =>
    new StorageError("files", `${"x".repeat(index)} cannot be read`, { kind: "unreadable", cause });
  const refused = (index: number, status: number, text = "") =>
    readFault(`content ${index}`, { status, headers: new Headers(), text });
  const kinds: ((index: number) => unknown)[] = [
    (index) => unreadable(index, failAs("EIO", index)),
    (index) => unreadable(index, failAs("EMFILE", index)),
    (index) => new StorageError("files", `${"x".repeat(index)} is gone`, { kind: "gone" }),
    () => new StorageError("sqlite", "cannot be read", { cause: new Error("disk I/O error") }),
    () => new StorageError("sqlite", "cannot be read", { cause: new Error("locked") }),
    (index) => new Error(`no account "${"x".repeat(index)}"`),
    (index) => new Error(`no tenant "${"x".repeat(index)}"`),
    (index) => new TypeError(`no account "${"x".repeat(index)}"`, { cause: failAs("EIO", index) }),
    () => "a sentence",
    () => "another",
    ...[403, 503, 404].map((status) => (index: number) => refused(index, status)),
    (index) => refused(index, 403, "<Code>ExpiredToken</Code>"),
  ];
  const events: LogEvent[] = [];
  const faults = new FaultLog((event) => events.push(event));
  for (let index = 1; index <= 30; index++) for (const kind of kinds) faults.log(kind(index));
  assertEquals(events.length, kinds.length, JSON.stringify(events));
  faults.log("it is 12:00 here", {}, { kind: "clocks" });
  faults.log("it is 12:01 here", {}, { kind: "clocks" });
  assertEquals(events.length, kinds.length + 1);
});

Deno.test("describeError() includes every cause, but no token", () => {
  const token = newToken();
  const innermost = new TypeError(`cannot open /media/${token.toUpperCase()}`);
  const error = new Error("storage failed", { cause: new RangeError("out", { cause: innermost }) });
  const text = describeError(error);
  const causes = "Error: storage failed, caused by RangeError: out, caused by TypeError: cannot";
  assert(text.startsWith(causes));
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
      faults.log(error);
    }
    assert(describeError(new Error("outer", { cause: value })).startsWith("Error: outer"), what);
    const message = messageOf(new StorageError("s3", "outer", { cause: value }));
    assert(message.startsWith("s3: outer"), what);
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
