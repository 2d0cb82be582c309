/** Running the program `lifecycle` in this process. */

import { stub } from "@std/testing/mock";
import { runLifecycle } from "../../lib/usage/lifecycle.ts";
import type { CommandResult } from "./media_cli.ts";
import { captureOutput } from "./output.ts";

/** Runs a command. One at a time, since it replaces what belongs to the process. */
export async function lifecycle(...words: string[]): Promise<CommandResult> {
  let [stdout, stderr] = ["", ""];
  using _stdout = captureOutput((text) => stdout += text);
  using _stderr = stub(console, "error", (line) => void (stderr += `${line}\n`));
  const code = await runLifecycle(words);
  return { code, stdout, stderr };
}
