/**
 * `deno task media`: the command line of operators. The exit status is 0 when all is done, 1 when
 * anything was refused or failed, 2 on wrong usage, and 128 plus its number after a signal to stop.
 * `usage --gate` has exit statuses of its own.
 */

import { Command } from "commander";
import { EXIT_STATUS, exitStatusAfter } from "../errors/exit_status.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { StorageError } from "../errors/storage_error.ts";
import { messageOf } from "../input/printable.ts";
import { isPipeClosed } from "../input/print.ts";
import { runProgram } from "../input/program.ts";
import { ConfigError, readConfig } from "../server/config.ts";
import { readVariables } from "../server/environment.ts";
import { deprecatedPaths } from "../server/route.ts";
import { exitStatusOf } from "../server/stop_signal.ts";
import { VERSION } from "../server/version.ts";
import { OwnerError } from "../storage/owner.ts";
import { lineAsOwner } from "./as_owner.ts";
import type { Program } from "./context.ts";
import { exportCommand } from "./export.ts";
import { mediaHoldCommand } from "./hold.ts";
import { importCommand } from "./import.ts";
import { InterruptedError } from "./interruption.ts";
import { listCommand } from "./list.ts";
import { printError } from "./print.ts";
import { publishCommand } from "./publish.ts";
import { showCommand } from "./show.ts";
import { unpublishCommand } from "./unpublish.ts";
import { mediaUsageCommand } from "./usage.ts";
import { verifyCommand } from "./verify.ts";

/** The commands that only print. */
const PRINTING_COMMANDS = ["list", "export", "show"];

/** Runs the command that the arguments name, and returns the exit status. */
export async function runMedia(args: readonly string[], program: Program): Promise<number> {
  const context = {
    ...program,
    settings() {
      const { get, warnings } = readVariables();
      for (const warning of warnings) printError(`media: warning: ${warning}`);
      return readConfig(get, "command", deprecatedPaths(program.routes));
    },
  };
  const media = new Command("media")
    .description("Publish and manage media.")
    .version(`media-head ${VERSION}`);
  const commands = [
    publishCommand,
    unpublishCommand,
    showCommand,
    listCommand,
    verifyCommand,
    importCommand,
    exportCommand,
    mediaUsageCommand,
    mediaHoldCommand,
  ];
  try {
    return await runProgram(media, commands.map((command) => command(context)), args);
  } catch (error) {
    if (error instanceof ConfigError) {
      printError(error.message);
      return EXIT_STATUS.wrongUsage;
    }
    if (error instanceof InterruptedError) {
      printError(`media: ${error.message}`);
      return exitStatusOf(error.signal);
    }
    if (error instanceof OwnerError) {
      printError(`media: ${error.message}:\n  ${await lineAsOwner(error, args)}`);
      return exitStatusAfter(error, args);
    }
    if (!(error instanceof RefusedError || error instanceof StorageError)) throw error;
    if (isPipeClosed(error) && PRINTING_COMMANDS.includes(args[0] ?? "")) return EXIT_STATUS.done;
    printError(`media: ${messageOf(error)}`);
    return exitStatusAfter(error, args);
  }
}
