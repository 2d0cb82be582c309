/**
 * Signals that tell a process to stop: Ctrl-C and SIGTERM.
 */

/** Such a signal. */
export type StopSignal = "SIGINT" | "SIGTERM";

/**
 * Milliseconds within which signals are one wish to stop: in a terminal, `deno task` passes SIGINT
 * on beside the terminal's own. A later one is deliberate.
 */
const ONE_WISH = 1_000;

/** The exit status by which a shell tells of a process that a signal ended: 128 and its number. */
export function exitStatusOf(signal: StopSignal): number {
  return signal === "SIGINT" ? 130 : 143;
}

/** Calls back once, at the first signal to stop. A deliberate second one ends the process. */
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
      } else if (now - first >= ONE_WISH) Deno.exit(exitStatusOf(signal));
    });
  }
}
