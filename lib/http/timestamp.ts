/** Timestamps (RFC 3339 §5.6), for people and programs. */

import { isDay } from "./http_date.ts";

/** Formats milliseconds since the epoch as ISO 8601 in UTC, to the second. */
export function formatInstant(instant: number): string {
  return new Date(instant).toISOString().replace(/\.\d+Z$/, "Z");
}

const HOUR = String.raw`((?:[01]\d|2[0-3]))`;
const INSTANT = new RegExp(
  String.raw`^(\d{4}-\d\d-\d\d)(?:[T ]${HOUR}:([0-5]\d)(?::([0-5]\d|60)(?:[.,](\d{1,9}))?)?` +
    String.raw`(?:Z|([+-])${HOUR}(?::?([0-5]\d))?))?$`,
  "i",
);

/**
 * Parses an ISO 8601 date (midnight UTC) or date-time with its offset.
 *
 * @returns Milliseconds since the epoch; `undefined` if invalid, like 30 February.
 */
export function parseInstant(text: string): number | undefined {
  const [, date, hour = "00", minute = "00", ...rest] = INSTANT.exec(text) ?? [];
  const [second = "00", fraction = "", sign = "+", hours = "00", minutes = "00"] = rest;
  if (date === undefined || !isDay(date)) return undefined;
  // A leap second counts as the second before it.
  const seconds = `${second === "60" ? "59" : second}.${fraction.slice(0, 3).padEnd(3, "0")}`;
  return Date.parse(`${date}T${hour}:${minute}:${seconds}${sign}${hours}:${minutes}`);
}

export const DAY_MS = 86_400_000;

/** Returns the number of the UTC day of an instant: 0 is 1970-01-01. */
export function dayNumberOf(instant: number): number {
  return Math.floor(instant / DAY_MS);
}

/** Returns the UTC day of an instant, e.g. `2027-01-31`. */
export function dayOf(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10);
}
