/**
 * Content on its way from the store, passed on as it is asked for.
 */

import { fulfilledWithin } from "../deadline.ts";
import { StorageError } from "../storage.ts";
import type { Download } from "./client.ts";

/** How content is passed on. */
export interface StreamOptions {
  /** Bytes that there are to be. */
  readonly length: number;
  /** Told that it could not be read to the end. */
  readonly onFault: () => void;
  /** Milliseconds that are waited for a byte. */
  readonly stall?: number;
}

/** Milliseconds that are waited for a byte of content. */
const STALL = 30_000;

/**
 * Reads the content of a download at once: the runtime does that without a stream, which would take
 * twice the work.
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
 * The content of a download, which is read no faster than the stream; cancelling one ends the other.
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
  // One timer for all reads: a timer for each would double the cost of a stream.
  const timer = setInterval(() => {
    isStalled = performance.now() - readingSince >= stall;
    if (isStalled) reader.cancel().catch(() => {}); // which ends the read
  }, stall / 10);

  function finish(): void {
    clearInterval(timer);
    end();
  }

  /** The next bytes; `undefined` at the end. */
  async function read(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    readingSince = performance.now();
    const { value } = await reader.read();
    readingSince = Infinity;
    if (isStalled) {
      throw new StorageError("bucket", `no byte of content within ${stall / 1_000} s`);
    }
    return value;
  }

  async function pull(controller: ReadableStreamDefaultController): Promise<void> {
    try {
      const chunk = left > 0 ? await read() : undefined;
      if (left > 0 && chunk === undefined) {
        throw new StorageError("bucket", `content ended ${left} bytes early`);
      }
      left -= chunk?.length ?? 0;
      if (chunk !== undefined) controller.enqueue(chunk);
      if (left > 0) return;
      controller.close();
      await read().catch(() => {}); // its end, after which the connection can be used again
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
