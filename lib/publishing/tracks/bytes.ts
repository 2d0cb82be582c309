/**
 * Content that is read here and there, as a container's structure leads.
 */

/** Content of a known size that can be read at any offset. */
export interface Bytes {
  readonly size: number;
  /** The bytes from an offset on: so many, or fewer where the content ends. */
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** The content of an open file, which stays the caller's to close. */
export function fileBytes(file: Deno.FsFile, size: number): Bytes {
  return {
    size,
    async read(offset, length) {
      await file.seek(offset, Deno.SeekMode.Start);
      const bytes = new Uint8Array(Math.min(length, Math.max(0, size - offset)));
      let done = 0;
      while (done < bytes.length) {
        const read = await file.read(bytes.subarray(done));
        if (read === null) break; // it became shorter
        done += read;
      }
      return bytes.subarray(0, done);
    },
  };
}

/** The same content, of which the beginning is read once, and kept. */
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

/** The content held in memory. */
export function memoryBytes(content: Uint8Array<ArrayBuffer>): Bytes {
  return {
    size: content.length,
    read: (offset, length) => Promise.resolve(content.subarray(offset, offset + length)),
  };
}
