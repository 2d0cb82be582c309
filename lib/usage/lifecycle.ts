#!/usr/bin/env node
/** The program `lifecycle`, with the commands `check` and `usage`. */

import process from "node:process";
import { runLifecycle } from "../lifecycle/check.ts";

/** Runs a command. Returns the exit status. */
async function main(args: readonly string[]): Promise<number> {
  if (args[0] === "usage") {
    const { runUsage } = await import("./program.ts"); // it alone needs a package
    return await runUsage(args.slice(1));
  }
  const { text, isUsageError, exitStatus } = await runLifecycle(args);
  console[isUsageError ? "error" : "log"](text);
  return exitStatus;
}

main(process.argv.slice(2)).then((exitStatus) => {
  process.exitCode = exitStatus;
});
