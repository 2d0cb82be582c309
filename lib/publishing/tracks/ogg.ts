/**
 * The tracks of Ogg files (RFC 3533). The first page of each track precedes all others, and starts
 * with the name of its codec.
 */

import type { Bytes } from "./bytes.ts";
import { MAX_PARTS, type Track } from "./track.ts";

/** The first bytes of each codec (RFC 5334 §10, and others that players know). */
const CODECS: readonly (readonly [beginning: string, track: Track])[] = [
  ["OpusHead", { holds: "sound", codec: "opus" }],
  ["\x01vorbis", { holds: "sound" }],
  ["\x7fFLAC", { holds: "sound" }],
  ["Speex   ", { holds: "sound" }],
  ["CELT    ", { holds: "sound" }],
  ["PCM     ", { holds: "sound" }],
  ["\x80theora", { holds: "picture" }],
  ["BBCD\0", { holds: "picture" }],
  ["OVP80", { holds: "picture" }],
  ["\x01video\0", { holds: "picture" }],
];

const BEGINNING_OF_STREAM = 0x02;

/** Lists the tracks. */
export async function oggTracks(file: Bytes): Promise<Track[]> {
  const tracks: Track[] = [];
  let at = 0;
  for (let count = 0; count < MAX_PARTS; count++) {
    const page = await file.read(at, 27 + 255 + 8);
    const isFirst = latin1(page.subarray(0, 4)) === "OggS" &&
      ((page[5] ?? 0) & BEGINNING_OF_STREAM) !== 0;
    if (!isFirst) break;
    const segments = page.subarray(27, 27 + (page[26] ?? 0));
    const start = 27 + segments.length;
    const beginning = latin1(page.subarray(start, start + 8));
    const known = CODECS.find(([codec]) => beginning.startsWith(codec));
    tracks.push(known?.[1] ?? { holds: "other" });
    at += start + segments.reduce((sum, length) => sum + length, 0);
  }
  return tracks;
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
