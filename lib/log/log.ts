/** The log: one JSON object per line. */

import { StorageError } from "../errors/storage_error.ts";
import { readOr, valueText } from "../lifecycle/any_value.ts";

/** What is worth a line of the log. */
export interface LogEvent {
  /** What happened. */
  readonly event: "create" | "start" | "session" | "phase" | "hold" | "stop" | "error" | "warning";
  /** More members of the line, as JSON values. */
  readonly [fact: string]: unknown;
}

export type Log = (event: LogEvent) => void;

/** Creates a log that writes lines to standard error, each with a timestamp. */
export function lineLog(clock: () => number): Log {
  return (event) => {
    try {
      console.error(JSON.stringify({ time: new Date(clock()).toISOString(), ...event }));
    } catch { // a full disk must not end the process
    }
  };
}

/** Version 4 UUIDs (RFC 9562 §5.4). */
const UUIDS = /[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}/gi;

/**
 * Describes an error and its causes, with the innermost stack if it is a bug. UUIDs are redacted,
 * because the runtime's messages may quote a URL, and one in it may be a secret.
 *
 * A fault of storage is described without its stack. Nobody needs the stack, and reading it would
 * be dangerous: Deno 2.9.6 reads the compiled module to map the stack to it. If no descriptor is
 * free, Deno compiles the module again, and the compiler panics, because it cannot open a file to
 * measure the thread's stack (stacker 0.1.15; no issue was found).
 */
export function describeError(error: unknown): string {
  const chain = chainOf(error);
  const messages = chain.map(valueText).join(", caused by ") || String(error);
  const innermost = chain.findLast(isError);
  const hasStack = innermost !== undefined && !(isError(error) && error instanceof StorageError);
  const stack = hasStack ? readOr("", () => `\n${innermost.stack ?? ""}`.trimEnd()) : "";
  return `${messages}${stack}`.replaceAll(UUIDS, "(UUID)");
}

/** The maximum number of causes to follow. */
const MAX_CAUSES = 20;

/** Returns an error and its causes. */
function chainOf(error: unknown): readonly unknown[] {
  const chain = new Set<unknown>();
  for (let cause = error; cause !== undefined && !chain.has(cause) && chain.size <= MAX_CAUSES;) {
    chain.add(cause);
    const outer = cause;
    cause = isError(outer) ? readOr(undefined, () => outer.cause) : undefined;
  }
  return [...chain];
}

function isError(value: unknown): value is Error {
  return readOr(false, () => value instanceof Error);
}

/**
 * Returns the kind of a fault, by which it is told from others: not its text if that may have values,
 * such as the digest of an item or the id of a client.
 */
function faultKindOf(error: unknown): string {
  const chain = chainOf(error);
  if (!isError(error)) return valueText(error);
  if (!(error instanceof StorageError)) {
    const innermost = chain.findLast(isError);
    return [...chain.map(codeOf), innermost && positionOf(innermost)].join("\n");
  }
  const [, ...causes] = chain;
  if (error.kind === error.fault) return chain.map(valueText).join("\n");
  return [error.name, error.kind, ...causes.map(codeOf)].join("\n");
}

/** Returns the class of an error, with the code of a system or database if it has one. */
function codeOf(error: unknown): string {
  return readOr("", () => {
    if (!(error instanceof Error)) return typeof error;
    return `${error.name} ${"code" in error ? error.code : ""}`;
  });
}

/**
 * Returns where an error was thrown, and where that was called: two lines of its stack. Those before
 * them have the message, and those after them differ by the request.
 */
function positionOf(error: Error): string {
  return readOr("", () => {
    const { stack = "", message } = error;
    const [, ...frames] = stack.slice(stack.indexOf(message) + message.length).split("\n");
    return frames.slice(0, 2).join("\n");
  });
}

/** Milliseconds between two log lines on one fault. */
const LOG_INTERVAL_MS = 60_000;

/** The maximum number of faults told apart within that time. All others count as one fault. */
const MAX_FAULTS = 100;

interface Fault {
  readonly id: string;
  /** When the fault was last logged, in milliseconds from any origin. */
  loggedAt: number;
  /** When the fault last occurred, likewise. */
  lastAt: number;
  /** How often the fault has occurred since it was logged. */
  repeated: number;
}

/** Logs a fault in full once, and then, once a minute, how often it recurred. */
export class FaultLog {
  readonly #log: Log;
  readonly #faults = new Map<string, Fault>();

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Logs a fault, or counts it.
   *
   * @param error An error, or a sentence where nothing was thrown.
   * @param facts More members of the line.
   * @param options.kind The kind of fault, of a sentence that has values.
   * @returns The id of the fault in the log.
   */
  log(
    error: unknown,
    facts: Readonly<Record<string, unknown>> = {},
    { kind = faultKindOf(error) }: { readonly kind?: string } = {},
  ): string {
    const cause = describeError(error);
    const [summary = ""] = cause.split("\n");
    const now = performance.now();
    for (const [key, { lastAt }] of this.#faults) {
      if (now - lastAt >= LOG_INTERVAL_MS) this.#faults.delete(key);
    }
    const key = this.#faults.has(kind) || this.#faults.size < MAX_FAULTS ? kind : "others";
    const known = this.#faults.get(key);
    if (known === undefined) {
      const id = crypto.randomUUID();
      this.#faults.set(key, { id, loggedAt: now, lastAt: now, repeated: 0 });
      this.#log({ event: "error", id, ...facts, cause });
      return id;
    }
    const { id } = known;
    known.repeated++;
    known.lastAt = now;
    if (now - known.loggedAt >= LOG_INTERVAL_MS) {
      this.#log({ event: "error", id, ...facts, cause: summary, repeated: known.repeated });
      known.loggedAt = now;
      known.repeated = 0;
    }
    return id;
  }
}
