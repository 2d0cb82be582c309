/**
 * The progress of a command on standard error, with its rate and the time left: a bar on a
 * terminal; elsewhere, for commands that ask for it, a line every ten seconds.
 */

// @ts-types="npm:@types/cli-progress@3.11.6"
import type { SingleBar } from "cli-progress";
import { printable } from "../publishing/printable.ts";

/** Milliseconds before the bar is shown. */
const DELAY = 1_000;

/** Milliseconds between lines where there is no terminal, and before the first one. */
const LOG_INTERVAL = 10_000;

/** Milliseconds between samples, and how many are kept: the rate is averaged over ten seconds. */
const SAMPLING = 500;
const SAMPLES = 20;

/** What is counted. */
export interface ProgressOptions {
  /** `bytes`, or the plural of whatever is counted, e.g. `records`. */
  readonly unit: string;
  /** The total, if known. */
  readonly total?: number | undefined;
  /** Whether to log a line every ten seconds where there is no terminal. */
  readonly isLogged?: boolean;
}

/** How much was done at a point in time. */
interface Sample {
  /** Milliseconds. */
  readonly at: number;
  readonly done: number;
}

/** The progress of one task. Must be disposed of, which clears the bar. */
export class Progress implements Disposable {
  readonly #unit: string;
  readonly #isWanted: boolean;
  readonly #samples: Sample[] = [{ at: performance.now(), done: 0 }];
  readonly #showsAt: number;
  #total: number | undefined;
  #done = 0;
  #note = "";
  #bar: SingleBar | undefined;
  #isLoading = false;
  #isAside = false;
  #isOver = false;

  constructor({ unit, total, isLogged = false }: ProgressOptions) {
    this.#unit = unit;
    this.#total = total;
    this.#isWanted = hasTerminal() || isLogged;
    this.#showsAt = performance.now() + (hasTerminal() ? DELAY : LOG_INTERVAL);
  }

  /** How much is done so far. */
  get done(): number {
    return this.#done;
  }

  /**
   * Updates how much is done.
   *
   * @param note The current step, shown at the end of the line.
   */
  update(done: number, note = this.#note): void {
    this.#done = done;
    this.#note = note;
    const now = performance.now();
    if (now - (this.#samples.at(-1)?.at ?? 0) >= SAMPLING) {
      this.#samples.push({ at: now, done });
      if (this.#samples.length > SAMPLES) this.#samples.shift();
    }
    if (this.#bar !== undefined) this.#bar.update(done);
    else if (this.#isWanted && !this.#isLoading && now >= this.#showsAt) this.#load();
  }

  /** Updates the total, which may be an estimate. */
  expect(total: number): void {
    this.#total = total;
  }

  /** Runs an action that prints, with the bar hidden. */
  async aside<T>(action: () => Promise<T>): Promise<T> {
    if (!hasTerminal()) return await action();
    this.#isAside = true;
    this.#bar?.stop();
    try {
      return await action();
    } finally {
      this.#isAside = false;
      this.#show();
    }
  }

  /** Clears the bar, or logs the last line where lines are logged instead. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#bar?.stop();
  }

  /** Loads and shows the bar; loading takes time that short tasks should not pay for. */
  async #load(): Promise<void> {
    this.#isLoading = true;
    // @ts-types="npm:@types/cli-progress@3.11.6"
    const { Format, SingleBar } = await import("cli-progress");
    if (this.#isOver) return;
    this.#bar = new SingleBar({
      format: (options) => this.#text((part) => Format.BarFormat(part, options)),
      clearOnComplete: true,
      hideCursor: true,
      noTTYOutput: true,
      notTTYSchedule: LOG_INTERVAL,
    });
    if (!this.#isAside) this.#show();
  }

  #show(): void {
    this.#bar?.start(this.#total ?? 0, this.#done);
  }

  #text(draw: (part: number) => string): string {
    const { at, done } = this.#samples[0] as Sample;
    const rate = (this.#done - done) / Math.max(performance.now() - at, 1) * 1_000;
    const { bar, text } = describeProgress({
      done: this.#done,
      total: this.#total,
      unit: this.#unit,
      rate,
      note: this.#note,
    });
    const drawn = hasTerminal() && bar !== undefined ? `${draw(bar)} ` : "";
    return drawn + text;
  }
}

/** The progress of a task at one moment. */
export interface ProgressState {
  readonly done: number;
  readonly total: number | undefined;
  readonly unit: string;
  /** Units per second. */
  readonly rate: number;
  readonly note: string;
}

/** Describes a state in words; `bar` is the fraction done, where the total is known. */
export function describeProgress(
  { done, total, unit, rate, note }: ProgressState,
): { readonly bar: number | undefined; readonly text: string } {
  const isBytes = unit === "bytes";
  const count = (amount: number) => isBytes ? megabytes(amount) : whole(amount);
  const amount = (text: string) => isBytes ? `${text} MB` : `${text} ${unit}`;
  const bar = total === undefined ? undefined : total === 0 ? 1 : Math.min(done / total, 1);
  const left = total === undefined || rate <= 0 ? Infinity : Math.max(total - done, 0) / rate;
  const parts = [
    bar === undefined ? undefined : `${Math.floor(bar * 100)}%`,
    amount(total === undefined ? count(done) : `${count(done)}/${count(total)}`),
    `${amount(count(rate))}/s`,
    Number.isFinite(left) ? `${duration(left)} left` : undefined,
    note === "" ? undefined : printable(note),
  ];
  return { bar, text: parts.filter((part) => part !== undefined).join(" | ") };
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
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

function hasTerminal(): boolean {
  return Deno.stderr.isTerminal();
}
