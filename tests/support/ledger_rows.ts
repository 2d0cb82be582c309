/** Sessions and rows in a ledger, written as a server writes them. */

import type { BeginOptions, Ledger } from "../../lib/usage/record/ledger.ts";
import type { Session, UsageCount } from "../../lib/usage/record/records.ts";
import { NOON, PROCESS } from "./counted_call.ts";

/** Begins a session, as a server that registers does. */
export async function begin(
  ledger: Pick<Ledger, "begin">,
  id: string = crypto.randomUUID(),
  options: BeginOptions = {},
): Promise<Session> {
  const session = {
    ...{ id, policies: {}, process: PROCESS, clock: NOON, sequence: 0 },
    mayStartUnregistered: false,
    publicUrl: "https://api.example.com",
    contact: "mailto:api@example.com",
  };
  const began = await ledger.begin(session, options) ?? NaN;
  const later = { restarted: undefined, ended: undefined, endedBy: undefined, lead: undefined };
  return { ...session, began, reported: began, ...later };
}

/** Adds rows, dated by their `last`, by a server that registers now, and stops. */
export async function addRows(
  ledger: Pick<Ledger, "begin" | "add">,
  rows: readonly (UsageCount & { readonly last: number })[],
): Promise<void> {
  const session = await begin(ledger);
  const parts = [...Map.groupBy(rows, ({ last }) => last)];
  for (const [sequence, [at, counts]] of parts.entries()) {
    await ledger.add({ counts, at, isStopped: sequence === parts.length - 1 }, {
      ...session,
      sequence,
    });
  }
}
