/** Random access to content, to detect its format. */

/** Content of a known size that can be read at any offset. */
export interface Bytes {
  readonly size: number;
  /** Reads `length` bytes from an offset, or fewer at the end of the content. */
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** Reads the content of an open file, which the caller closes. */
export function fileBytes(file: Deno.FsFile, size: number): Bytes {
  return {
    size,
    async read(offset, length) {
      await file.seek(offset, Deno.SeekMode.Start);
      const bytes = new Uint8Array(Math.min(length, Math.max(0, size - offset)));
      let done = 0;
      while (done < bytes.length) {
        const read = await file.read(bytes.subarray(done));
        if (read === null) break; // the file was truncated
        done += read;
      }
      return bytes.subarray(0, done);
    },
  };
}

/** Reads content in memory. */
export function memoryBytes(content: Uint8Array<ArrayBuffer>): Bytes {
  return {
    size: content.length,
    read: (offset, length) => Promise.resolve(content.subarray(offset, offset + length)),
  };
}

/** Bytes to read at a time, for parsers that ask for a few. */
const WINDOW = 256 * 1024;

/**
 * Windows to load at most, 16 MiB in all: the sample tables of a day of sound. The memory that a
 * parser takes is a multiple.
 */
const MAX_WINDOWS = 64;

/** Reads at most: ten hours in fragments of two seconds take 230,000. Each takes a parser 15 µs. */
const MAX_READS = 250_000;

/**
 * Content for parsers, read in windows, of which the latest is kept. After as many as any real file
 * needs it ends, so that content made to be read forever takes bounded time and memory.
 */
export class WindowedBlob extends Blob {
  readonly #content: Bytes;
  #windows = 0;
  #reads = 0;
  #start = 0;
  #window = new Uint8Array();
  /** Why reading failed, which a parser may conceal. */
  failure: unknown;

  constructor(content: Bytes, type = "") {
    super([], { type });
    this.#content = content;
  }

  override get size(): number {
    const isEnough = this.#windows >= MAX_WINDOWS || this.#reads >= MAX_READS;
    return isEnough ? 0 : this.#content.size;
  }

  override slice(start: number, end: number): Blob {
    const part = new Blob();
    part.arrayBuffer = () => this.#read(start, Math.min(end, this.#content.size));
    return part;
  }

  async #read(start: number, end: number): Promise<ArrayBuffer> {
    this.#reads++;
    if (start < this.#start || end > this.#start + this.#window.length) {
      this.#windows += Math.ceil((end - start) / WINDOW);
      if (this.#windows > MAX_WINDOWS) throw new RangeError("Too long to be read");
      try {
        this.#window = await this.#content.read(start, Math.max(end - start, WINDOW));
      } catch (error) {
        this.failure = error;
        throw error;
      }
      this.#start = start;
    }
    return this.#window.slice(start - this.#start, end - this.#start).buffer;
  }
}
