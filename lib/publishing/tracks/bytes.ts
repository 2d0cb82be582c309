/**
 * Random access to content, to follow a container's structure.
 */

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

/** Returns the same content with its beginning read once and cached. */
export async function withBeginning(content: Bytes, length: number): Promise<Bytes> {
  const { size } = content;
  const beginning = await content.read(0, length);
  return {
    size,
    read: (offset, length) =>
      Math.min(offset + length, size) <= beginning.length
        ? Promise.resolve(beginning.subarray(offset, offset + length))
        : content.read(offset, length),
  };
}

/** Reads content in memory. */
export function memoryBytes(content: Uint8Array<ArrayBuffer>): Bytes {
  return {
    size: content.length,
    read: (offset, length) => Promise.resolve(content.subarray(offset, offset + length)),
  };
}
