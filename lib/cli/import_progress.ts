/**
 * How an import goes on: a bar on a terminal, a line every ten seconds elsewhere.
 */

// @ts-types="npm:@types/cli-progress@3.11.6"
import { SingleBar } from "cli-progress";

/** Milliseconds between two lines where there is no terminal. */
const INTERVAL = 10_000;

/** Milliseconds of silence before the bar shows. */
const PATIENCE = 1_000;

/** Shown on standard error. */
export class ImportProgress implements Disposable {
  readonly #size: number | undefined;
  readonly #start = performance.now();
  readonly #isTerminal = Deno.stderr.isTerminal();
  readonly #bar: SingleBar;
  readonly #timer: ReturnType<typeof setInterval>;
  #bytes = 0;
  #lines = 0;

  /** @param size Bytes to import, when that is known. */
  constructor(size: number | undefined) {
    this.#size = size;
    const amount = size === undefined ? "" : "{bar} {percentage}% | {eta_formatted} left | ";
    this.#bar = new SingleBar({
      format: `${amount}{lines} records | {rate}/s`,
      clearOnComplete: true,
      hideCursor: true,
      noTTYOutput: false,
      etaBuffer: 100,
    });
    const show = this.#isTerminal ? () => this.#draw() : () => this.#log();
    this.#timer = setInterval(show, this.#isTerminal ? 200 : INTERVAL);
  }

  /** Counts a record that is done. */
  advance(bytes: number): void {
    this.#bytes += bytes;
    this.#lines++;
  }

  /** Says something, without spoiling the bar. */
  tell(text: string): void {
    console.error(this.#bar.isActive ? `\r\x1b[K${text}` : text);
  }

  /** Shows no more. */
  stop(): void {
    clearInterval(this.#timer);
    this.#bar.stop();
  }

  [Symbol.dispose](): void {
    this.stop();
  }

  #draw(): void {
    if (performance.now() - this.#start < PATIENCE) return;
    const facts = { lines: this.#lines.toLocaleString("en"), rate: this.#rate };
    if (this.#bar.isActive) this.#bar.update(this.#bytes, facts);
    else this.#bar.start(this.#size ?? 0, this.#bytes, facts);
  }

  #log(): void {
    const seconds = (performance.now() - this.#start) / 1000;
    const left = this.#size === undefined || this.#bytes === 0
      ? ""
      : `, ${Math.floor(100 * this.#bytes / this.#size)} %, ${
        Math.ceil(seconds * (this.#size / this.#bytes - 1))
      } s left`;
    this.tell(`media: ${this.#lines.toLocaleString("en")} records, ${this.#rate}/s${left}`);
  }

  get #rate(): string {
    const seconds = (performance.now() - this.#start) / 1000;
    return Math.round(this.#lines / seconds).toLocaleString("en");
  }
}
