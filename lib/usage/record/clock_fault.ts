/** The comparison of this machine's clock with the database's. */

import { MINUTE_MS } from "./records.ts";

/**
 * Returns the fault to log if two clocks differ by a minute or more; `undefined` otherwise. Both are
 * in milliseconds since the epoch.
 */
export function clockFault({ here, inDatabase }: {
  /** This machine's clock, by which phases begin and end. */
  readonly here: number;
  /** The database's clock, by which calls are recorded. */
  readonly inDatabase: number;
}): string | undefined {
  if (Math.abs(here - inDatabase) < MINUTE_MS) return undefined;
  const timeHere = new Date(here).toISOString();
  const timeInDatabase = new Date(inDatabase).toISOString();
  return `it is ${timeHere} here, but ${timeInDatabase} in the database: correct the clock that ` +
    "is wrong. Phases begin and end by the clock here; calls are recorded by the database's";
}
