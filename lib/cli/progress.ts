/**
 * The progress of a command: on a terminal, one line of standard error with the part done, the
 * average rate and the time left.
 */

import { printable } from "../input/printable.ts";

/** Milliseconds before the line is shown, so that short tasks show none. */
const DELAY_MS = 1_000;

/** Milliseconds between updates of the line. */
const INTERVAL_MS = 100;

/** How much is done. */
export interface Amount {
  readonly done: number;
  /** May be an estimate; left out, or 0, if unknown. */
  readonly total?: number | undefined;
  /** The current step, shown at the end of the line. */
  readonly note?: string;
}

/** The progress of one task. Must be disposed of, which clears the line. */
export class Progress implements Disposable {
  /** Whether there is a terminal to show it on. */
  readonly isShown = Deno.stderr.isTerminal();
  readonly #unit: string;
  readonly #start = performance.now();
  #nextUpdate = this.#start + DELAY_MS;
  #isPaused = false;

  /** @param unit `bytes`, or the plural of whatever is counted, e.g. `items`. */
  constructor(unit: string) {
    this.#unit = unit;
  }

  /** Shows how much is done, unless it was just shown. */
  update(amount: Amount): void {
    const now = performance.now();
    if (!this.isShown || this.#isPaused || now < this.#nextUpdate) return;
    this.#nextUpdate = now + INTERVAL_MS;
    const text = describeProgress(amount, this.#unit, (now - this.#start) / 1_000);
    write(`\r\x1b[K\x1b[?7l${text}\x1b[?7h`); // without line breaks on a narrow terminal
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
    if (this.isShown) write("\r\x1b[K");
  }
}

function write(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(text));
}

/**
 * Describes progress on one line.
 *
 * @param seconds The time since the start.
 */
export function describeProgress(
  { done, total = 0, note = "" }: Amount,
  unit: string,
  seconds: number,
): string {
  const isBytes = unit === "bytes";
  const count = (amount: number) => isBytes ? (amount / 1e6).toFixed(1) : whole(amount);
  const shown = isBytes ? "MB" : unit;
  const rate = `${count(done / seconds)} ${shown}/s`;
  const parts = total === 0 ? [`${count(done)} ${shown}`, rate] : [
    `${Math.floor(Math.min(done / total, 1) * 100)}%`,
    `${count(done)}/${count(total)} ${shown}`,
    rate,
    done > 0 ? `${duration(Math.max(total - done, 0) * seconds / done)} left` : "",
  ];
  return [...parts, printable(note)].filter((part) => part !== "").join(" | ");
}

function whole(amount: number): string {
  return Math.round(amount).toLocaleString("en");
}

/** Formats seconds in their two largest units. */
function duration(seconds: number): string {
  const rest = Math.ceil(seconds);
  if (rest < 60) return `${rest} s`;
  const minutes = Math.floor(rest / 60);
  if (minutes < 60) return `${minutes} min ${rest % 60} s`;
  return `${whole(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}
