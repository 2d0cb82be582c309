/**
 * The tracks of Matroska and WebM files (RFC 9559): nested elements (EBML, RFC 8794), of which only
 * the headers are read.
 */

import type { Bytes } from "./bytes.ts";
import { MAX_PARTS, type Part, type Track } from "./track.ts";

const SEGMENT = 0x18538067;
const TRACKS = 0x1654ae6b;
const TRACK_ENTRY = 0xae;
const TRACK_TYPE = 0x83;

/** What a TrackType means (RFC 9559 §5.1.4.1.3). */
const HOLDS: Readonly<Record<number, Track["holds"]>> = { 1: "picture", 2: "sound", 3: "picture" };

/** Lists the tracks; none if the file is truncated before them. */
export async function matroskaTracks(file: Bytes): Promise<Track[]> {
  const found: Track[] = [];
  for await (const segment of elements(file, { start: 0, end: file.size })) {
    if (segment.id !== SEGMENT) continue;
    for await (const tracks of elements(file, segment)) {
      if (tracks.id !== TRACKS) continue;
      for await (const entry of elements(file, tracks)) {
        if (entry.id === TRACK_ENTRY) found.push({ holds: await trackType(file, entry) });
      }
      return found;
    }
  }
  return found;
}

async function trackType(file: Bytes, entry: Part): Promise<Track["holds"]> {
  for await (const { id, start, end } of elements(file, entry)) {
    if (id !== TRACK_TYPE) continue;
    const value = await file.read(start, Math.min(end - start, 8));
    return HOLDS[value.at(-1) ?? 0] ?? "other";
  }
  return "other";
}

/** Yields the elements of one level. One of unknown size (live streams) reaches to the end. */
async function* elements(
  file: Bytes,
  within: Part,
): AsyncGenerator<Part & { readonly id: number }> {
  let at = within.start;
  for (let count = 0; count < MAX_PARTS && at < within.end; count++) {
    const header = await file.read(at, 12); // an identifier takes up to 4 bytes, a size up to 8
    const id = variableInteger(header, 0);
    const size = id === undefined ? undefined : variableInteger(header, id.width);
    if (id === undefined || size === undefined) return;
    const start = at + id.width + size.width;
    const isUnknown = size.value === 2 ** (7 * size.width) - 1;
    const end = isUnknown ? within.end : Math.min(start + size.value, within.end);
    yield { id: id.value + 2 ** (7 * id.width), start, end }; // identifiers keep their marker
    at = end;
  }
}

/** Reads a variable-size integer (RFC 8794 §4): its leading zeros encode its width. */
function variableInteger(bytes: Uint8Array, at: number) {
  const width = Math.clz32(bytes[at] ?? 0) - 23;
  if (width > 8 || bytes.length < at + width) return undefined;
  let value = (bytes[at] as number) - 2 ** (8 - width);
  for (const byte of bytes.subarray(at + 1, at + width)) value = value * 256 + byte;
  return { width, value };
}
