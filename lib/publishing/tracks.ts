/**
 * The tracks of containers: MP4, 3GP and QuickTime; Matroska and WebM; Ogg; ASF (WMV and WMA); AVI;
 * FLV; MPEG program streams (VOB) and transport streams. Only the few bytes that describe them are
 * read, because parsing a whole file takes as much time and memory as its author wants.
 */

import { Buffer } from "node:buffer";
import type { WindowedBlob } from "./bytes.ts";
import { transportStreams } from "./transport_stream.ts";

/** The kind of a track. Opus is audio, too. */
const TRACK_KINDS = ["audio", "opus", "video", "other"] as const;
type TrackKind = typeof TRACK_KINDS[number];

/** The readers of tracks. They throw a `RangeError` when they may have missed some. */
const READERS = [
  { types: /^video\/(?:mp4|3gpp2?|quicktime|mj2)$/, read: isoTracks },
  { types: /^video\/(?:webm|x-matroska)$/, read: matroskaTracks },
  { types: /^video\/ogg$/, read: oggTracks },
  { types: /^video\/x-ms-asf$/, read: asfTracks },
  { types: /^video\/vnd\.avi$/, read: aviTracks },
  { types: /^video\/x-flv$/, read: flvTracks },
  { types: /^video\/mpeg$/, read: mpegTracks },
  { types: /^video\/mp2t$/, read: transportStreams },
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
export const BOXES = {
  /** The part that lists all tracks. */
  list: "moov",
  /** The parts to enter; others are skipped. */
  entered: ["moov", "trak", "tref", "mdia"],
  /** Whether no part ends after the one that it is in. Elsewhere, lengths are unknown at first. */
  isExact: true,
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
export async function* partsOf(
  content: WindowedBlob,
  { list, entered, parse, isExact }: typeof BOXES,
) {
  let listEnd = Infinity;
  const ends: number[] = []; // of the parts that were entered
  for (let at = 0; at < listEnd;) {
    const bytes = Buffer.alloc(24); // as long as any header, with zeros after the end of the file
    bytes.set(await content.read(at, bytes.length));
    const { id, headerLength, length } = parse(bytes, content.size - at);
    const start = at + headerLength;
    const end = start + length;
    if (id === list) listEnd = end;
    while (at >= (ends.at(-1) ?? Infinity)) ends.pop();
    if (isExact && end > (ends.at(-1) ?? end)) throw new RangeError("Ends after what it is in");
    yield { id, start, end };
    const isEntered = entered.includes(id);
    if (isEntered) ends.push(end);
    at = isEntered ? start : end;
  }
}

/** The types of tracks by their handlers: sound, pictures, and what is neither, such as subtitles. */
const HANDLERS: Readonly<Record<TrackKind, readonly string[]>> = {
  audio: ["soun"],
  opus: [],
  video: ["vide", "auxv", "pict"],
  other: [
    ...["hint", "meta", "text", "sbtl", "subt", "subp", "clcp", "tmcd"],
    ...["sdsm", "odsm", "ocsm", "ipsm", "mp7m", "m7sm", "mjsm"],
  ],
};

/**
 * Yields the tracks of MP4, 3GP and QuickTime, except those with chapters' titles and pictures.
 *
 * @throws {RangeError} When tracks may be missing, or may have pictures.
 */
async function* isoTracks(content: WindowedBlob): AsyncGenerator<TrackKind> {
  const read = async (at: number) => Buffer.from(await content.read(at, 4)).readUInt32BE();
  const trackKindAt = async (at: number) => {
    const type = Buffer.from(await content.read(at, 4)).toString("latin1");
    return TRACK_KINDS.find((kind) => HANDLERS[kind].includes(type));
  };
  const tracks: { id?: number; kind?: TrackKind | undefined }[] = [];
  const chapters = new Set<number>();
  let nextId = Infinity;
  let fault: unknown;
  try {
    for await (const { id, start, end } of partsOf(content, BOXES)) {
      const track = tracks.at(-1) ?? {};
      if (id === "mvhd") nextId = await read(end - 4);
      else if (id === "trak") tracks.push({});
      else if (id === "tkhd") {
        const version = await read(start) >>> 24; // 1 has times of 64 bits before the identifier
        track.id = await read(start + (version === 1 ? 20 : 12));
      } else if (id === "chap") {
        for (let at = start; at < end; at += 4) chapters.add(await read(at));
      } else if (id === "hdlr") track.kind = await trackKindAt(start + 8);
    }
  } catch (error) {
    fault = error;
  }
  const kinds = tracks.filter(({ id = 0 }) => !chapters.has(id)).map(({ kind }) => kind);
  yield* kinds.filter((kind) => kind !== undefined);
  if (kinds.includes(undefined)) throw new RangeError("A track of a kind that is not known");
  // Identifiers are unique and less than `nextId`, so there can be no other tracks.
  const isComplete = fault instanceof RangeError && tracks.length === nextId - 1;
  if (fault !== undefined && !isComplete) throw fault;
}

/** Identifiers of Matroska's elements (RFC 9559 §5.1), in hexadecimal digits. */
export const SEGMENT = "18538067";
const TRACKS = "1654ae6b";
const TRACK_ENTRY = "ae";
const TRACK_TYPE = "83";

/** The nesting of elements (RFC 8794). */
export const ELEMENTS: typeof BOXES = {
  list: TRACKS,
  entered: [SEGMENT, TRACKS, TRACK_ENTRY],
  isExact: false,
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
  isExact: false,
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

/** The nesting of chunks in AVI. A list goes by its type. The header lists all streams. */
const CHUNKS: typeof BOXES = {
  list: "hdrl",
  entered: ["AVI ", "hdrl", "strl"],
  isExact: false,
  parse(bytes, rest) {
    const isList = /^(?:RIFF|LIST)/.test(bytes.toString("latin1"));
    const headerLength = isList ? 12 : 8;
    if (rest < headerLength) throw new RangeError("Not a chunk");
    const length = bytes.readUInt32LE(4);
    const end = 8 + length + length % 2; // padded
    const idAt = isList ? 8 : 0;
    return {
      id: bytes.toString("latin1", idAt, idAt + 4),
      headerLength,
      length: end - headerLength,
    };
  },
};

/** The kind of a stream for each type of its header. `iavs` is DV, with its sound. */
const AVI_STREAM_TYPES: Readonly<Record<string, TrackKind>> = {
  auds: "audio",
  vids: "video",
  iavs: "video",
};

async function* aviTracks(content: WindowedBlob): AsyncGenerator<TrackKind> {
  for await (const { id, start } of partsOf(content, CHUNKS)) {
    if (id !== "strh") continue;
    const type = Buffer.from(await content.read(start, 4)).toString("latin1");
    yield AVI_STREAM_TYPES[type] ?? "other";
  }
}

/** The bytes in which to look for a picture where the list of tracks may be wrong. */
const SEARCHED_BYTES = 256 * 1024;

/**
 * Yields the tracks of FLV (Adobe Flash Video File Format 10.1, annex E). Flags name them, but many
 * programs that record live streams set both, so video counts only if it is there.
 *
 * @throws {RangeError} When the flags name video that is not there, or there is no sound.
 */
async function* flvTracks(content: WindowedBlob): AsyncGenerator<TrackKind> {
  const header = Buffer.from(await content.read(0, 9));
  let hasSound = false;
  for (let at = header.readUInt32BE(5) + 4; at < SEARCHED_BYTES;) {
    const tag = Buffer.from(await content.read(at, 11));
    if (tag.length < 11) break;
    const type = tag.readUInt8(0) & 0x1f; // without the flag of encryption
    if (type === 9) {
      yield "video";
      return;
    }
    if (type !== 8 && type !== 18) throw new RangeError("Not a tag");
    hasSound ||= type === 8;
    at += tag.length + tag.readUIntBE(1, 3) + 4;
  }
  const isAudioOnly = (header.readUInt8(4) & 5) === 4;
  if (!isAudioOnly || !hasSound) throw new RangeError("The picture may come later");
  yield "audio";
}

/** Start codes of MPEG (ISO/IEC 13818-1 table 2-22, 13818-2 table 6-1). */
const VIDEO_SEQUENCE = 0xb3;
const PROGRAM_END = 0xb9;
const PACK_HEADER = 0xba;
const SYSTEM_HEADER = 0xbb;
const ALL_AUDIO = 0xb8;
const ALL_VIDEO = 0xb9;
const PRIVATE_STREAM_1 = 0xbd; // AC-3 and the like, or subtitles

/** The bytes of a sector of a Video CD, whose rest may be zeros. */
const SECTOR_BYTES = 2324;

/**
 * Yields the tracks of an MPEG program stream (ISO/IEC 13818-1 §2.5.3, 11172-1), or that of a video
 * stream alone. A system header lists the tracks, but on a Video CD each has a header of its own.
 *
 * @throws {RangeError} When there may be video that is not listed.
 */
async function* mpegTracks(content: WindowedBlob): AsyncGenerator<TrackKind> {
  const listed: TrackKind[] = [];
  const end = Math.min(content.size, SEARCHED_BYTES);
  for (let at = 0; at < end;) {
    const bytes = Buffer.alloc(14); // as long as a pack header, with zeros after the end of the file
    bytes.set(await content.read(at, bytes.length));
    const code = bytes.readUIntBE(0, 3) === 1 ? bytes.readUInt8(3) : 0;
    if (code === VIDEO_SEQUENCE || streamKind(code) === "video") {
      yield "video";
      return;
    }
    const isPart = code >= PROGRAM_END;
    const length = isPart ? mpegLength(code, bytes) : await zerosAt(content, at);
    if (code === SYSTEM_HEADER) {
      listed.push(...listedTracks(Buffer.from(await content.read(at, length))));
    }
    const isDamaged = length === 0;
    if (isDamaged || streamKind(code) === "other") listed.push("other");
    if (isDamaged) break;
    at += length;
  }
  yield* listed;
  if (listed.includes("other")) throw new RangeError("There may be video");
}

/** Returns the length of what a start code begins. */
function mpegLength(code: number, bytes: Buffer): number {
  if (code === PROGRAM_END) return 4;
  if (code !== PACK_HEADER) return 6 + bytes.readUInt16BE(4);
  const isMpeg1 = bytes.readUInt8(4) >> 4 === 2;
  return isMpeg1 ? 12 : 14 + (bytes.readUInt8(13) & 7);
}

/** Returns the number of zeros up to the next start code, or 0 if something else is here. */
async function zerosAt(content: WindowedBlob, at: number): Promise<number> {
  const bytes = await content.read(at, SECTOR_BYTES);
  const zeros = bytes.findIndex((byte) => byte !== 0);
  if (zeros === -1) return bytes.length;
  return bytes[zeros] === 1 ? Math.max(0, zeros - 2) : 0;
}

/** Returns the kind of a stream by its code, if that names one: `other` may be VC-1 or MPEG-4. */
function streamKind(code: number): TrackKind | undefined {
  return code >= 0xf0 ? "other" : code >= 0xe0 ? "video" : code >= 0xc0 ? "audio" : undefined;
}

/** Returns the tracks that a system header lists (ISO/IEC 13818-1 §2.5.3.5). */
function listedTracks(header: Buffer): TrackKind[] {
  const tracks: TrackKind[] = [];
  const hasAudio = (header.readUInt8(9) >> 2) > 0;
  const hasVideo = (header.readUInt8(10) & 0x1f) > 0;
  for (let at = 12; (header[at] ?? 0) >= 0x80; at += 3) {
    const code = header.readUInt8(at);
    const kind = streamKind(code);
    if (kind !== undefined) tracks.push(kind);
    // A DVD lists these whether it has any or not.
    else if (code === ALL_VIDEO && hasVideo) tracks.push("video");
    else if ((code === ALL_AUDIO || code === PRIVATE_STREAM_1) && hasAudio) tracks.push("audio");
  }
  const isComplete = !hasVideo || tracks.includes("video");
  return isComplete ? tracks : [...tracks, "other"];
}
