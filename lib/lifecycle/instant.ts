/**
 * Instants and intervals as people and programs give them.
 */

/** An instant: text is an ISO 8601 date (midnight UTC), or an instant with its offset. */
export type InstantSetting = string | Date | Temporal.Instant;

/** A stretch of time: text is an ISO 8601 interval, `start/end` or `start/duration`. */
export type IntervalSetting =
  | string
  | { readonly start: InstantSetting; readonly end: InstantSetting };

/** A stretch of time, in milliseconds since the epoch and whole seconds; without its end. */
export interface Interval {
  readonly start: number;
  readonly end: number;
}

/**
 * The last instant that an HTTP-date can name. The first is the epoch: recipients of a Deprecation
 * before it (`@-1`) are few.
 */
const LAST = Date.parse("9999-12-31T23:59:59Z");

/**
 * Reads an instant. A time without an offset is none: it would depend on the machine.
 *
 * @returns Milliseconds since the epoch, in whole seconds, from 1970 to 9999; `undefined` for
 *   anything else.
 */
export function readInstant(value: unknown): number | undefined {
  const instant = typeof value === "string"
    ? attempt(() => Temporal.Instant.from(withTime(value)).epochMilliseconds)
    : value instanceof Date
    ? value.getTime()
    : value instanceof Temporal.Instant
    ? value.epochMilliseconds
    : undefined;
  return instant === undefined ? undefined : wholeSeconds(instant);
}

/**
 * Reads an interval that is given as text: `start/end` or `start/duration`.
 *
 * @returns `undefined` for what cannot be read; the end may still come before the start.
 */
export function readInterval(text: string): Interval | undefined {
  const [startText, endText, ...rest] = text.split("/");
  if (startText === undefined || endText === undefined || rest.length > 0) return undefined;
  const start = readInstant(startText);
  if (start === undefined) return undefined;
  const end = /^P/i.test(endText) ? addDuration(start, endText) : readInstant(endText);
  return end === undefined ? undefined : { start, end };
}

/** An instant in milliseconds since the epoch as ISO 8601 in UTC, in whole seconds. */
export function formatInstant(instant: number): string {
  return Temporal.Instant.fromEpochMilliseconds(instant).toString({ smallestUnit: "second" });
}

function withTime(text: string): string {
  return /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00Z` : text;
}

/** Days, weeks, months and years are the calendar's in UTC. */
function addDuration(start: number, duration: string): number | undefined {
  const end = attempt(() => {
    const zoned = Temporal.Instant.fromEpochMilliseconds(start).toZonedDateTimeISO("UTC");
    return zoned.add(Temporal.Duration.from(duration)).epochMilliseconds;
  });
  return end === undefined ? undefined : wholeSeconds(end);
}

/** Fields state seconds, so a phase must not change between two. */
function wholeSeconds(instant: number): number | undefined {
  const seconds = Math.floor(instant / 1000) * 1000;
  return 0 <= seconds && seconds <= LAST ? seconds : undefined; // an invalid Date is NaN
}

/** `undefined` for what Temporal cannot read. */
function attempt<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
