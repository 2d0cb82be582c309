/** The program `lifecycle`: its commands, and how they are run. */

import { Command } from "commander";
import { exitStatusAfter } from "../errors/exit_status.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { StorageError } from "../errors/storage_error.ts";
import { messageOf } from "../input/printable.ts";
import { printError } from "../input/print.ts";
import { runProgram } from "../input/program.ts";

const VERSION = "0.1.0";

/** Loads each command by its name, because `check` needs nothing of the record. */
const COMMANDS = new Map([
  ["check", async () => (await import("./lifecycle_check.ts")).checkCommand()],
  ["usage", async () => (await import("./lifecycle_usage.ts")).lifecycleUsageCommand()],
  ["hold", async () => (await import("./lifecycle_record.ts")).lifecycleHoldCommand()],
  ["front", async () => (await import("./front/front_command.ts")).frontCommand()],
]);

/**
 * Runs a command.
 *
 * @param args The words after the program's name.
 * @returns The exit status. For `check`: 0 without faults, 1 with some, 2 on wrong usage, or if a URL
 *   cannot be reached, or the output cannot be written. For others: 0 done or clear, 1 refused or
 *   called, 2 wrong usage, 3 unknown, 4 clear, but announced until later.
 */
export async function runLifecycle(args: readonly string[]): Promise<number> {
  const [name = ""] = args;
  const named = COMMANDS.get(name);
  const loading = named === undefined ? [...COMMANDS.values()] : [named]; // help lists all
  const commands = await Promise.all(loading.map((load) => load()));
  const program = new Command("lifecycle")
    .description(
      "Retire HTTP endpoints of any server, check what they announce, report who calls them, and hold" +
        " them.",
    )
    .version(VERSION);
  try {
    return await runProgram(program, commands, args);
  } catch (error) {
    if (!(error instanceof RefusedError || error instanceof StorageError)) throw error;
    printError(`lifecycle: ${messageOf(error)}`);
    return exitStatusAfter(error, args);
  }
}
