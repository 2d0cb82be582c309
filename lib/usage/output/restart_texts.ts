/** What a restart of the record changed, as text and as JSON. */

import { formatInstant } from "../../http/timestamp.ts";

/** @param started The start of the record, in milliseconds since the epoch. */
export function restartText(started: number): string {
  return `The record starts again at ${formatInstant(started)}; nothing was deleted`;
}

export function restartJson(started: number): string {
  return JSON.stringify({ started: new Date(started).toISOString() });
}
