/**
 * Ctrl-C and SIGTERM, for a command that has something to clear up before it ends.
 */

/** A command was told to stop, and did. */
export class InterruptedError extends Error {
  override readonly name = "InterruptedError";

  constructor(readonly signal: Deno.Signal) {
    super(`stopped by ${signal}`);
  }

  /** 128 and the signal's number, as a shell says of a process that a signal ended. */
  get status(): number {
    return this.signal === "SIGINT" ? 130 : 143;
  }
}

/** Milliseconds after which a further signal is a wish of its own, and not the first one again. */
const DELIBERATE = 1000;

/**
 * Watches, until the process ends, for being told to stop. `deno task` passes SIGINT on beside the
 * terminal's own: the second one must not cut short what the first one set off. One that comes
 * later ends the process at once.
 *
 * @returns Aborted with an {@linkcode InterruptedError}.
 */
export function watchInterruption(): AbortSignal {
  const controller = new AbortController();
  const signals: Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"];
  let first = Infinity;
  for (const signal of signals) {
    Deno.addSignalListener(signal, () => {
      const error = new InterruptedError(signal);
      if (performance.now() - first > DELIBERATE) Deno.exit(error.status);
      first = Math.min(first, performance.now());
      controller.abort(error);
    });
  }
  return controller.signal;
}

/** Waits for an operation, but no longer than until the signal is aborted. */
export function unlessAborted<T>(operation: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return operation;
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  return Promise.race([operation, promise])
    .finally(() => signal.removeEventListener("abort", abort));
}
