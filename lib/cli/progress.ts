/**
 * The progress of a command: on a terminal, one line of standard error. Any other output replaces
 * the line.
 */

import { printable } from "../input/printable.ts";

/** Milliseconds between updates of the line. */
const INTERVAL_MS = 100;

/**
 * The time of the next update, in milliseconds since the process started. A short task shows
 * nothing.
 */
let next = 1_000;
let isShown = false;

/**
 * Shows how much is done, unless it was just shown.
 *
 * @param text The amount done, e.g. `12 items`.
 * @param part The part done, from 0 to 1, or more if it is an estimate; left out if unknown.
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
