/** The clients that the operator names, as they are on record. */

import { RefusedError } from "../../errors/refused_error.ts";
import { CLIENT_KINDS, clientName } from "../record/client_names.ts";
import type { RecordSource } from "./evidence.ts";
import { callsIn, type ClientUsage } from "./sums.ts";

/** A client to ignore. */
export interface IgnoredClient extends Pick<ClientUsage, "client" | "calls"> {
  /** Whether the record has calls of the client, in the period or before. */
  readonly isOnRecord: boolean;
  /** The client on record that may be meant, e.g. `app Overcast` for `Overcast`. */
  readonly meant: string | undefined;
}

type Records = readonly RecordSource<"hasClient">[];

/**
 * Checks that a client is on record.
 *
 * @throws {RefusedError} If it is not.
 */
export async function requireOnRecord(
  client: string,
  records: Records,
): Promise<void> {
  if (await hasClient(records, client)) return;
  const meant = await meantBy(client, records);
  const remedy = meant === undefined
    ? `use the report's name, e.g. "app curl"`
    : `did you mean "${meant}"?`;
  throw new RefusedError(`No client "${client}" on record; ${remedy}`);
}

/** Looks up the clients to ignore among those that called, and then on record. */
export async function ignoredClients(
  names: readonly string[],
  called: readonly ClientUsage[],
  records: Records,
): Promise<IgnoredClient[]> {
  return await Promise.all(names.map(async (client) => {
    const calls = callsIn(called.filter((each) => each.client === client));
    const isOnRecord = calls > 0 || await hasClient(records, client);
    const meant = isOnRecord ? undefined : await meantBy(client, records);
    return { client, calls, isOnRecord, meant };
  }));
}

/** Returns the client on record that is meant by a name without its kind, if there is one. */
async function meantBy(
  name: string,
  records: Records,
): Promise<string | undefined> {
  for (const kind of CLIENT_KINDS) {
    const client = clientName(kind, name);
    if (await hasClient(records, client)) return client;
  }
  return undefined;
}

async function hasClient(records: Records, client: string): Promise<boolean> {
  const found = await Promise.all(records.map(({ ledger }) => ledger.hasClient(client)));
  return found.includes(true);
}
