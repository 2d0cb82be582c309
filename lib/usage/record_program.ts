/** What the commands of the program `lifecycle` share that use a record. */

import { type Command, CommanderError } from "commander";
import { type DatabasePlace, requireDatabaseUrl } from "../database/place.ts";
import { nodeRuntime } from "../database/sqlite/node_runtime.ts";
import { EXIT_STATUS, ExitError, exitStatusAfter } from "../errors/exit_status.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { StorageError } from "../errors/storage_error.ts";
import { messageOf } from "../input/printable.ts";
import { print, printError } from "./print.ts";
import type { Ledger } from "./record/ledger.ts";
import { openLedger } from "./record/open_ledger.ts";

/** The option that names the record. */
export interface DatabaseOption {
  readonly database: string;
}

/** Opens the record that `--database` names, which must exist, runs an action, and closes it. */
export async function withLedger(
  database: string,
  action: (ledger: Ledger, place: DatabasePlace) => Promise<void>,
): Promise<void> {
  const place = requireDatabaseUrl(database, "--database");
  const onWarn = (message: string) => printError(`warning: ${message}`);
  const opening = { setting: "--database", runtime: nodeRuntime, mustExist: true, onWarn };
  const { ledger, close } = await openLedger(place, opening);
  try {
    await action(ledger, place);
  } finally {
    await close();
  }
}

/**
 * Runs a command of `lifecycle`, to which the option `--database` is added.
 *
 * @returns The exit status: 0 done, 1 refused, 2 wrong usage; for a gate, that of its verdict.
 */
export async function runRecordCommand(
  command: Command,
  args: readonly string[],
): Promise<number> {
  let help = "";
  command.name(`lifecycle ${command.name()}`)
    .showHelpAfterError("(run with --help for usage)")
    .exitOverride()
    .requiredOption("--database <url>", "the record: sqlite:PATH, or postgres://…")
    .configureOutput({ writeOut: (text) => help += text });
  try {
    await command.parseAsync(args, { from: "user" }).catch(async (error: unknown) => {
      if (help === "") throw error;
      await print(help.trimEnd());
    });
    return EXIT_STATUS.done;
  } catch (error) {
    if (error instanceof CommanderError) return EXIT_STATUS.wrongUsage; // and it has printed what is wrong
    if (error instanceof ExitError) return error.status;
    if (!(error instanceof RefusedError || error instanceof StorageError)) throw error;
    printError(messageOf(error));
    return exitStatusAfter(error);
  }
}
