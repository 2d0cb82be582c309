/** Running the program `lifecycle` in this process. */

import { stub } from "@std/testing/mock";
import { SerialQueue } from "../../lib/async/serial_queue.ts";
import { runLifecycle } from "../../lib/usage/lifecycle.ts";
import { captureOutput } from "./output.ts";
import type { CommandResult } from "./run.ts";

const queue = new SerialQueue();

/** Runs a command, after those before it, since it replaces what belongs to the process. */
export function lifecycle(...words: string[]): Promise<CommandResult> {
  return queue.run(async () => {
    let [stdout, stderr] = ["", ""];
    using _stdout = captureOutput((text) => stdout += text);
    using _stderr = stub(console, "error", (line) => void (stderr += `${line}\n`));
    const code = await runLifecycle(words);
    return { code, stdout, stderr };
  });
}
