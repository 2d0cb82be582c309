/** What the copy of a record changed, as text and as JSON. */

import { formatInstant } from "../../http/timestamp.ts";
import type { CopyResult } from "./copy_record.ts";
import { plural } from "../output/wording.ts";

/** @param name The name of the record that was copied. */
export function copyText({ isRepeated, sessions, reported, started }: CopyResult, name: string) {
  const done = isRepeated
    ? `Nothing to do: ${name} was copied before`
    : `Copied ${name} with ${plural(sessions, "session")}`;
  const start = started === undefined ? "" : `; the record starts at ${formatInstant(started)}`;
  return `${done}, its last heartbeat at ${formatInstant(reported)}${start}`;
}

export function copyJson({ isRepeated, sessions, reported, started }: CopyResult): string {
  return JSON.stringify({
    copied: !isRepeated,
    sessions,
    reported: new Date(reported).toISOString(),
    started: started === undefined ? undefined : new Date(started).toISOString(),
  });
}
