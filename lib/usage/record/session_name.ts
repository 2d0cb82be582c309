/** The names of a session: its id, and the process that a person or a supervisor can find. */

import { formatInstant } from "../../http/timestamp.ts";
import type { ProcessIdentity, Session } from "./records.ts";

/** Formats a session, e.g. "session 3d3a… (process 4711 on web-1, started at 2026-11-22T03:00:00Z)". */
export function sessionText({ id, process }: Pick<Session, "id" | "process">): string {
  const { machine, pid, started } = process;
  const place = machine === undefined ? "" : ` on ${machine}`;
  return `session ${id} (process ${pid}${place}, started at ${formatInstant(started)})`;
}

/** Returns the same as members of a line of the log. */
export function sessionFacts(session: string, { machine, pid, started }: ProcessIdentity) {
  return { session, machine, pid, started: new Date(started).toISOString() };
}
