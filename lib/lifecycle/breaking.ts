/** Which calls the removal of an endpoint breaks. */

/** The client name of `lifecycle check`, and its User-Agent. The removal breaks none of its calls. */
export const CHECK_CLIENT = "media-head-check";

/** Statuses of calls that fail with or without the removal, unless clients read them as an answer. */
export const FAILED: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 407, 410]);

/**
 * Returns whether the removal breaks a call: it was refused, or would not fail anyway. An OPTIONS
 * that was answered is only a question about the path.
 *
 * Callers leave some calls out, because the removal breaks none of them:
 * - those of `lifecycle check` ({@linkcode CHECK_CLIENT}), and of a gate's probe;
 * - on the media server, those without a valid token. A valid one is enough: where the server
 *   refuses calls, in a brownout and after the removal, it looks nothing up.
 */
export function isBreaking({ method, status, isRefused, answers = NONE }: {
  readonly method: string;
  /** The status of the response; 0 if the client disconnected first. */
  readonly status: number;
  readonly isRefused: boolean;
  /** The statuses that clients read as an answer, such as 404 where they ask whether there is one. */
  readonly answers?: ReadonlySet<number> | undefined;
}): boolean {
  return isRefused || method !== "OPTIONS" && (!FAILED.has(status) || answers.has(status));
}

const NONE: ReadonlySet<number> = new Set();
