/**
 * A bounded buffer of lines, sorted before they are added.
 */

import type { Token } from "../storage/token.ts";
import type { ImportLine } from "./import_lines.ts";

/** The limits of the buffer, in lines and in bytes. */
const [LINES, LINE_BYTES] = [50_000, 12 * 1024 * 1024];

/** The position of a line in the buffer. */
export interface CollectedLine {
  readonly token: Token | undefined;
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

/**
 * Buffers whole lines, each token at most once. Adding random tokens in input order would make a
 * database write a page for each; the more are sorted, the fewer pages it writes.
 */
export class ImportWindow {
  /** All lines as bytes: parsed, they would take many times as much memory. */
  readonly #bytes = new Uint8Array(LINE_BYTES);
  readonly #tokens = new Set<Token>();
  #records: CollectedLine[] = [];
  #files: CollectedLine[] = [];
  #end = 0;
  #since = Infinity;

  /** Returns the lines that copy no content, ordered by token. */
  sorted(): readonly CollectedLine[] {
    return this.#records.sort((one, other) =>
      (one.token as Token) < (other.token as Token) ? -1 : 1
    );
  }

  /** The lines that may copy content, in input order. */
  get files(): readonly CollectedLine[] {
    return this.#files;
  }

  /** Milliseconds since the first line was added; negative if there is none. */
  get age(): number {
    return performance.now() - this.#since;
  }

  /** Whether a line has this token. */
  has(token: Token): boolean {
    return this.#tokens.has(token);
  }

  /** Adds a line. Returns false if the lines before it have to be settled first. */
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

  /** Returns a line as it was read; valid until {@linkcode ImportWindow.clear}. */
  lineOf({ number, start, end }: CollectedLine): ImportLine {
    return { number, isWhole: true, bytes: this.#bytes.subarray(start, end) };
  }

  /** Empties the buffer. */
  clear(): void {
    this.#tokens.clear();
    this.#records = [];
    this.#files = [];
    this.#end = 0;
    this.#since = Infinity;
  }
}
