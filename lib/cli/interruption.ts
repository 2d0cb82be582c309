/** Ctrl-C and other signals to stop, for commands that must clean up before they end. */

import { exitStatusOf, onStopSignal, type StopSignal } from "../server/stop_signal.ts";
import { printError } from "./print.ts";

export class InterruptedError extends Error {
  override readonly name = "InterruptedError";

  constructor(readonly signal: StopSignal) {
    super(`stopped by ${signal}`);
  }
}

/**
 * Milliseconds for cleaning up and reporting. After that, the command ends wherever it is waiting,
 * as if it were killed, and the next command cleans up.
 */
const CLEANUP_MS = 2_000;

/**
 * Listens for stop signals until the process ends.
 *
 * @returns A signal that is aborted with an {@linkcode InterruptedError}.
 */
export function interruptionSignal(): AbortSignal {
  const controller = new AbortController();
  onStopSignal((signal) => {
    const reason = new InterruptedError(signal);
    controller.abort(reason);
    setTimeout(() => {
      printError(`media: ${reason.message}`);
      Deno.exit(exitStatusOf(signal));
    }, CLEANUP_MS);
  });
  return controller.signal;
}
