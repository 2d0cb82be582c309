/**
 * The progress of a command: on a terminal, one line of standard error, which any other output
 * replaces. In a pipe or a file, only where it is asked for, a line a minute.
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

/** Milliseconds between lines that stay, and the time of the next one. */
const LINE_INTERVAL_MS = 60_000;
let nextLine = LINE_INTERVAL_MS;

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
  // Without line breaks on a narrow terminal.
  write(`\r\x1b[K\x1b[?7l${progressText(text, part)}\x1b[?7h`);
}

/** Shows how much is done of what takes hours, in a pipe or a file, too. */
export function showLongProgress(text: string, part?: number): void {
  const now = performance.now();
  if (now < nextLine || Deno.stderr.isTerminal()) return showProgress(text, part);
  nextLine = now + LINE_INTERVAL_MS;
  write(`media: ${progressText(text, part)}\n`);
}

function progressText(text: string, part: number | undefined): string {
  const percentage = part === undefined ? "" : `${Math.floor(Math.min(part, 1) * 100)}% | `;
  return percentage + printable(text);
}

export function clearProgress(): void {
  if (isShown) write("\r\x1b[K");
  isShown = false;
}

function write(text: string): void {
  try {
    Deno.stderr.writeSync(new TextEncoder().encode(text));
  } catch { // a full disk, or a closed pipe, must not end the command
  }
}
