/**
 * Ctrl-C and SIGTERM, for commands that must clean up before they end.
 */

import { exitStatusOf, onStopSignal, type StopSignal } from "../server/stop_signal.ts";

/** Thrown when a command was told to stop. */
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
 * Listens for stop signals until the process ends.
 *
 * @returns A signal that is aborted with an {@linkcode InterruptedError}.
 */
export function interruptionSignal(): AbortSignal {
  const controller = new AbortController();
  onStopSignal((signal) => controller.abort(new InterruptedError(signal)));
  return controller.signal;
}
