/**
 * The progress of a command: on a terminal, one line of standard error with the part done.
 */

import { printable } from "../input/printable.ts";

/** Milliseconds before the line is shown, so that short tasks show none. */
const DELAY_MS = 1_000;

/** Milliseconds between updates of the line. */
const INTERVAL_MS = 100;

/** The progress of one task. Must be disposed of, which clears the line. */
export class Progress implements Disposable {
  readonly #isShown = Deno.stderr.isTerminal();
  #nextUpdate = performance.now() + DELAY_MS;
  #isPaused = false;

  /**
   * Shows how much is done, unless it was just shown.
   *
   * @param text What is done, e.g. `12 items`.
   * @param part The part done, from 0 to 1; if it is an estimate, it may be greater. Left out if
   *   unknown.
   */
  update(text: string, part?: number): void {
    const now = performance.now();
    if (!this.#isShown || this.#isPaused || now < this.#nextUpdate) return;
    this.#nextUpdate = now + INTERVAL_MS;
    const percentage = part === undefined ? "" : `${Math.floor(Math.min(part, 1) * 100)}% | `;
    // Without line breaks on a narrow terminal.
    write(`\r\x1b[K\x1b[?7l${percentage}${printable(text)}\x1b[?7h`);
  }

  /** Runs an action that prints, with the line cleared. */
  async aside<T>(action: () => Promise<T>): Promise<T> {
    this[Symbol.dispose]();
    try {
      return await action();
    } finally {
      this.#isPaused = false;
    }
  }

  /** Clears the line. */
  [Symbol.dispose](): void {
    this.#isPaused = true;
    if (this.#isShown) write("\r\x1b[K");
  }
}

function write(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(text));
}
