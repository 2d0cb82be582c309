import { assertEquals } from "@std/assert";
import { parseInstant } from "../../lib/http/timestamp.ts";
import { readInstant, readInterval } from "../../lib/lifecycle/instant.ts";

const LAST_INSTANT = Date.parse("9999-12-31T23:59:59Z");

/** Temporal's result, in whole seconds that an HTTP-date can express. */
function expected(read: () => number): number | undefined {
  try {
    const seconds = Math.floor(read() / 1000) * 1000;
    return 0 <= seconds && seconds <= LAST_INSTANT ? seconds : undefined;
  } catch {
    return undefined;
  }
}

const numbers = (count: number) =>
  Array.from({ length: count }, (_, number) => String(number).padStart(2, "0"));

/** Dates, times and offsets that are valid, or just not. */
const DATES = ["0000", "1969", "1970", "2000", "2023", "2024", "2100", "9999"].flatMap((year) =>
  numbers(14).flatMap((month) => numbers(33).map((day) => `${year}-${month}-${day}`))
);
const TIMES = ["T", "t", " "].flatMap((t) => [
  ...numbers(26).flatMap((hour) => numbers(62).map((minute) => `${t}${hour}:${minute}`)),
  ...numbers(62).map((second) => `${t}12:30:${second}`),
  ...[".5", ",123456789", ".1234567890", "."].map((rest) => `${t}12:30:59${rest}`),
]);
const OFFSETS = numbers(26).flatMap((hour) =>
  [hour, `${hour}:59`, `${hour}00`, `${hour}:60`].flatMap((text) => [`+${text}`, `-${text}`])
).concat("Z", "z");

Deno.test("readInstant() accepts exactly what Temporal does", () => {
  const texts = [
    ...DATES.map((date) => `${date}T23:59:59.999Z`),
    ...TIMES.map((time) => `2024-02-29${time}Z`),
    ...["1970-01-01", "2024-02-29", "9999-12-31"].flatMap((date) =>
      OFFSETS.map((offset) => `${date}T12:00${offset}`)
    ),
  ];
  for (const text of texts) {
    const instant = expected(() => Temporal.Instant.from(text).epochMilliseconds);
    assertEquals(readInstant(text), instant, text);
  }
});

Deno.test("parseInstant() keeps every millisecond", () => {
  for (let instant = 1_795_346_940_000; instant < 1_795_347_000_000; instant++) {
    assertEquals(parseInstant(new Date(instant).toISOString()), instant);
  }
});

Deno.test("readInterval() adds durations as Temporal does in UTC", () => {
  const amounts = (unit: string) => ["", `0${unit}`, `1${unit}`, `99${unit}`];
  const times = amounts("H").flatMap((hours) =>
    amounts("M").flatMap((minutes) => amounts("S").map((seconds) => hours + minutes + seconds))
  ).flatMap((time) => ["", `T${time}`, `t${time.toLowerCase()}`]);
  const days = amounts("W").flatMap((weeks) => amounts("D").map((days) => weeks + days));
  for (const from of ["1970-01-01T00:00:00Z", "2024-02-28T23:59:59Z", "9999-12-31T00:00:00Z"]) {
    const zoned = Temporal.Instant.from(from).toZonedDateTimeISO("UTC");
    for (const text of days.flatMap((day) => times.map((time) => `P${day}${time}`))) {
      const end = expected(() => zoned.add(Temporal.Duration.from(text)).epochMilliseconds);
      const interval = end === undefined ? undefined : { start: Date.parse(from), end };
      assertEquals(readInterval(`${from}/${text}`), interval, `${from}/${text}`);
    }
  }
});
