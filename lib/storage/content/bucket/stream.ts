/** Reading content from the store. */

import { fulfilledWithin } from "../../../async/deadline.ts";
import { StorageError } from "../../errors.ts";
import type { Download } from "./client.ts";

/**
 * Reads the content of a download at once, which costs less than a stream.
 *
 * @param length The expected length in bytes.
 * @throws {StorageError} When it ends early, or does not arrive in time.
 */
export async function readAtOnce(
  { bytes, end }: Pick<Download, "bytes" | "end">,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  try {
    const content = await bytes();
    if (content.length === length) return content;
    throw new StorageError("bucket", `content ended ${length - content.length} bytes early`);
  } catch (cause) {
    if (cause instanceof StorageError) throw cause;
    throw new StorageError("bucket", "content cannot be read", { cause });
  } finally {
    end();
  }
}

/**
 * Returns the content of a download as a stream. It reads no faster than its consumer, and
 * cancelling it ends the download.
 *
 * @param timeoutMs Milliseconds to wait for the next bytes.
 */
export function contentOf(
  { stream, end }: Pick<Download, "stream" | "end">,
  { length, timeoutMs = 30_000 }: { length: number; timeoutMs?: number },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = stream().getReader();
  let left = length;
  return new ReadableStream({
    async pull(controller) {
      try {
        const reading = reader.read();
        if (!await fulfilledWithin(timeoutMs, reading)) {
          throw new StorageError("bucket", `no byte of content within ${timeoutMs / 1_000} s`);
        }
        const { value } = await reading;
        if (value === undefined) {
          throw new StorageError("bucket", `content ended ${left} bytes early`);
        }
        left -= value.length;
        controller.enqueue(value);
        if (left > 0) return;
        controller.close();
        // The end, after which the connection can be reused.
        await fulfilledWithin(timeoutMs, reader.read()).catch(() => {});
        end();
      } catch (error) { // also when cancelled during a read
        end();
        throw error;
      }
    },
    cancel: end,
  }, { highWaterMark: 0 });
}
