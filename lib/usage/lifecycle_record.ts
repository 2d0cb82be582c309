/** The record of the commands `lifecycle usage` and `lifecycle hold`. */

import { Option } from "commander";
import { type DatabasePlace, requireDatabaseUrl } from "../database/place.ts";
import { nodeRuntime } from "../database/sqlite/node_runtime.ts";
import { printError } from "../input/print.ts";
import type { Ledger } from "./record/ledger.ts";
import { openLedger } from "./record/open_ledger.ts";

/** The option that names the record. */
export interface DatabaseOption {
  readonly database: string;
}

export function databaseOption(): Option {
  return new Option("--database <url>", "the record: sqlite:PATH, or postgres://…")
    .makeOptionMandatory();
}

/** Opens the record that `--database` names, which must exist, runs an action, and closes it. */
export async function withLedger(
  database: string,
  action: (ledger: Ledger, place: DatabasePlace) => Promise<void>,
): Promise<void> {
  const place = requireDatabaseUrl(database, "--database");
  const onWarn = (message: string) => printError(`lifecycle: warning: ${message}`);
  const opening = { setting: "--database", runtime: nodeRuntime, mustExist: true, onWarn };
  const { ledger, close } = await openLedger(place, opening);
  try {
    await action(ledger, place);
  } finally {
    await close();
  }
}
