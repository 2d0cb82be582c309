/**
 * The log: one JSON object per line, never with a token.
 */

/** An event, with its facts. */
export interface LogEvent {
  /** What happened. */
  readonly event: "start" | "stop" | "error" | "warning";
  /** More members of the line, as JSON values. */
  readonly [fact: string]: unknown;
}

/** Logs an event. */
export type Log = (event: LogEvent) => void;

/** Creates a log that writes lines to standard error, each with a timestamp. */
export function lineLog(clock: () => number): Log {
  return (event) =>
    console.error(JSON.stringify({ time: new Date(clock()).toISOString(), ...event }));
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;

/**
 * Describes an error and its causes, with the innermost stack. Tokens are redacted, since the
 * runtime's messages may quote a URL.
 */
export function describeError(error: unknown): string {
  const chain = new Set<unknown>();
  for (let cause = error; cause !== undefined && !chain.has(cause);) {
    chain.add(cause);
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  const messages = [...chain].map((cause) =>
    cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)
  );
  const innermost = [...chain].findLast((cause) => cause instanceof Error);
  return [messages.join(", caused by ") || String(error), ...(innermost ? [innermost.stack] : [])]
    .join("\n").replaceAll(UUID, "(token)");
}
