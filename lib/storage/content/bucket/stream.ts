/** Reading content from the store. */

import { fulfilledWithin } from "../../../async/deadline.ts";
import { StorageError } from "../../../errors/storage_error.ts";
import { streamContent } from "../stream.ts";
import type { OnFault } from "../../storage.ts";
import type { Download } from "./client.ts";

/**
 * Reads the content of a download at once. This costs less than a stream.
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
    throw new StorageError("bucket", `content ended ${length - content.length} bytes early`, {
      kind: "ended early",
    });
  } catch (cause) {
    if (cause instanceof StorageError) throw cause;
    throw new StorageError("bucket", "content cannot be read", { cause });
  } finally {
    end();
  }
}

/**
 * Returns the content of a download as a stream. The stream reads no faster than its consumer, and
 * cancelling it ends the download.
 *
 * @param timeoutMs Milliseconds to wait for the next bytes.
 */
export function contentOf(
  { stream, end }: Pick<Download, "stream" | "end">,
  { length, timeoutMs = 30_000 }: { length: number; timeoutMs?: number },
  onFault?: OnFault,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = stream().getReader();
  return streamContent({
    length,
    async read(left) {
      const reading = reader.read();
      if (!await fulfilledWithin(timeoutMs, reading)) {
        throw new StorageError("bucket", `no byte of content within ${timeoutMs / 1_000} s`);
      }
      const { value } = await reading;
      if (value !== undefined) return value;
      throw new StorageError("bucket", `content ended ${left} bytes early`, {
        kind: "ended early",
      });
    },
    async release(isWhole) {
      // The connection can be reused only after the end has been read, too.
      if (isWhole) await fulfilledWithin(timeoutMs, reader.read()).catch(() => {});
      // Aborting alone ends nothing once the response is garbage, because Deno has lost its signal.
      reader.cancel().catch(() => {});
      end();
    },
  }, onFault);
}
