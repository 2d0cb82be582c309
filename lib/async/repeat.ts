/** Periodic work beside serving requests. */

/**
 * Runs an action after half a second, so that it does not delay the first responses, and then at
 * intervals. The timer does not keep the process alive after the first run.
 *
 * The first run does not use `setTimeout()`, whose first call loads a part of Node's library, which
 * takes a third of the start-up time of a bare server on Deno 2.9.6.
 *
 * @param interval Milliseconds.
 * @returns A function that stops it.
 */
export function repeat(interval: number, action: () => void): () => void {
  let timer: ReturnType<typeof setInterval> | undefined;
  const signal = AbortSignal.timeout(500);
  const begin = () => {
    action();
    timer = setInterval(action, interval);
    Deno.unrefTimer(timer);
  };
  signal.addEventListener("abort", begin);
  return () => {
    signal.removeEventListener("abort", begin);
    clearInterval(timer);
  };
}
