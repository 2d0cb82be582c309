/**
 * What a process does again and again, besides answering.
 */

/** Milliseconds until it begins, so that it does not hold up the first answers. */
const START = 500;

/**
 * Runs an action after half a second, and then at intervals. It keeps no process up for longer than
 * that.
 *
 * The beginning is no `setTimeout()`: the first one of a process loads a part of Node's library, which
 * takes a third of what a bare server of Deno 2.9.6 takes to start.
 *
 * @param interval Milliseconds.
 * @returns Ends it.
 */
export function repeat(interval: number, action: () => void): () => void {
  let timer: ReturnType<typeof setInterval> | undefined;
  const signal = AbortSignal.timeout(START);
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
