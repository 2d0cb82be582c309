/** Timestamps (RFC 3339 §5.6), for people and programs. */

/** Formats milliseconds since the epoch as ISO 8601 in UTC, to the second. */
export function formatInstant(instant: number): string {
  return new Date(instant).toISOString().replace(/\.\d+Z$/, "Z");
}
