/** The record of the commands `lifecycle usage` and `lifecycle hold`, and the second of them. */

import { type Command, Option } from "commander";
import { resolve } from "node:path";
import { type DatabasePlace, requireDatabaseUrl, sqliteAt } from "../database/place.ts";
import { nodeRuntime } from "../database/sqlite/node_runtime.ts";
import { print, printError } from "../input/print.ts";
import { holdCommand } from "./hold_command.ts";
import type { Ledger } from "./record/ledger.ts";
import { type OpenLedger, openLedgerToChange, openLedgerToRead } from "./record/open_ledger.ts";
import type { RecordSource } from "./verdict/evidence.ts";

/** The option that names the record. */
export interface DatabaseOption {
  readonly database: string;
}

export function databaseOption(): Option {
  return new Option("--database <url>", "the record: sqlite:PATH, or postgres://…")
    .makeOptionMandatory();
}

/** `lifecycle hold` */
export function lifecycleHoldCommand(): Command {
  return holdCommand<DatabaseOption>({
    print,
    printError: (text) => printError(`lifecycle: ${text}`),
    withLedger: ({ database }, action) =>
      withLedger(database, (ledger) => action(ledger, "the route's maxAge")),
  }).addOption(databaseOption());
}

/** Opens the record that `--database` names, to change it, runs an action, and closes it. */
async function withLedger(
  database: string,
  action: (ledger: Ledger) => Promise<void>,
): Promise<void> {
  const { ledger, close } = await openLedgerToChange(
    requireDatabaseUrl(database, "--database"),
    openingFor("--database"),
  );
  try {
    await action(ledger);
  } finally {
    await close();
  }
}

/** Opens the records that `--database` and `--also` name, to read them, and closes them afterwards. */
export async function withRecords(
  { database, also = [] }: DatabaseOption & { readonly also?: readonly string[] },
  action: (
    records: readonly [RecordSource, ...RecordSource[]],
    places: readonly [DatabasePlace, ...DatabasePlace[]],
  ) => Promise<void>,
): Promise<void> {
  const opened: OpenLedger[] = [];
  const open = async (url: string, setting: string) => {
    const place = requireDatabaseUrl(url, setting);
    const record = await openLedgerToRead(place, openingFor(setting));
    opened.push(record);
    return { place, source: { ledger: record.ledger, name: nameOf(place) } };
  };
  try {
    const own = await open(database, "--database");
    const others = [];
    for (const url of also) others.push(await open(url, "--also"));
    await action(
      [own.source, ...others.map(({ source }) => source)],
      [own.place, ...others.map(({ place }) => place)],
    );
  } finally {
    for (const { close } of opened) await close();
  }
}

function openingFor(setting: string) {
  const onWarn = (message: string) => printError(`lifecycle: warning: ${message}`);
  return { setting, runtime: nodeRuntime, onWarn };
}

/** Returns the name of a record, for people. */
function nameOf(place: DatabasePlace): string {
  return place.kind === "sqlite" ? sqliteAt(resolve(place.path)).name : place.name;
}
