/**
 * How far a command is, with its rate and the time left: a bar on a terminal, and for the commands
 * that ask for it a line now and then elsewhere. Either goes to standard error.
 */

// @ts-types="npm:@types/cli-progress@3.11.6"
import { Format, type Options, SingleBar } from "cli-progress";
import { printable } from "../publishing/printable.ts";
import type { Step } from "../storage/content.ts";

/** Milliseconds of work before the bar shows. */
const PATIENCE = 1_000;

/** Milliseconds before the first line where there is no terminal, and between two. */
const LOG_INTERVAL = 10_000;

/** Milliseconds between two samples, and how many are kept: the rate is that of ten seconds. */
const SAMPLING = 500;
const SAMPLES = 20;

/** What is counted. */
export interface ProgressOptions {
  /** `bytes`, or the plural of what else is counted, e.g. `records`. */
  readonly unit: string;
  /** How many there will be; left out while that is not known. */
  readonly total?: number | undefined;
  /** Whether a line is logged every ten seconds where there is no terminal. */
  readonly isLogged?: boolean;
}

/** What was done at an instant. */
interface Sample {
  /** Milliseconds. */
  readonly at: number;
  readonly done: number;
}

/** The progress of one piece of work. To be disposed of in any case, which clears the bar. */
export class Progress implements Disposable {
  readonly #unit: string;
  readonly #bar: SingleBar;
  readonly #samples: Sample[] = [{ at: performance.now(), done: 0 }];
  readonly #showsAt: number;
  #total: number | undefined;
  #done = 0;
  #note = "";

  constructor({ unit, total, isLogged = false }: ProgressOptions) {
    this.#unit = unit;
    this.#total = total;
    this.#showsAt = performance.now() + (hasTerminal() ? PATIENCE : LOG_INTERVAL);
    this.#bar = new SingleBar({
      format: (options) => this.#text(options),
      clearOnComplete: true,
      hideCursor: true,
      noTTYOutput: isLogged,
      notTTYSchedule: LOG_INTERVAL,
    });
  }

  /** How much is done. */
  get done(): number {
    return this.#done;
  }

  /**
   * Tells how much is done by now.
   *
   * @param note What is at work, to be shown at the end of the line.
   */
  update(done: number, note = this.#note): void {
    this.#done = done;
    this.#note = note;
    const now = performance.now();
    if (now - (this.#samples.at(-1)?.at ?? 0) >= SAMPLING) {
      this.#samples.push({ at: now, done });
      if (this.#samples.length > SAMPLES) this.#samples.shift();
    }
    if (this.#bar.isActive) this.#bar.update(done);
    else if (now >= this.#showsAt) this.#show();
  }

  /** Tells how many there will be, as far as is known by now. */
  expect(total: number): void {
    this.#total = total;
  }

  /** Runs an action that prints, with the bar out of its way. */
  async aside<T>(action: () => Promise<T>): Promise<T> {
    if (!this.#bar.isActive || !hasTerminal()) return await action();
    this.#bar.stop();
    try {
      return await action();
    } finally {
      this.#show();
    }
  }

  /** Clears the bar; where lines are logged instead, logs the last. */
  [Symbol.dispose](): void {
    this.#bar.stop();
  }

  #show(): void {
    this.#bar.start(this.#total ?? 0, this.#done);
  }

  #text(options: Options): string {
    const { at, done } = this.#samples[0] as Sample;
    const rate = (this.#done - done) / Math.max(performance.now() - at, 1) * 1_000;
    const { bar, text } = describeProgress({
      done: this.#done,
      total: this.#total,
      unit: this.#unit,
      rate,
      note: this.#note,
    });
    const drawn = hasTerminal() && bar !== undefined ? `${Format.BarFormat(bar, options)} ` : "";
    return drawn + text;
  }
}

/** How far some work is. */
export interface ProgressState {
  readonly done: number;
  readonly total: number | undefined;
  readonly unit: string;
  /** So many a second. */
  readonly rate: number;
  readonly note: string;
}

/** A state in words, and the part of the bar that is full, where the total is known. */
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

/** Seconds in the two units that matter. */
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

/** What is being read. */
export interface Reading {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** What is done with it. */
  readonly step: Step;
}

/** Passes chunks through, and shows on a terminal's standard error how many have passed. */
export async function* withProgress(
  chunks: AsyncIterable<Uint8Array>,
  { name, size, step }: Reading,
): AsyncGenerator<Uint8Array> {
  using progress = new Progress({ unit: "bytes", total: size });
  for await (const chunk of chunks) {
    yield chunk;
    progress.update(progress.done + chunk.length, `${step} ${name}`);
  }
}
