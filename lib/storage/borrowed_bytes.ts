/**
 * Bytes to read content into, used again once a response has copied them. New ones for each part
 * cost a GET of 64 kB half as much again, most of it for collecting the garbage.
 */

/** The maximum number of bytes to borrow. */
export const MAX_BORROWED = 128 * 1024;

/** The buffer that was borrowed last. One is enough for content that is read and sent at once. */
let buffer = new ArrayBuffer(0);
let isFree = false;

/**
 * Borrows bytes, with any content. They may be kept instead of returned.
 *
 * @param length At most {@linkcode MAX_BORROWED}.
 */
export function borrowBytes(length: number): Uint8Array<ArrayBuffer> {
  if (!isFree) buffer = new ArrayBuffer(MAX_BORROWED);
  isFree = false;
  return new Uint8Array(buffer, 0, length);
}

/** Returns bytes, which nobody uses any more; ignores any others than those borrowed last. */
export function returnBytes(bytes: Uint8Array<ArrayBuffer>): void {
  if (bytes.buffer === buffer) isFree = true;
}
