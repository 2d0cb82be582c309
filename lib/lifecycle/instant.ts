/**
 * Parsing of instants and intervals.
 */

/**
 * An instant: an ISO 8601 date (midnight UTC) or date-time with its offset, a `Date`, or a
 * `Temporal.Instant`, without requiring a runtime that has Temporal.
 */
export type InstantSetting = string | Date | { readonly epochMilliseconds: number };

/** An interval: ISO 8601 text, `start/end` or `start/duration`, or an object. */
export type IntervalSetting =
  | string
  | { readonly start: InstantSetting; readonly end: InstantSetting };

/** A half-open interval. Instants are milliseconds since the epoch, in whole seconds. */
export interface Interval {
  /** The first millisecond of it. */
  readonly start: number;
  /** The first millisecond after it. */
  readonly end: number;
}

/**
 * The last instant that an HTTP-date can express. The first allowed is the epoch, because few
 * clients parse a Deprecation before it (`@-1`).
 */
export const LAST: number = Date.parse("9999-12-31T23:59:59Z");

/**
 * Parses an instant. A time without an offset is rejected, since it would depend on the machine.
 *
 * @returns Milliseconds since the epoch, in whole seconds, from 1970 to 9999; `undefined` if
 *   invalid.
 */
export function readInstant(value: unknown): number | undefined {
  const instant = typeof value === "string" ? parseInstant(value) : millisecondsOf(value);
  return instant === undefined ? undefined : wholeSeconds(instant);
}

/** Returns the milliseconds since the epoch of a `Date` or `Temporal.Instant`. */
export function millisecondsOf(value: unknown): number | undefined {
  if (value instanceof Date) return value.getTime();
  const { epochMilliseconds } = Object(value);
  return typeof epochMilliseconds === "number" ? epochMilliseconds : undefined;
}

/**
 * Parses an interval: `start/end` or `start/duration`.
 *
 * @returns `undefined` if invalid. The end may still precede the start.
 */
export function readInterval(text: string): Interval | undefined {
  const [startText, endText, ...rest] = text.split("/");
  if (startText === undefined || endText === undefined || rest.length > 0) return undefined;
  const start = readInstant(startText);
  if (start === undefined) return undefined;
  const end = /^P/i.test(endText) ? addDuration(start, endText) : readInstant(endText);
  return end === undefined ? undefined : { start, end };
}

/** Formats milliseconds since the epoch as ISO 8601 in UTC, to the second. */
export function formatInstant(instant: number): string {
  return new Date(instant).toISOString().replace(/\.\d+Z$/, "Z");
}

const INSTANT =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?))?$/i;

/**
 * Parses an ISO 8601 date (midnight UTC) or date-time with its offset.
 *
 * @returns Milliseconds since the epoch; `undefined` if invalid, like 30 February.
 */
export function parseInstant(text: string): number | undefined {
  const [date, year, month, day, ...time] = INSTANT.exec(text) ?? [];
  const [hour = 0, minute = 0, second = 0, fraction = "", sign, hours = 0, minutes = 0] = time;
  if (date === undefined) return undefined;
  const midnight = Date.UTC(Number(year), Number(month) - 1, Number(day));
  const found = new Date(midnight); // 30 February rolls over to March
  const isDay = found.getUTCFullYear() === Number(year) &&
    found.getUTCMonth() === Number(month) - 1 && found.getUTCDate() === Number(day);
  const isTime = +hour < 24 && +minute < 60 && +second <= 60; // 60: a leap second
  if (!isDay || !isTime || +hours >= 24 || +minutes >= 60) return undefined;
  const offset = (sign === "-" ? -1 : 1) * (+hours * 60 + +minutes) * 60_000;
  const milliseconds = Math.min(+second, 59) * 1000 + Number(fraction.slice(0, 3).padEnd(3, "0"));
  return midnight + (+hour * 60 + +minute) * 60_000 + milliseconds - offset;
}

const AMOUNT = String.raw`(\d+(?:[.,]\d{1,9})?)`;
const DURATION = new RegExp(
  String.raw`^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?` +
    `(?:T(?:${AMOUNT}H)?(?:${AMOUNT}M)?(?:${AMOUNT}S)?)?$`,
  "i",
);

/** Adds an ISO 8601 duration; days and longer are calendar units in UTC. */
function addDuration(start: number, duration: string): number | undefined {
  const parts = DURATION.exec(duration)?.slice(1);
  // Needs at least one amount, one after any T, and allows a fraction only in the last.
  const isWhole = /\d[YMWDHS]$/i.test(duration) && !/[.,]\d+[HM]\d/i.test(duration);
  if (parts === undefined || !isWhole) return undefined;
  const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts
    .map((part = "0") => Number(part.replace(",", ".")));
  const date = new Date(start);
  const dayOfMonth = date.getUTCDate();
  date.setUTCFullYear(date.getUTCFullYear() + years, date.getUTCMonth() + months);
  if (date.getUTCDate() !== dayOfMonth) date.setUTCDate(0); // the last day of the previous month
  date.setUTCDate(date.getUTCDate() + weeks * 7 + days);
  return wholeSeconds(date.getTime() + ((hours * 60 + minutes) * 60 + seconds) * 1000);
}

/** Truncates to seconds, the precision of the fields, so that no phase changes within a second. */
function wholeSeconds(instant: number): number | undefined {
  const seconds = Math.floor(instant / 1000) * 1000;
  return 0 <= seconds && seconds <= LAST ? seconds : undefined; // also for NaN, an invalid Date
}
