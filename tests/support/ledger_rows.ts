/** Sessions and rows in a ledger, written as a server writes them. */

import { assert } from "@std/assert";
import type { RoutePolicies } from "../../lib/lifecycle/policy.ts";
import type { BeginOptions, Ledger } from "../../lib/usage/record/ledger.ts";
import type { Session, UsageCount } from "../../lib/usage/record/records.ts";
import { PROCESS } from "./counted_call.ts";

/** The time of a process that lives through everything. */
export const FOREVER = Number.MAX_SAFE_INTEGER;

/** Begins a session, as a server that registers does. */
export async function begin(
  ledger: Pick<Ledger, "begin">,
  id: string = crypto.randomUUID(),
  options: BeginOptions = {},
  policies: RoutePolicies = {},
): Promise<Session> {
  const session = {
    ...{ id, policies, process: PROCESS, sequence: 0, mayServeUnrecorded: false },
    unmounted: undefined,
    retainDays: 400,
    publicUrl: "https://api.example.com",
    contact: "mailto:api@example.com",
  };
  const begun = await ledger.begin(session, options);
  assert(begun !== undefined, "the session to lapse is as it was left");
  const { began, timeline } = begun;
  return { ...session, began, timeline, reported: began, ended: undefined };
}

/** Adds rows, dated by their `last`, by a server that registers now, and stops. */
export async function addRows(
  ledger: Pick<Ledger, "begin" | "add">,
  rows: readonly (UsageCount & { readonly last: number })[],
): Promise<void> {
  const session = await begin(ledger);
  const parts = [...Map.groupBy(rows, ({ last }) => last)];
  for (const [sequence, [at, counts]] of parts.entries()) {
    const isLast = sequence === parts.length - 1;
    const heartbeat = isLast ? { intents: undefined, isStopped: true } : undefined;
    await ledger.add({ counts, at, heartbeat }, { ...session, sequence }, FOREVER);
  }
}
