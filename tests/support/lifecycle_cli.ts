/** Running the program `lifecycle` in this process. */

import { stub } from "@std/testing/mock";
import process from "node:process";
import { runLifecycle } from "../../lib/usage/lifecycle.ts";
import type { CommandResult } from "./media_cli.ts";

/** Runs a command. One at a time, since it replaces what belongs to the process. */
export async function lifecycle(...words: string[]): Promise<CommandResult> {
  let [stdout, stderr] = ["", ""];
  const write = ((part: string, done?: () => void) => {
    stdout += part;
    done?.();
    return true;
  }) as typeof process.stdout.write;
  using _stdout = stub(process.stdout, "write", write);
  using _stderr = stub(console, "error", (line) => void (stderr += `${line}\n`));
  const code = await runLifecycle(words);
  return { code, stdout, stderr };
}
