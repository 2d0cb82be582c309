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
 * The content of a download, which is read no faster than the stream; cancelling one ends the other.
 */
export function contentOf(
  { body, end }: Pick<Download, "body" | "end">,
  { length, onFault, stall = STALL }: StreamOptions,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  let left = length;
  let isCancelled = false;

  /** The next bytes; `undefined` at the end. */
  async function read(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const reading = reader.read();
    if (!await fulfilledWithin(stall, reading)) {
      throw new StorageError("bucket", `no byte of content within ${stall / 1_000} s`);
    }
    return (await reading).value;
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
      end();
    } catch (error) {
      end();
      if (isCancelled) return;
      onFault();
      throw error;
    }
  }
  return new ReadableStream({
    pull,
    cancel() {
      isCancelled = true;
      end();
    },
  }, { highWaterMark: 0 });
}
