/** Reading a part of an open file, from its current position. */

import { StorageError } from "../../errors.ts";

/** Bytes of a chunk. The runtime holds three for each slow client. */
const CHUNK = 64 * 1024;

/**
 * Reads a part at once. Closes the file, unless it fails.
 *
 * @param length Bytes.
 * @param digest Names the content in messages.
 * @throws {StorageError} When the file is shorter.
 */
export function readAtOnce(
  file: Deno.FsFile,
  length: number,
  digest: string,
): Uint8Array<ArrayBuffer> {
  const part = new Uint8Array(length);
  for (let done = 0; done < length;) {
    const read = file.readSync(part.subarray(done));
    if (read === null) throw truncationFault(digest);
    done += read;
  }
  file.close();
  return part;
}

/**
 * Streams a part. Closes the file at the end, on failure, or when cancelled.
 *
 * @param length Bytes; at least one.
 * @param digest Names the content in messages.
 */
export function streamPart(
  file: Deno.FsFile,
  length: number,
  digest: string,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let left = length;
  let isOpen = true;
  const end = () => {
    if (!isOpen) return; // cancelled during a read, which then fails
    isOpen = false;
    file.close();
  };
  return new ReadableStream({
    async pull(controller) {
      try {
        const chunk = new Uint8Array(Math.min(CHUNK, left));
        const read = await file.read(chunk);
        if (read === null) throw truncationFault(digest);
        controller.enqueue(chunk.subarray(0, read));
        left -= read;
      } catch (error) {
        end();
        throw error;
      }
      if (left > 0) return;
      end();
      controller.close();
    },
    cancel: end,
  }, { highWaterMark: 0 });
}

function truncationFault(digest: string): StorageError {
  return new StorageError("files", `content ${digest} ended early`);
}
