import { assertEquals } from "@std/assert";
import fc from "../support/fast_check.ts";
import {
  formatInstant,
  parseInstant,
  readInstant,
  readInterval,
} from "../../lib/lifecycle/instant.ts";

const LAST = Date.parse("9999-12-31T23:59:59Z");

/** Temporal's result, in whole seconds that an HTTP-date can express. */
function expected(read: () => number): number | undefined {
  try {
    const seconds = Math.floor(read() / 1000) * 1000;
    return 0 <= seconds && seconds <= LAST ? seconds : undefined;
  } catch {
    return undefined;
  }
}

const padded = (max: number, length = 2) =>
  fc.nat(max).map((value) => String(value).padStart(length, "0"));
const fraction = fc.oneof(fc.constant(""), fc.stringMatching(/^[.,]\d{1,9}$/));
const offset = fc.oneof(
  fc.constantFrom("Z", "z"),
  fc.tuple(fc.constantFrom("+", "-"), padded(25), fc.constantFrom(":", ""), padded(61))
    .map((parts) => parts.join("")),
  fc.tuple(fc.constantFrom("+", "-"), padded(25)).map((parts) => parts.join("")),
);
const instant = fc.tuple(
  fc.oneof(padded(9999, 4), fc.constantFrom("1969", "1970", "2000", "2024", "2100", "9999")),
  padded(13),
  padded(32),
  fc.constantFrom("T", "t", " "),
  padded(25),
  padded(61),
  fc.option(fc.tuple(padded(61), fraction).map(([second, rest]) => `:${second}${rest}`)),
  offset,
).map(([year, month, day, t, hour, minute, second, zone]) =>
  `${year}-${month}-${day}${t}${hour}:${minute}${second ?? ""}${zone}`
);

Deno.test("readInstant() accepts exactly what Temporal does", () => {
  fc.assert(
    fc.property(instant, (text) => {
      assertEquals(
        readInstant(text),
        expected(() => Temporal.Instant.from(text).epochMilliseconds),
        text,
      );
    }),
    { numRuns: 5_000 },
  );
});

Deno.test("parseInstant() keeps every millisecond", () => {
  for (let instant = 1_795_346_940_000; instant < 1_795_347_000_000; instant++) {
    assertEquals(parseInstant(new Date(instant).toISOString()), instant);
  }
});

const amount = (unit: string, of: fc.Arbitrary<string>) =>
  fc.option(of).map((value) => value === null ? "" : value + unit);
const whole = fc.nat(500).map(String);
const time = fc.tuple(
  fc.constantFrom("T", "t"),
  amount("H", whole),
  amount("M", whole),
  amount("S", whole),
).map((parts) => parts.join(""));
const duration = fc.tuple(
  fc.constantFrom("P", "p"),
  amount("W", whole),
  amount("D", whole),
  fc.oneof(fc.constant(""), time),
).map((parts) => parts.join(""));

Deno.test("readInterval() adds durations as Temporal does in UTC", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e9 }), duration, (start, text) => {
      const from = formatInstant(start * 1000);
      const zoned = Temporal.Instant.from(from).toZonedDateTimeISO("UTC");
      const end = expected(() => zoned.add(Temporal.Duration.from(text)).epochMilliseconds);
      assertEquals(
        readInterval(`${from}/${text}`),
        end === undefined ? undefined : { start: start * 1000, end },
        `${from}/${text}`,
      );
    }),
    { numRuns: 5_000 },
  );
});

Deno.test("instants work on runtimes without Temporal", () => {
  const { Temporal } = globalThis;
  try {
    Reflect.deleteProperty(globalThis, "Temporal");
    assertEquals(readInstant("2027-06-30"), Date.UTC(2027, 5, 30));
    assertEquals(formatInstant(Date.UTC(2027, 5, 30)), "2027-06-30T00:00:00Z");
    assertEquals(readInterval("2027-01-31/P1W")?.end, Date.UTC(2027, 1, 7));
  } finally {
    Object.assign(globalThis, { Temporal });
  }
});
