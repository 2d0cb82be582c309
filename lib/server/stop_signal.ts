/** Signals to stop: SIGINT (Ctrl-C), SIGTERM, and SIGHUP (a closed terminal). */

const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };

export type StopSignal = keyof typeof SIGNAL_NUMBERS;

/**
 * Milliseconds within which repeated signals count as one, because `deno task` in a terminal
 * forwards a SIGINT that the terminal sends as well. A later signal is deliberate.
 */
const SAME_SIGNAL_MS = 1_000;

/** Returns the exit status that shells use for a signal: 128 plus its number. */
export function exitStatusOf(signal: StopSignal): number {
  return 128 + SIGNAL_NUMBERS[signal];
}

/**
 * Whether there is a terminal that can be closed. Without one, SIGHUP is ignored, as `nohup` asks.
 * To be ignored, it needs a listener: once any signal has one, Deno 2.9.6 also listens for SIGHUP,
 * and ends the process at a SIGHUP without a listener (no issue was found).
 */
function hasTerminal(): boolean {
  return [Deno.stdin, Deno.stdout, Deno.stderr].some((stream) => stream.isTerminal());
}

/** Calls `stop` at the first signal. A deliberate second one ends the process. */
export function onStopSignal(stop: (signal: StopSignal) => void): void {
  const signals: StopSignal[] = ["SIGINT"];
  if (Deno.build.os !== "windows") signals.push("SIGTERM", "SIGHUP");
  const ignored = hasTerminal() ? undefined : "SIGHUP";
  let first: number | undefined;
  for (const signal of signals) {
    Deno.addSignalListener(signal, () => {
      if (signal === ignored) return;
      const now = performance.now();
      if (first === undefined) {
        first = now;
        stop(signal);
      } else if (now - first >= SAME_SIGNAL_MS) Deno.exit(exitStatusOf(signal));
    });
  }
}
