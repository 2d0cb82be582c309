/** What names a process in a line of the log. */

import type { ProcessIdentity } from "./records.ts";

/** Returns a session's id, and the process that a person or a supervisor can find. */
export function sessionFacts(session: string, { machine, pid, started }: ProcessIdentity) {
  return { session, machine, pid, started: new Date(started).toISOString() };
}
