/** The days by which calls are counted. */

export const DAY_MS = 86_400_000;

/** Returns the number of the UTC day of an instant: 0 is 1970-01-01. */
export function dayNumberOf(instant: number): number {
  return Math.floor(instant / DAY_MS);
}

/** Returns the UTC day of an instant, e.g. `2027-01-31`. */
export function dayOf(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10);
}
