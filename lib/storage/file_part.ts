/**
 * Reading a part of an open file, from its current position.
 */

import { borrowBytes } from "./borrowed_bytes.ts";
import { StorageError } from "./storage.ts";

/** The minimum and maximum size of a chunk, in bytes. */
const [MIN_CHUNK, MAX_CHUNK] = [16 * 1024, 256 * 1024];

/**
 * The approximate total size of the current chunks of all open streams, in bytes. The runtime holds
 * three chunks for each slow client: at the maximum size, a thousand such clients took 776 MB.
 */
const ALL_CHUNKS = 16 * 1024 * 1024;

let openStreams = 0;

/**
 * Reads a part at once, into borrowed bytes. Closes the file, unless it fails.
 *
 * @param length Bytes.
 * @throws {StorageError} When the file is shorter.
 */
export function readAtOnce(file: Deno.FsFile, length: number): Uint8Array<ArrayBuffer> {
  const part = borrowBytes(length);
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
    if (!isOpen) return; // cancelled during a read, which then fails
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
