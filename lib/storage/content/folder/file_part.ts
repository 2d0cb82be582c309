/** Reading a part of an open file, from its current position. */

import { StorageError } from "../../../errors/storage_error.ts";
import { streamContent } from "../stream.ts";
import type { OnFault } from "../../storage.ts";

/**
 * The length of a chunk. With chunks half as long, a GET of 1 MB would cost half as much again.
 * Longer chunks would only take more memory, because the runtime holds three for each slow client.
 */
const CHUNK_BYTES = 128 * 1024;

/**
 * Reads a part at once. Closes the file, unless reading fails.
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
  onFault?: OnFault,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const read = async (left: number) => {
    const chunk = new Uint8Array(Math.min(CHUNK_BYTES, left));
    const count = await file.read(chunk);
    if (count === null) throw truncationFault(digest);
    return chunk.subarray(0, count);
  };
  return streamContent({ length, read, release: () => file.close() }, onFault);
}

function truncationFault(digest: string): StorageError {
  return new StorageError("files", `content ${digest} ended early`, { kind: "ended early" });
}
