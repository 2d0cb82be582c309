/**
 * The progress of a command. On a terminal, it is one line of standard error, which whatever is
 * printed replaces.
 */

import { printable } from "../input/printable.ts";

/** Milliseconds between updates of the line. */
const INTERVAL_MS = 100;

/** When to show it next, in milliseconds since the process started. A short task shows nothing. */
let next = 1_000;
let isShown = false;

/**
 * Shows how much is done, unless it was just shown.
 *
 * @param text What is done, e.g. `12 items`.
 * @param part The part that is done, from 0 to 1, or more if it is an estimate; left out if
 *   unknown.
 */
export function showProgress(text: string, part?: number): void {
  const now = performance.now();
  if (now < next || !Deno.stderr.isTerminal()) return;
  next = now + INTERVAL_MS;
  isShown = true;
  const percentage = part === undefined ? "" : `${Math.floor(Math.min(part, 1) * 100)}% | `;
  // Without line breaks on a narrow terminal.
  write(`\r\x1b[K\x1b[?7l${percentage}${printable(text)}\x1b[?7h`);
}

export function clearProgress(): void {
  if (isShown) write("\r\x1b[K");
  isShown = false;
}

function write(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(text));
}
