/** Streaming content, wherever it is stored. */

import type { OnFault } from "../storage.ts";

/** A source of content that is read piece by piece. */
interface Pieces {
  /** The length of all pieces together in bytes; at least one. */
  readonly length: number;
  /** Reads the next bytes: at least one, and at most `left`. Rejects if there are none. */
  read(left: number): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * Releases the source. Called once: at the end, on failure, or when the stream is cancelled,
   * possibly during a read.
   *
   * @param isWhole Whether all pieces were read.
   */
  release(isWhole: boolean): void;
}

/**
 * Streams content only as fast as it is consumed. If reading fails, the stream fails, too. With
 * `onFault`, the stream ends early instead, because Deno would print the stack of the error. Either
 * way, Deno closes the connection, because the content is too short.
 */
export function streamContent(
  { length, read, release }: Pieces,
  onFault?: OnFault,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let left = length;
  let isOver = false;
  const end = () => {
    if (!isOver) release(left <= 0);
    isOver = true;
  };
  return new ReadableStream({
    async pull(controller) {
      try {
        const piece = await read(left);
        if (isOver) return; // cancelled meanwhile
        left -= piece.length;
        controller.enqueue(piece);
        if (left > 0) return;
      } catch (fault) {
        if (isOver) return; // the read failed because it was cancelled
        if (onFault === undefined) {
          end();
          throw fault;
        }
        onFault(fault);
      }
      end();
      controller.close();
    },
    cancel: end,
  }, { highWaterMark: 0 });
}
