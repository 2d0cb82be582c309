/** `lifecycle hold`, for a record that applications keep with `openUsage()`. */

import type { Command } from "commander";
import { print, printError } from "../input/print.ts";
import { holdCommand } from "./hold_command.ts";
import { type DatabaseOption, databaseOption, withLedger } from "./lifecycle_record.ts";

export function lifecycleHoldCommand(): Command {
  return holdCommand<DatabaseOption>({
    print,
    printError: (text) => printError(`lifecycle: ${text}`),
    withLedger: ({ database }, action) =>
      withLedger(database, (ledger) => action(ledger, "the route's maxAge")),
  }).addOption(databaseOption());
}
