#!/usr/bin/env node
/** The program `lifecycle`, with the commands `check`, `usage` and `hold`. */

import process from "node:process";
import { EXIT_STATUS, exitStatusOfCrash } from "../errors/exit_status.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { messageOf } from "../input/printable.ts";
import { runLifecycle } from "../lifecycle/checking/check.ts";
import { print, printError } from "./print.ts";

/** Runs a command. Returns the exit status. */
async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === "usage") { // it and the next alone need a package
    return await (await import("./lifecycle_usage.ts")).runUsage(rest);
  }
  if (name === "hold") return await (await import("./lifecycle_hold.ts")).runHold(rest);
  const { text, isUsageError, exitStatus } = await runLifecycle(args);
  try {
    if (isUsageError) console.error(text);
    else await print(text);
    return exitStatus;
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    printError(messageOf(error));
    return EXIT_STATUS.wrongUsage; // for `check`, 1 would be a fault that it found
  }
}

const args = process.argv.slice(2);
main(args).catch((error) => exitStatusOfCrash(error, args)).then((exitStatus) => {
  process.exitCode = exitStatus;
});
