/** Random access to content, to detect its format. */

import { readable } from "../input/user_file.ts";

/** Content of a known size that can be read at any offset. */
export interface Bytes {
  readonly size: number;
  /** Whether this is all of it: of what is at a URL, only the beginning is requested. */
  readonly isWhole: boolean;
  /** Reads `length` bytes from an offset, or fewer at the end of the content. */
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** Reads the content of an open file. The caller closes the file. The path is for messages. */
export function fileBytes(path: string, file: Deno.FsFile, size: number): Bytes {
  const read = async (offset: number, length: number) => {
    await file.seek(offset, Deno.SeekMode.Start);
    const bytes = new Uint8Array(Math.min(length, Math.max(0, size - offset)));
    let done = 0;
    while (done < bytes.length) {
      const read = await file.read(bytes.subarray(done));
      if (read === null) break; // the file was truncated
      done += read;
    }
    return bytes.subarray(0, done);
  };
  return { size, isWhole: true, read: (...range) => readable(path, () => read(...range)) };
}

/** Reads content in memory. */
export function memoryBytes(content: Uint8Array<ArrayBuffer>, isWhole = true): Bytes {
  return {
    size: content.length,
    isWhole,
    read: (offset, length) => Promise.resolve(content.subarray(offset, offset + length)),
  };
}

/** The minimum number of bytes to read at a time, because parsers ask for only a few. */
const WINDOW_BYTES = 64 * 1024;

/** The maximum number of windows to load, 4 MiB in all. An MP4 takes one or two for each track. */
const MAX_WINDOWS = 64;

/** The maximum number of reads. Each takes a parser up to 20 µs. */
const MAX_READS = 10_000;

/**
 * Content for parsers. It is read in windows, and the latest window is kept. Reads are limited to
 * the number that a real file needs, so that a hostile file takes bounded time and memory.
 */
export class WindowedBlob extends Blob {
  readonly #content: Bytes;
  #skipped = 0;
  #windows = 0;
  #reads = 0;
  #start = 0;
  #window = new Uint8Array();

  constructor(content: Bytes) {
    super();
    this.#content = content;
  }

  override get size(): number {
    return this.#content.size - this.#skipped;
  }

  /** Leaves out bytes at the beginning, for good. */
  skip(length: number): void {
    this.#skipped += length;
    this.#start -= length;
  }

  override slice(start: number, end: number): Blob {
    const part = new Blob();
    part.arrayBuffer = async () => (await this.read(start, end - start)).slice().buffer;
    return part;
  }

  /**
   * Reads `length` bytes from an offset, or fewer at the end of the content.
   *
   * @throws {RangeError} When more was read than any real file needs.
   */
  async read(start: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const end = Math.min(start + length, this.size);
    if (start >= end) return new Uint8Array();
    if (++this.#reads > MAX_READS) throw new RangeError("Too many parts to be read");
    if (start < this.#start || end > this.#start + this.#window.length) {
      this.#windows += Math.ceil((end - start) / WINDOW_BYTES);
      if (this.#windows > MAX_WINDOWS) throw new RangeError("Too long to be read");
      this.#window = await this.#content.read(
        this.#skipped + start,
        Math.max(end - start, WINDOW_BYTES),
      );
      this.#start = start;
    }
    return this.#window.subarray(start - this.#start, end - this.#start);
  }
}
