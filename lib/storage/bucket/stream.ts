/**
 * Content on its way from the store, passed on as it is asked for.
 */

import { within } from "../deadline.ts";
import { StorageError } from "../storage.ts";
import type { Download } from "./client.ts";

/** Milliseconds without a byte of content that is waited for. */
const STALL = 30_000;

/**
 * The content of a download, which is read no faster than the stream; cancelling one ends the other.
 *
 * @param length Bytes that there are to be.
 * @param onFault Told that it could not be read to the end.
 */
export function contentOf(
  { body, end }: Pick<Download, "body" | "end">,
  length: number,
  onFault: () => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  let left = length;
  let isCancelled = false;

  /** The next bytes; `undefined` at the end. */
  async function read(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const reading = reader.read();
    if (!await within(STALL, reading)) {
      throw new StorageError("bucket", `no byte of content within ${STALL / 1_000} s`);
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
      await read(); // the end, which frees the connection for the next request
      end();
      controller.close();
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
