/** What the operator declared of the record, and what that changed, as text and as JSON. */

import { formatInstant } from "../../http/timestamp.ts";
import type { Session } from "../record/records.ts";
import { sessionText } from "../record/session_name.ts";
import { endOf } from "../verdict/session_state.ts";
import { capitalized } from "./wording.ts";

/** Says how a session ended, and what that leaves unknown. */
export function goneText(session: Session): string {
  const { ended, reported, endedBy } = session;
  const name = capitalized(sessionText(session));
  const by = endedBy === undefined ? "" : `, and had ended by ${formatInstant(endedBy)}`;
  const end = endOf(session);
  const loss = end > reported ? `. Calls until ${formatInstant(end)} may be missing` : "";
  return `${name} is ${ended}; it last reported at ${formatInstant(reported)}${by}${loss}`;
}

export function goneJson({ id: session, process, ended, reported, endedBy }: Session): string {
  const at = (instant: number) => new Date(instant).toISOString();
  return JSON.stringify({
    session,
    process: { ...process, started: at(process.started) },
    ended,
    reported: at(reported),
    ...endedBy === undefined ? {} : { endedBy: at(endedBy) },
  });
}

/** @param started The start of the record, in milliseconds since the epoch. */
export function restartText(started: number): string {
  return `The record starts again at ${formatInstant(started)}; nothing was deleted`;
}

export function restartJson(started: number): string {
  return JSON.stringify({ started: new Date(started).toISOString() });
}
