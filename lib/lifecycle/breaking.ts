/** Which calls the removal of an endpoint breaks. */

/** The client name of `lifecycle check`. The removal breaks none of its calls. */
export const CHECK_CLIENT = "media-head-check";

/** Statuses of calls that fail with or without the removal. */
const FAILED = new Set([400, 401, 403, 404, 405, 407, 410]);

/**
 * Returns whether the removal breaks a call: it was refused, or would not fail anyway. An OPTIONS
 * that was answered is only a question about the path.
 *
 * This is the only place that decides it. An application asks about every call but those of
 * {@linkcode CHECK_CLIENT}. The media server asks about every call with a valid token: where it
 * refuses calls, in a brownout and after the removal, it looks nothing up, so each of them counts.
 */
export function isBreaking({ method, status, isRefused }: {
  readonly method: string;
  /** The status of the response; 0 if the client disconnected first. */
  readonly status: number;
  readonly isRefused: boolean;
}): boolean {
  return isRefused || method !== "OPTIONS" && !FAILED.has(status);
}
