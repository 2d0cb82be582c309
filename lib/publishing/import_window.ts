/**
 * Lines of records that are sorted together.
 */

import type { Token } from "../storage/token.ts";
import type { ImportLine } from "./import_lines.ts";

/** Lines that are collected before they are sorted, and bytes of them. */
const [LINES, LINE_BYTES] = [50_000, 12 * 1024 * 1024];

/** A line among many. */
export interface CollectedLine {
  readonly token: Token | undefined;
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

/**
 * Whole lines that were collected: each token is there once at most. Random tokens, added as they
 * come, would have a database write a page for each; the more are sorted, the fewer it writes.
 */
export class ImportWindow {
  /** The lines one after the other: as objects, with what they hold, they take many times as much. */
  readonly #bytes = new Uint8Array(LINE_BYTES);
  readonly #tokens = new Set<Token>();
  #records: CollectedLine[] = [];
  #files: CollectedLine[] = [];
  #end = 0;
  #since = Infinity;

  /** The other records, in the order of tokens. */
  sorted(): readonly CollectedLine[] {
    return this.#records.sort((one, other) =>
      (one.token as Token) < (other.token as Token) ? -1 : 1
    );
  }

  /** Lines that may take content in, in the order in which they came. */
  get files(): readonly CollectedLine[] {
    return this.#files;
  }

  /** Milliseconds since the first line came; less than none where there are none. */
  get age(): number {
    return performance.now() - this.#since;
  }

  /** Whether there is a line with this token. */
  has(token: Token): boolean {
    return this.#tokens.has(token);
  }

  /** Adds a line, unless it has to wait until those before it are settled. */
  add({ number, bytes }: ImportLine, token: Token | undefined, isFile: boolean): boolean {
    const lines = isFile ? this.#files : this.#records;
    const isFull = this.#records.length + this.#files.length === LINES ||
      this.#end + bytes.length > LINE_BYTES;
    if (isFull || token !== undefined && this.#tokens.has(token)) return false;
    if (token !== undefined) this.#tokens.add(token);
    this.#bytes.set(bytes, this.#end);
    const start = this.#end;
    this.#end += bytes.length;
    lines.push({ token, number, start, end: this.#end });
    this.#since = Math.min(this.#since, performance.now());
    return true;
  }

  /** A line as it was; valid until {@linkcode ImportWindow.clear}. */
  lineOf({ number, start, end }: CollectedLine): ImportLine {
    return { number, isWhole: true, bytes: this.#bytes.subarray(start, end) };
  }

  /** Starts anew. */
  clear(): void {
    this.#tokens.clear();
    this.#records = [];
    this.#files = [];
    this.#end = 0;
    this.#since = Infinity;
  }
}
