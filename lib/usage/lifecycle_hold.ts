/** The command `lifecycle hold`, for a record that applications keep with `openUsage()`. */

import { holdCommand } from "./hold_command.ts";
import { print, printError } from "./print.ts";
import { type DatabaseOption, runRecordCommand, withLedger } from "./record_program.ts";

/**
 * Runs the command.
 *
 * @param args The arguments after `lifecycle hold`.
 * @returns The exit status: 0 done, 1 refused, 2 wrong usage.
 */
export async function runHold(args: readonly string[]): Promise<number> {
  const command = holdCommand<DatabaseOption>({
    print,
    printError,
    withLedger: ({ database }, action) =>
      withLedger(
        database,
        (ledger) => action(ledger, "the route's maxAge"),
      ),
  });
  return await runRecordCommand(command, args);
}
