/**
 * The tracks of MP4, 3GP and QuickTime files (ISO/IEC 14496-12): nested boxes. The one that
 * describes the tracks is read whole, wherever it is in the file; of the others, only the headers.
 */

import { Buffer } from "node:buffer";
import type { Bytes } from "./bytes.ts";
import { MAX_PARTS, type Track } from "./track.ts";

/** Bytes of the description to read: many times what a day of video has. */
const MAX_LENGTH = 2 ** 27;

/** Lists the tracks; none if the file is truncated before them. */
export async function isoTracks(file: Bytes): Promise<Track[]> {
  let at = 0;
  for (let count = 0; count < MAX_PARTS; count++) {
    const box = headerOf(Buffer.from(await file.read(at, 16)), file.size - at);
    if (box === undefined) break;
    if (box.type === "moov") {
      const length = Math.min(box.size - box.start, MAX_LENGTH);
      return tracksIn(Buffer.from(await file.read(at + box.start, length)));
    }
    at += box.size;
  }
  return [];
}

function tracksIn(moov: Buffer): Track[] {
  const traks = find(moov, "trak");
  const chapters = new Set( // tracks with chapter titles and pictures
    traks.flatMap((trak) => find(trak, "tref", "chap"))
      .flatMap((chap) =>
        Array.from({ length: chap.length >> 2 }, (_, at) => chap.readUInt32BE(4 * at))
      ),
  );
  return traks.map((trak) => {
    const [tkhd] = find(trak, "tkhd");
    const at = tkhd?.[0] === 1 ? 20 : 12; // after version, flags and two timestamps of 8 or 4 bytes
    const id = tkhd !== undefined && tkhd.length >= at + 4 ? tkhd.readUInt32BE(at) : 0;
    const handler = find(trak, "mdia", "hdlr")[0]?.toString("latin1", 8, 12);
    const holds = handler === "soun" ? "sound" : handler === "vide" ? "picture" : "other";
    return { holds: chapters.has(id) ? "other" : holds };
  });
}

/** Finds the boxes of a type in others of a type, and so on. */
function find(within: Buffer, type: string, ...inner: [string?]): Buffer[] {
  const found = [];
  let rest = within;
  for (let count = 0; count < MAX_PARTS; count++) {
    const box = headerOf(rest, rest.length);
    if (box === undefined) break;
    if (box.type === type) found.push(rest.subarray(box.start, box.size));
    rest = rest.subarray(box.size);
  }
  const [next] = inner;
  return next === undefined ? found : found.flatMap((box) => find(box, next));
}

/**
 * Parses the header of a box: a 32-bit size, a type of four characters and, if 32 bits are too few,
 * a 64-bit size.
 *
 * @param rest Bytes from here to the end of what it is in, which it may reach to.
 */
function headerOf(bytes: Buffer, rest: number) {
  if (bytes.length < 8) return undefined;
  const [short, type] = [bytes.readUInt32BE(0), bytes.toString("latin1", 4, 8)];
  const start = short === 1 ? 16 : 8;
  if (bytes.length < start) return undefined;
  const size = short === 0 ? rest : short === 1 ? Number(bytes.readBigUInt64BE(8)) : short;
  return size < start ? undefined : { type, start, size: Math.min(size, rest) };
}
