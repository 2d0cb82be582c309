/**
 * The tracks of containers: MP4, 3GP and QuickTime; Matroska and WebM; Ogg; ASF (WMV and WMA). Only
 * the few bytes that describe them are read, because parsing a whole file takes as much time and
 * memory as its author wants.
 */

import { Buffer } from "node:buffer";
import type { WindowedBlob } from "./bytes.ts";

/** The kind of a track. Opus is audio, too. */
type TrackKind = "audio" | "opus" | "video" | "other";

/** The readers of tracks. They throw a `RangeError` when they may have missed some. */
const READERS = [
  { types: /^video\/(?:mp4|3gpp2?|quicktime)$/, read: isoTracks },
  { types: /^video\/(?:webm|x-matroska)$/, read: matroskaTracks },
  { types: /^video\/ogg$/, read: oggTracks },
  { types: /^video\/x-ms-asf$/, read: asfTracks },
];

/**
 * Determines the kind of a container, if possible, and whether all its audio is Opus.
 *
 * @param type The media type of the content.
 * @returns `undefined` if the type is not that of a container; the type itself then names the kind.
 */
export async function findTracks(content: WindowedBlob, type: string) {
  const reader = READERS.find(({ types }) => types.test(type));
  if (reader === undefined) return undefined;
  const found: TrackKind[] = [];
  let isComplete = true; // whether all tracks were found
  try {
    for await (const kind of reader.read(content)) found.push(kind);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    isComplete = false;
  }
  // The media type of an Ogg file states whether all its audio is Opus (RFC 7845 §9).
  const isOpus = found.includes("opus") && !found.includes("audio");
  if (found.includes("video")) return { kind: "video", isOpus } as const; // one is enough
  const isAudio = isComplete && (isOpus || found.includes("audio"));
  return { kind: isAudio ? "audio" : undefined, isOpus } as const;
}

/** The nesting of boxes (ISO/IEC 14496-12). */
const BOXES = {
  /** The part that lists all tracks. */
  list: "moov",
  /** The parts to enter; others are skipped. */
  entered: ["moov", "trak", "tref", "mdia"],
  /**
   * Parses the header of a part.
   *
   * @param rest Bytes from there to the end of the file.
   * @throws {RangeError} When there is none.
   */
  parse(bytes: Buffer, rest: number) {
    const short = bytes.readUInt32BE();
    const headerLength = short === 1 ? 16 : 8;
    const length = short === 0 ? rest : short === 1 ? Number(bytes.readBigUInt64BE(8)) : short;
    if (length < headerLength) throw new RangeError("Not a box");
    return { id: bytes.toString("latin1", 4, 8), headerLength, length: length - headerLength };
  },
};

/**
 * Yields the parts of a container up to the end of its list of tracks, each before the parts inside
 * it, so that nesting takes no recursion. Offsets are in bytes from the beginning of the file.
 *
 * @throws {RangeError} When the content ends before the list, or takes too long to read.
 */
async function* partsOf(content: WindowedBlob, { list, entered, parse }: typeof BOXES) {
  let listEnd = Infinity;
  for (let at = 0; at < listEnd;) {
    const bytes = Buffer.alloc(24); // as long as any header, with zeros after the end of the file
    bytes.set(await content.read(at, bytes.length));
    const { id, headerLength, length } = parse(bytes, content.size - at);
    const start = at + headerLength;
    const end = start + length;
    if (id === list) listEnd = end;
    yield { id, start, end };
    at = entered.includes(id) ? start : end;
  }
}

/** The kind of a track for each type of its handler: `soun` and `vide`. */
const HANDLERS: Readonly<Record<number, TrackKind>> = { 0x736f756e: "audio", 0x76696465: "video" };

/** Yields the tracks of MP4, 3GP and QuickTime, except those with chapters' titles and pictures. */
async function* isoTracks(content: WindowedBlob): AsyncGenerator<TrackKind> {
  const read = async (at: number) => Buffer.from(await content.read(at, 4)).readUInt32BE();
  const tracks: { readonly id: number; readonly kind: TrackKind }[] = [];
  const chapters = new Set<number>();
  let trackId = 0;
  let nextId = Infinity;
  let fault: unknown;
  try {
    for await (const { id, start, end } of partsOf(content, BOXES)) {
      if (id === "mvhd") nextId = await read(end - 4);
      else if (id === "tkhd") {
        const version = await read(start) >>> 24; // 1 has times of 64 bits before the identifier
        trackId = await read(start + (version === 1 ? 20 : 12));
      } else if (id === "chap") {
        for (let at = start; at < end; at += 4) chapters.add(await read(at));
      } else if (id === "hdlr") {
        tracks.push({ id: trackId, kind: HANDLERS[await read(start + 8)] ?? "other" });
      }
    }
  } catch (error) {
    fault = error;
  }
  yield* tracks.filter(({ id }) => !chapters.has(id)).map(({ kind }) => kind);
  // Identifiers are unique and less than `nextId`, so there can be no other tracks.
  const isComplete = fault instanceof RangeError && tracks.length === nextId - 1;
  if (fault !== undefined && !isComplete) throw fault;
}

/** Identifiers of Matroska's elements (RFC 9559 §5.1), in hexadecimal digits. */
const SEGMENT = "18538067";
const TRACKS = "1654ae6b";
const TRACK_ENTRY = "ae";
const TRACK_TYPE = "83";

/** The nesting of elements (RFC 8794). */
const ELEMENTS: typeof BOXES = {
  list: TRACKS,
  entered: [SEGMENT, TRACKS, TRACK_ENTRY],
  parse(bytes, rest) {
    // The leading zeros of an identifier or a length encode its width (RFC 8794 §4).
    const idWidth = Math.clz32(bytes.readUInt8()) - 23;
    const lengthWidth = Math.clz32(bytes.readUInt8(idWidth)) - 23;
    if (idWidth > 4 || lengthWidth > 8) throw new RangeError("Not an element");
    const bits = 7 * lengthWidth;
    const aligned = bytes.readBigUInt64BE(idWidth) >> BigInt(64 - 8 * lengthWidth);
    const stated = Number(BigInt.asUintN(bits, aligned));
    const length = stated === 2 ** bits - 1 ? rest : stated; // unknown, as in live streams
    return { id: bytes.toString("hex", 0, idWidth), headerLength: idWidth + lengthWidth, length };
  },
};

/** The kind of a track for each TrackType (RFC 9559 §5.1.4.1.3). */
const TRACK_TYPES: readonly TrackKind[] = ["other", "video", "audio", "video"];

async function* matroskaTracks(content: WindowedBlob): AsyncGenerator<TrackKind> {
  for await (const { id, end } of partsOf(content, ELEMENTS)) {
    if (id !== TRACK_TYPE) continue;
    yield TRACK_TYPES[(await content.read(end - 1, 1))[0] ?? 0] ?? "other";
  }
}

/** GUIDs of ASF, in hexadecimal digits as they are stored. */
const ASF_HEADER = "3026b2758e66cf11a6d900aa0062ce6c";
const ASF_STREAM = "9107dcb7b7a9cf118ee600c00c205365";
const ASF_STREAM_TYPES: Readonly<Record<string, TrackKind>> = {
  "409e69f84d5bcf11a8fd00805f5c442b": "audio",
  "c0ef19bc4d5bcf11a8fd00805f5c442b": "video",
};

/** The nesting of ASF objects. The header lists all streams. */
const ASF_OBJECTS: typeof BOXES = {
  list: ASF_HEADER,
  entered: [ASF_HEADER],
  parse(bytes) {
    const id = bytes.toString("hex", 0, 16);
    const headerLength = id === ASF_HEADER ? 30 : 24;
    const length = Number(bytes.readBigUInt64LE(16));
    if (length < headerLength) throw new RangeError("Not an object");
    return { id, headerLength, length: length - headerLength };
  },
};

async function* asfTracks(content: WindowedBlob): AsyncGenerator<TrackKind> {
  for await (const { id, start } of partsOf(content, ASF_OBJECTS)) {
    if (id !== ASF_STREAM) continue;
    const type = Buffer.from(await content.read(start, 16)).toString("hex");
    yield ASF_STREAM_TYPES[type] ?? "other";
  }
}

/** The first bytes of codecs in Ogg (RFC 5334 §10, and others that players support). */
const OGG_AUDIO = ["\x01vorbis", "\x7fFLAC", "fLaC", "Speex", "CELT", "PCM     ", "\x01audio"];
const OGG_VIDEO = ["\x80theora", "BBCD\0", "OVP80", "\x01video"];

/** Yields the tracks of Ogg. The first page of each precedes all other pages (RFC 3533 §6). */
async function* oggTracks(content: WindowedBlob): AsyncGenerator<TrackKind> {
  for (let at = 0;;) {
    const page = Buffer.from(await content.read(at, 27 + 255 + 8)); // up to the name of the codec
    const isFirst = page.toString("latin1", 0, 4) === "OggS" && (page.readUInt8(5) & 2) !== 0;
    if (!isFirst) return;
    const segments = page.subarray(27, 27 + page.readUInt8(26));
    const start = 27 + segments.length;
    const codec = page.toString("latin1", start, start + 8);
    const isOneOf = (names: readonly string[]) => names.some((name) => codec.startsWith(name));
    if (codec === "OpusHead") yield "opus";
    else yield isOneOf(OGG_AUDIO) ? "audio" : isOneOf(OGG_VIDEO) ? "video" : "other";
    at += segments.reduce((sum, length) => sum + length, start);
  }
}
