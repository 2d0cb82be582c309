/** Parsing of instants and intervals. */

import { parseInstant } from "../http/timestamp.ts";

/**
 * An instant: an ISO 8601 date (midnight UTC) or date-time with its offset, a `Date`, or a
 * `Temporal.Instant`. The runtime need not have Temporal.
 */
export type InstantSetting = string | Date | { readonly epochMilliseconds: number };

/**
 * An interval: ISO 8601 text (`start/end` or `start/duration`), or an object. A duration has whole
 * weeks, days, hours, minutes and seconds, like `P1DT12H`.
 */
export type IntervalSetting =
  | string
  | { readonly start: InstantSetting; readonly end: InstantSetting };

/** A half-open interval. Instants are milliseconds since the epoch, in whole seconds. */
export interface Interval {
  /** The first millisecond of the interval. */
  readonly start: number;
  /** The first millisecond after the interval. */
  readonly end: number;
}

/**
 * The last instant that an HTTP-date can express. The first instant allowed is the epoch, because
 * few clients can parse an earlier Deprecation (`@-1`).
 */
export const LAST_INSTANT: number = Date.parse("9999-12-31T23:59:59Z");

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

/** Parses an interval; returns `undefined` if it is invalid. The end may precede the start. */
export function readInterval(text: string): Interval | undefined {
  const [startText, endText, ...rest] = text.split("/");
  if (startText === undefined || endText === undefined || rest.length > 0) return undefined;
  const start = readInstant(startText);
  if (start === undefined) return undefined;
  const end = /^P/i.test(endText) ? addDuration(start, endText) : readInstant(endText);
  return end === undefined ? undefined : { start, end };
}

const DURATION = /^P(?=.)(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/i;

/** Adds an ISO 8601 duration of whole weeks, days, hours, minutes and seconds. */
function addDuration(start: number, duration: string): number | undefined {
  const parts = DURATION.exec(duration);
  if (parts === null) return undefined;
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts.slice(1)
    .map((part = "0") => Number(part));
  const length = ((((weeks * 7 + days) * 24 + hours) * 60) + minutes) * 60 + seconds;
  return wholeSeconds(start + length * 1000);
}

/** Truncates to seconds, the precision of the fields, so that no phase changes within a second. */
function wholeSeconds(instant: number): number | undefined {
  // NaN, from an invalid Date, is out of range, too.
  const seconds = Math.floor(instant / 1000) * 1000;
  return 0 <= seconds && seconds <= LAST_INSTANT ? seconds : undefined;
}
