/**
 * Ctrl-C and SIGTERM, for a command that has something to clear up before it ends.
 */

import { exitStatusOf, onStopSignal, type StopSignal } from "../server/stop_signal.ts";

/** A command was told to stop, and did. */
export class InterruptedError extends Error {
  override readonly name = "InterruptedError";

  constructor(readonly signal: StopSignal) {
    super(`stopped by ${signal}`);
  }

  get status(): number {
    return exitStatusOf(this.signal);
  }
}

/**
 * Watches, until the process ends, for being told to stop.
 *
 * @returns Aborted with an {@linkcode InterruptedError}.
 */
export function interruptionSignal(): AbortSignal {
  const controller = new AbortController();
  onStopSignal((signal) => controller.abort(new InterruptedError(signal)));
  return controller.signal;
}
