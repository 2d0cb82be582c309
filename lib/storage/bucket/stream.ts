/**
 * Reading content from the store.
 */

import { fulfilledWithin } from "../deadline.ts";
import { StorageError } from "../storage.ts";
import type { Download } from "./client.ts";

/** Options for reading content. */
export interface StreamOptions {
  /** The expected length in bytes. */
  readonly length: number;
  /** Called when it could not be read to the end. */
  readonly onFault: () => void;
  /** The timeout for the next bytes, in milliseconds. */
  readonly stall?: number;
}

/** The timeout for the next bytes of content, in milliseconds. */
const STALL = 30_000;

/**
 * Reads the content of a download at once, which costs less than a stream.
 *
 * @throws {StorageError} When it ends early, or does not arrive in time.
 */
export async function readAtOnce(
  { bytes, end }: Pick<Download, "bytes" | "end">,
  { length, stall = STALL }: Omit<StreamOptions, "onFault">,
): Promise<Uint8Array<ArrayBuffer>> {
  try {
    const reading = bytes();
    if (!await fulfilledWithin(stall, reading)) {
      throw new StorageError("bucket", `no content within ${stall / 1_000} s`);
    }
    const content = await reading;
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
 */
export function contentOf(
  { body, end }: Pick<Download, "body" | "end">,
  { length, onFault, stall = STALL }: StreamOptions,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  let left = length;
  let isCancelled = false;
  let isStalled = false;
  let readingSince = Infinity;
  // One timer for all reads: a timer for each is expensive.
  const timer = setInterval(() => {
    isStalled = performance.now() - readingSince >= stall;
    if (isStalled) reader.cancel().catch(() => {}); // which ends the read
  }, stall / 10);

  function finish(): void {
    clearInterval(timer);
    end();
  }

  async function pull(controller: ReadableStreamDefaultController): Promise<void> {
    try {
      readingSince = performance.now();
      const { value } = await reader.read();
      readingSince = Infinity;
      if (isStalled) {
        throw new StorageError("bucket", `no byte of content within ${stall / 1_000} s`);
      }
      if (value === undefined) {
        throw new StorageError("bucket", `content ended ${left} bytes early`);
      }
      left -= value.length;
      controller.enqueue(value);
      if (left > 0) return;
      controller.close();
      readingSince = performance.now();
      await reader.read().catch(() => {}); // the end, after which the connection can be reused
      finish();
    } catch (error) {
      finish();
      if (isCancelled) return;
      onFault();
      throw error;
    }
  }
  return new ReadableStream({
    pull,
    cancel() {
      isCancelled = true;
      finish();
    },
  }, { highWaterMark: 0 });
}
