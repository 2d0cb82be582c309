/** Tags that precede sound: ID3v2 and APEv2. */

import { Buffer } from "node:buffer";
import type { WindowedBlob } from "./bytes.ts";

/** The bytes of an ID3v2 header, and of its optional footer. */
const ID3_HEADER_BYTES = 10;

/** The bytes of an APEv2 header. */
const APE_HEADER_BYTES = 32;

/** Leaves out all whole tags at the beginning of content. */
export async function skipTags(content: WindowedBlob): Promise<void> {
  for (;;) {
    const length = tagLength(Buffer.from(await content.read(0, APE_HEADER_BYTES)));
    if (length === 0 || length > content.size) return;
    content.skip(length);
  }
}

/** Returns the length of the tag with this header, or 0 if it is none. */
function tagLength(header: Buffer): number {
  const text = header.toString("latin1");
  if (text.startsWith("ID3") && header.length >= ID3_HEADER_BYTES) {
    const hasFooter = (header.readUInt8(5) & 0x10) !== 0; // ID3v2.4
    return (hasFooter ? 2 : 1) * ID3_HEADER_BYTES + id3Size(header.subarray(6));
  }
  if (text.startsWith("APETAGEX") && header.length === APE_HEADER_BYTES) {
    return APE_HEADER_BYTES + header.readUInt32LE(12);
  }
  return 0;
}

/** Returns the size stated by an ID3v2 tag: seven bits per byte, but eight from some programs. */
function id3Size(size: Buffer): number {
  const bytes = [...size.subarray(0, 4)];
  const bits = bytes.some((byte) => byte >= 0x80) ? 8 : 7;
  return bytes.reduce((sum, byte) => sum * 2 ** bits + byte, 0);
}

/**
 * Tells whether content begins with an ID3v2 tag that does not end: the content was cut in it, or
 * only its beginning can be read. The tag has a frame, padding or an extended header.
 */
export async function isCutTag(content: WindowedBlob): Promise<boolean> {
  const tag = Buffer.from(await content.read(0, ID3_HEADER_BYTES + 3));
  const isKnownVersion = [2, 3, 4].includes(tag[3] ?? 0);
  return isKnownVersion && /^ID3.{7}(?:[A-Z][A-Z0-9]{2}|\0{3})$/s.test(tag.toString("latin1"));
}
