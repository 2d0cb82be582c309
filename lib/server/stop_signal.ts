/**
 * Signals to stop: SIGINT (Ctrl-C) and SIGTERM.
 */

/** A signal to stop. */
export type StopSignal = "SIGINT" | "SIGTERM";

/**
 * Milliseconds within which repeated signals count as one: in a terminal, `deno task` forwards
 * SIGINT in addition to the terminal's own. A later one is deliberate.
 */
const SAME_SIGNAL_MS = 1_000;

/** Returns the exit status that shells use for a signal: 128 plus its number. */
export function exitStatusOf(signal: StopSignal): number {
  return signal === "SIGINT" ? 130 : 143;
}

/** Calls `stop` at the first signal. A deliberate second one ends the process. */
export function onStopSignal(stop: (signal: StopSignal) => void): void {
  const signals = Deno.build.os === "windows"
    ? ["SIGINT"] as const
    : ["SIGINT", "SIGTERM"] as const;
  let first: number | undefined;
  for (const signal of signals) {
    Deno.addSignalListener(signal, () => {
      const now = performance.now();
      if (first === undefined) {
        first = now;
        stop(signal);
      } else if (now - first >= SAME_SIGNAL_MS) Deno.exit(exitStatusOf(signal));
    });
  }
}
