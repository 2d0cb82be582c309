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

const args = process.argv.slice(2);
main(args).then((exitStatus) => {
  process.exitCode = exitStatus;
}, (error) => {
  console.error(error);
  // A gate that fails knows nothing, and 1 would mean that there were calls.
  process.exitCode = args.some((word) => word.startsWith("--gate")) ? 3 : 1;
});
