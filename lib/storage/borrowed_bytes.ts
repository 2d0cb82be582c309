/**
 * Bytes to read content into, used again once a response has copied them. With new ones for each
 * part, a GET of 64 kB costs a third more, most of it for collecting the garbage.
 */

/** The buffer that was borrowed last. One is enough for content that is read and sent at once. */
let buffer = new ArrayBuffer(0);
let isFree = false;

/** Borrows bytes, with any content. They may be kept instead of returned. */
export function borrowBytes(length: number): Uint8Array<ArrayBuffer> {
  if (!isFree || buffer.byteLength < length) buffer = new ArrayBuffer(length);
  isFree = false;
  return new Uint8Array(buffer, 0, length);
}

/** Returns bytes that nobody uses any more; ignores any but those borrowed last. */
export function returnBytes(bytes: Uint8Array<ArrayBuffer>): void {
  if (bytes.buffer === buffer) isFree = true;
}
