/**
 * Reading a part of an open file, from its current position.
 */

import { StorageError } from "./storage.ts";

/** Bytes that a stream reads at a time, depending on how many streams are open. */
const [MIN_CHUNK, MAX_CHUNK] = [16 * 1024, 256 * 1024];

/**
 * Bytes that the chunks of all open streams add up to, roughly. The runtime holds three chunks for a
 * client that reads slowly: with large ones, a thousand such clients would take 800 MB.
 */
const ALL_CHUNKS = 16 * 1024 * 1024;

let openStreams = 0;

/**
 * Reads a part at once. Closes the file, unless it fails.
 *
 * @param length Bytes.
 * @throws {StorageError} When the file ends before.
 */
export function readAtOnce(file: Deno.FsFile, length: number): Uint8Array<ArrayBuffer> {
  const part = new Uint8Array(length);
  for (let done = 0; done < length;) {
    const read = file.readSync(part.subarray(done));
    if (read === null) throw endedEarly();
    done += read;
  }
  file.close();
  return part;
}

/**
 * Streams a part. Closes the file at the end, on failure, or when cancelled.
 *
 * @param length Bytes; at least one.
 */
export function streamPart(
  file: Deno.FsFile,
  length: number,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let left = length;
  let isOpen = true;
  openStreams++;
  const end = () => {
    if (!isOpen) return; // a read in flight fails when the stream is cancelled
    isOpen = false;
    openStreams--;
    file.close();
  };
  return new ReadableStream({
    async pull(controller) {
      try {
        const share = Math.max(MIN_CHUNK, Math.floor(ALL_CHUNKS / openStreams));
        const chunk = new Uint8Array(Math.min(share, MAX_CHUNK, left));
        const read = await file.read(chunk);
        if (read === null) throw endedEarly();
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

function endedEarly(): StorageError {
  return new StorageError("files", "content ended early");
}
