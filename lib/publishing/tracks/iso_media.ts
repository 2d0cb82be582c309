/**
 * The tracks of MP4, 3GP and QuickTime files (ISO/IEC 14496-12): nested boxes, of which only the
 * headers are read, wherever they are in the file.
 */

import type { Bytes } from "./bytes.ts";
import { MAX_PARTS, type Part, type Track } from "./track.ts";

/** Lists the tracks; none if the file is truncated before them. */
export async function isoTracks(file: Bytes): Promise<Track[]> {
  const moov = (await boxes(file, "moov", { start: 0, end: file.size }))[0];
  if (moov === undefined) return [];
  const tracks = [];
  const chapters = new Set<number>(); // tracks with chapter titles and pictures
  for (const trak of await boxes(file, "trak", moov)) {
    tracks.push({ id: await trackId(file, trak), holds: await handler(file, trak) });
    for (const tref of await boxes(file, "tref", trak)) {
      for (const chap of await boxes(file, "chap", tref)) {
        const ids = await file.read(chap.start, Math.min(chap.end - chap.start, 4096));
        for (let at = 0; at + 4 <= ids.length; at += 4) chapters.add(uint32(ids, at));
      }
    }
  }
  return tracks.map(({ id, holds }) => ({ holds: chapters.has(id) ? "other" : holds }));
}

/**
 * Finds the boxes of a type on one level. A header has a 32-bit size, a type of four characters
 * and, if 32 bits are too few, a 64-bit size.
 */
async function boxes(
  file: Bytes,
  type: string,
  within: Part,
): Promise<Part[]> {
  const found = [];
  let at = within.start;
  for (let count = 0; count < MAX_PARTS && at + 8 <= within.end; count++) {
    const header = await file.read(at, 16);
    if (header.length < 8) break;
    const short = uint32(header, 0);
    if (short === 1 && header.length < 16) break;
    const headerSize = short === 1 ? 16 : 8;
    const size = short === 0
      ? within.end - at // to the end
      : short === 1
      ? uint32(header, 8) * 2 ** 32 + uint32(header, 12)
      : short;
    if (size < headerSize) break;
    if (fourCharacters(header, 4) === type) {
      found.push({ start: at + headerSize, end: Math.min(at + size, within.end) });
      if (type === "moov") break; // there is only one
    }
    at += size;
  }
  return found;
}

async function trackId(file: Bytes, trak: Part): Promise<number> {
  const [tkhd] = await boxes(file, "tkhd", trak);
  if (tkhd === undefined) return 0;
  const header = await file.read(tkhd.start, 24);
  const at = header[0] === 1 ? 20 : 12; // after version, flags and two timestamps of 8 or 4 bytes
  return header.length < at + 4 ? 0 : uint32(header, at);
}

async function handler(
  file: Bytes,
  trak: Part,
): Promise<Track["holds"]> {
  const [mdia] = await boxes(file, "mdia", trak);
  const [hdlr] = mdia === undefined ? [] : await boxes(file, "hdlr", mdia);
  if (hdlr === undefined) return "other";
  const type = fourCharacters(await file.read(hdlr.start, 12), 8);
  return type === "soun" ? "sound" : type === "vide" ? "picture" : "other";
}

function uint32(bytes: Uint8Array<ArrayBuffer>, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
}

function fourCharacters(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}
