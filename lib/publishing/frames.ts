/**
 * The frames of MPEG audio (MP3, MP2 and MP1), AAC in ADTS, and AC-3. The header of one frame is too
 * short to prove anything, so only runs count: two frames or more that agree, and follow one another
 * without a gap. These prove a format:
 *
 * - a run at the beginning, if it has eight frames, or if nothing follows it,
 * - a run after stray bytes, if it has eight frames, and nothing follows it,
 * - any run of 16 kB.
 */

import { Buffer } from "node:buffer";
import type { WindowedBlob } from "./bytes.ts";

/** A recording may have a gap after so many frames, where it was spliced. */
const RUN_FRAMES = 8;

/** Shorter runs occur in damaged films. */
const RUN_BYTES = 16 * 1024;

/** Where a run must begin: past the rest of a frame that was cut, which is less than 3 kB. */
const SEARCHED_BYTES = 4 * 1024;

/** The bytes to read: a run that begins late, and the rest of its last frame. */
const READ_BYTES = SEARCHED_BYTES + RUN_BYTES + 8 * 1024;

/** The longest header, that of ADTS. */
const HEADER_BYTES = 7;

/** Media types of content that consists of frames only. */
const FRAME_TYPES = ["audio/mpeg", "audio/aac", "audio/vnd.dolby.dd-raw"] as const;
type FrameType = typeof FRAME_TYPES[number];

interface FrameHeader {
  readonly type: FrameType;
  /** What all frames have in common: the version, the layer or profile, and the sampling rate. */
  readonly key: number;
  /** Bytes, or 0 in the free format, which does not state it. */
  readonly length: number;
  /** The bytes that this frame has in addition to others. */
  readonly padding: number;
}

/** Tells whether a media type is one that only frames prove. */
export function consistsOfFrames(type: string): boolean {
  return FRAME_TYPES.some((known) => known === type);
}

/** Returns the media type of content that begins with frames. */
export async function detectFrames(content: WindowedBlob): Promise<FrameType | undefined> {
  const bytes = Buffer.from(await content.read(0, READ_BYTES));
  const first = parseHeader(bytes, 0);
  if (first === undefined) return undefined;
  if (first.length === 0) return isFreeFormat(bytes, first) ? first.type : undefined;
  const { count, length, isToEnd } = runAt(bytes, 0, first);
  const isProof = count >= RUN_FRAMES || length >= RUN_BYTES || isToEnd && count >= 2;
  return isProof ? first.type : undefined;
}

/** Returns the media type of content whose frames begin after padding or stray bytes. */
export async function searchFrames(content: WindowedBlob): Promise<FrameType | undefined> {
  const beginning = await content.read(0, READ_BYTES);
  const padding = beginning.findIndex((byte) => byte !== 0);
  const start = Math.max(0, padding - 2); // two zeros may begin a start code
  const bytes = Buffer.from(await content.read(start, READ_BYTES));
  for (let at = 0; at < SEARCHED_BYTES; at++) {
    if (isContainer(bytes, at)) return undefined; // whose parts may be longer than a run
    const first = parseHeader(bytes, at);
    if (first === undefined || first.length === 0) continue;
    const { count, length, isToEnd } = runAt(bytes, at, first);
    if (length >= RUN_BYTES || isToEnd && count >= RUN_FRAMES) return first.type;
  }
  return undefined;
}

/** Whether frames in the free format follow one another, at any distance that they agree on. */
function isFreeFormat(bytes: Buffer, first: FrameHeader): boolean {
  for (let next = HEADER_BYTES; next < SEARCHED_BYTES; next++) {
    const { count, length, isToEnd } = runAt(bytes, 0, first, next - first.padding);
    if (length >= RUN_BYTES || isToEnd && count >= 3) return true;
  }
  return false;
}

/** Start codes of a pack and of a system header in an MPEG program stream, and the boxes of MP4. */
const CONTAINER_CODES: readonly number[] = [
  ...[0x1ba, 0x1bb],
  ...["ftyp", "styp", "sidx", "moof", "traf", "trun", "moov", "mdat"]
    .map((box) => Buffer.from(box).readUInt32BE()),
];

/** Whether a part of a container is here, in which sound may be interleaved with pictures. */
function isContainer(bytes: Buffer, at: number): boolean {
  return at + 4 <= bytes.length && CONTAINER_CODES.includes(bytes.readUInt32BE(at));
}

/** Frames that agree, and follow one another without a gap. */
interface Run {
  /** The number of whole frames. */
  readonly count: number;
  /** Their bytes, up to {@linkcode RUN_BYTES} and the rest of a frame. */
  readonly length: number;
  /** Whether nothing else follows but the beginning of a frame, or a tag. */
  readonly isToEnd: boolean;
}

/**
 * Returns the run that begins here.
 *
 * @param freeLength The bytes of a frame without padding in the free format.
 */
function runAt(bytes: Buffer, start: number, first: FrameHeader, freeLength = 0): Run {
  let [at, count] = [start, 0];
  const run = (isToEnd: boolean): Run => ({ count, length: at - start, isToEnd });
  while (at - start < RUN_BYTES) {
    if (at + HEADER_BYTES > bytes.length) return run(true);
    const header = parseHeader(bytes, at);
    if (header?.key !== first.key) return run(isTrailingTag(bytes, at));
    const end = at + (header.length || freeLength + header.padding);
    if (end > bytes.length) return run(true);
    at = end;
    count++;
  }
  return run(false);
}

function isTrailingTag(bytes: Buffer, at: number): boolean {
  return /^(?:TAG|ID3|APETAGEX|LYRICSBEGIN)/.test(bytes.toString("latin1", at, at + 11));
}

/** Parses the header of a frame, if one is here. */
function parseHeader(bytes: Buffer, at: number): FrameHeader | undefined {
  if (at + HEADER_BYTES > bytes.length) return undefined;
  const sync = bytes.readUInt16BE(at);
  if (sync === 0x0b77) return parseAc3(bytes, at);
  if ((sync & 0xfff6) === 0xfff0) return parseAdts(bytes, at);
  return sync >= 0xffe0 ? parseMpeg(bytes, at) : undefined;
}

/** Bit rates of AC-3 in kbit/s, by half the index in a header (ETSI TS 102 366 table 4.13). */
const AC3_RATES = [
  ...[32, 40, 48, 56, 64, 80, 96, 112, 128, 160],
  ...[192, 224, 256, 320, 384, 448, 512, 576, 640],
];

/** ETSI TS 102 366 §4.3 and E.1.2.2. */
function parseAc3(bytes: Buffer, at: number): FrameHeader | undefined {
  const type = "audio/vnd.dolby.dd-raw";
  const version = bytes.readUInt8(at + 5) >> 3;
  if (version > 16) return undefined;
  if (version > 10) { // E-AC-3
    return { type, key: version, length: 2 * (bytes.readUInt16BE(at + 2) & 0x7ff) + 2, padding: 0 };
  }
  const samplingRate = bytes.readUInt8(at + 4) >> 6;
  const index = bytes.readUInt8(at + 4) & 0x3f;
  const rate = AC3_RATES[index >> 1];
  if (samplingRate > 2 || rate === undefined) return undefined;
  const words = [2 * rate, Math.floor(rate * 960 / 441) + index % 2, 3 * rate][samplingRate] ?? 0;
  return { type, key: samplingRate << 5 | version, length: 2 * words, padding: 0 };
}

/** ISO/IEC 13818-7 §6.2. */
function parseAdts(bytes: Buffer, at: number): FrameHeader | undefined {
  const fixed = bytes.readUInt16BE(at + 1) & 0xfffc;
  const rate = fixed >> 2 & 0xf;
  const length = bytes.readUIntBE(at + 3, 3) >> 5 & 0x1fff;
  if (rate > 12 || length <= HEADER_BYTES) return undefined;
  return { type: "audio/aac", key: fixed, length, padding: 0 };
}

/** Bit rates in kbit/s, by the index in a header (ISO/IEC 11172-3 §2.4.2.3, 13818-3 §2.4.2.3). */
const LAYER_1 = [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448];
const LAYER_2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384];
const LAYER_3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const LOW_LAYER_1 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256];
const LOW_LAYER_2_3 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/** Sampling rates of MPEG-1 in Hz. MPEG-2 has half of each, and MPEG-2.5 a quarter. */
const SAMPLING_RATES = [44_100, 48_000, 32_000];

/** ISO/IEC 11172-3 §2.4.1.3, and 13818-3. MPEG-2.5 extends them to lower sampling rates. */
function parseMpeg(bytes: Buffer, at: number): FrameHeader | undefined {
  const second = bytes.readUInt8(at + 1);
  const third = bytes.readUInt8(at + 2);
  const version = second >> 3 & 3; // 3 is MPEG-1, 2 MPEG-2, 0 MPEG-2.5
  const layer = 4 - (second >> 1 & 3);
  const samplingRate = SAMPLING_RATES[third >> 2 & 3];
  const bitRates = version === 3
    ? [LAYER_1, LAYER_2, LAYER_3][layer - 1]
    : [LOW_LAYER_1, LOW_LAYER_2_3, LOW_LAYER_2_3][layer - 1];
  const bitRate = bitRates?.[third >> 4];
  if (version === 1 || samplingRate === undefined || bitRate === undefined) return undefined;

  const slotBytes = layer === 1 ? 4 : 1;
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1152;
  const hertz = version === 3 ? samplingRate : version === 2 ? samplingRate / 2 : samplingRate / 4;
  const slots = Math.floor(samples / 8 / slotBytes * bitRate * 1000 / hertz);
  const padding = (third >> 1 & 1) * slotBytes;
  return {
    type: "audio/mpeg",
    key: (second & 0xfe) << 8 | third & 0x0c | (bitRate === 0 ? 1 : 0),
    length: bitRate === 0 ? 0 : slots * slotBytes + padding,
    padding,
  };
}
