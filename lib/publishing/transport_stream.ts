/**
 * The streams of an MPEG transport stream (ISO/IEC 13818-1 §2.4), in packets of 188 bytes, or of 192
 * as on Blu-ray. A table lists its programs, and each program has a map that lists its streams.
 */

import { Buffer } from "node:buffer";
import type { WindowedBlob } from "./bytes.ts";

/** The kind of a stream. `other` may have pictures. */
type StreamKind = "audio" | "video" | "other";

/** The bytes to read. Tables and maps are repeated at least every half second. */
const SEARCHED_BYTES = 256 * 1024;

const PACKET_BYTES = 188;
const SYNC = 0x47;

/** The maximum length of a section, with its header (§2.4.4). */
const MAX_SECTION_BYTES = 1024;

/** The packet identifier, and the tables in sections with it. */
const PROGRAMS_PID = 0;
const PROGRAMS_TABLE = 0;
const MAP_TABLE = 2;

/** Types of streams that are audio (table 2-34, ATSC A/53 and A/107, and as HLS encrypts them). */
const AUDIO_TYPES = [
  ...[0x03, 0x04, 0x0f, 0x11, 0x1c, 0x2d, 0x2e],
  ...[0x81, 0x87, 0x88, 0x8a, 0xc1, 0xc2, 0xcf],
];

/** Types that are audio on Blu-ray only. */
const BLU_RAY_AUDIO_TYPES = [0x80, 0x82, 0x83, 0x84, 0x85, 0x86, 0xa1, 0xa2];

/** Types that are video (table 2-34, GY/T, SMPTE RP 227, and as HLS encrypts them). */
const VIDEO_TYPES = [
  ...[0x01, 0x02, 0x10, 0x1b, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x27, 0x28, 0x29],
  ...[0x2a, 0x2b, 0x31, 0x32, 0x33, 0x34, 0x35, 0x42, 0xd1, 0xd2, 0xd4, 0xdb, 0xea],
];

/** Types of metadata, such as titles, and of marks for advertisements (SCTE 35). */
const IGNORED_TYPES = [0x15, 0x86];

/** The type of data that only descriptors name. */
const PRIVATE_DATA = 0x06;

const REGISTRATION = 0x05;
/** Registered names of formats (SMPTE registration authority). */
const BLU_RAY = "HDMV";
const AUDIO_NAMES = ["AC-3", "EAC3", "AC-4", "DTS1", "DTS2", "DTS3", "Opus", "BSSD", "mlpa"];
const VIDEO_NAMES = ["AV01", "VP08", "VP09", "HEVC", "VC-1", "drac"];

/** Descriptors of AC-3, E-AC-3, DTS and AAC (ETSI EN 300 468 §6.1), and of DTS-HD and AC-4 (§6.3). */
const AUDIO_DESCRIPTORS = [0x6a, 0x7a, 0x7b, 0x7c];
const EXTENSION_DESCRIPTOR = 0x7f;
const AUDIO_EXTENSIONS = [0x0e, 0x0f, 0x15, 0x21];

/**
 * Yields the streams that the maps of all programs list, if they are known as audio or video.
 *
 * @throws {RangeError} When there may be others.
 */
export async function* transportStreams(
  content: WindowedBlob,
): AsyncGenerator<"audio" | "video"> {
  const bytes = Buffer.from(await content.read(0, SEARCHED_BYTES));
  const programs = new Map<number, number>(); // the packet identifier of the map of each
  const mapped = new Set<number>();
  const parts = new Set<number>(); // of the table of programs
  let partCount = Infinity;
  let isUnclear = false;
  for (const { pid, section, isPicture } of sectionsOf(bytes, programs)) {
    if (isPicture) isUnclear = true; // unless a map lists it
    if (section === undefined) continue;
    if (pid === PROGRAMS_PID) {
      if (section.readUInt8() !== PROGRAMS_TABLE) continue;
      parts.add(section.readUInt8(6));
      partCount = section.readUInt8(7) + 1;
      for (const [program, mapPid] of programsIn(section)) programs.set(program, mapPid);
    } else if (section.readUInt8() === MAP_TABLE) {
      mapped.add(section.readUInt16BE(3));
      for (const kind of streamsIn(section)) {
        if (kind === "other") isUnclear = true;
        else yield kind;
      }
    }
  }
  const isComplete = parts.size >= partCount && [...programs.keys()].every((it) => mapped.has(it));
  if (!isComplete || isUnclear) throw new RangeError("There may be other streams");
}

interface Packet {
  readonly pid: number;
  /** Whether a section or a packet of a stream begins here. */
  readonly isStart: boolean;
  readonly payload: Buffer;
}

/** Yields the packets that can be read. After damage, it looks for the next. */
function* packetsIn(bytes: Buffer): Generator<Packet> {
  const prefix = bytes[0] === SYNC && bytes[PACKET_BYTES] === SYNC ? 0 : 4; // a time, on Blu-ray
  const stride = prefix + PACKET_BYTES;
  let isLost = false;
  for (let at = prefix; at + PACKET_BYTES <= bytes.length;) {
    const isFollowed = (bytes[at + stride] ?? SYNC) === SYNC;
    isLost = bytes[at] !== SYNC || isLost && !isFollowed;
    if (isLost) {
      at++;
      continue;
    }
    const packet = bytes.subarray(at, at + PACKET_BYTES);
    at += stride;
    const flags = packet.readUInt16BE(1);
    const control = packet.readUInt8(3);
    const isReadable = (flags & 0x8000) === 0 && (control & 0xc0) === 0; // whole, and not encrypted
    if (!isReadable || (control & 0x10) === 0) continue;
    const start = 4 + ((control & 0x20) === 0 ? 0 : 1 + packet.readUInt8(4)); // the adaptation field
    const payload = packet.subarray(start);
    yield { pid: flags & 0x1fff, isStart: (flags & 0x4000) !== 0, payload };
  }
}

/**
 * Yields the sections of the table of programs, and of the maps that are known by then. A section is
 * current, and its checksum right: no other may be read. Also tells where a picture begins.
 *
 * @param programs The packet identifiers of maps. The caller adds those that the table lists.
 */
function* sectionsOf(bytes: Buffer, programs: ReadonlyMap<number, number>) {
  const unfinished = new Map<number, Buffer>();
  for (const { pid, isStart, payload } of packetsIn(bytes)) {
    if (pid !== PROGRAMS_PID && ![...programs.values()].includes(pid)) {
      const isPicture = isStart && /^000001e/.test(payload.toString("hex", 0, 4));
      if (isPicture) yield { pid, isPicture };
      continue;
    }
    const pointer = isStart ? 1 + (payload[0] ?? 0) : 0; // to the first section that begins here
    const before = unfinished.get(pid);
    const end = isStart ? pointer : payload.length;
    let rest: Buffer | undefined = before &&
      Buffer.concat([before, payload.subarray(isStart ? 1 : 0, end)]);
    for (const part of isStart ? [rest, payload.subarray(pointer)] : [rest]) {
      rest = part;
      while (rest !== undefined && rest.length >= 3 && rest[0] !== 0xff) { // the rest is stuffing
        const length = 3 + (rest.readUInt16BE(1) & 0xfff);
        if (length > rest.length) break;
        const section = rest.subarray(0, length);
        rest = rest.subarray(length);
        if (isValid(section)) yield { pid, section };
      }
    }
    if (rest === undefined || rest.length > MAX_SECTION_BYTES) unfinished.delete(pid);
    else unfinished.set(pid, rest);
  }
}

/** Whether a section is current, and as it was sent. */
function isValid(section: Buffer): boolean {
  const isLong = section.length >= 12 && section.length <= MAX_SECTION_BYTES;
  return isLong && (section.readUInt8(5) & 1) === 1 && crcOf(section) === 0;
}

/** Returns the checksum of a section (§2.4.4, annex A): 0 for one that ends with its own. */
function crcOf(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) crc = crc << 1 ^ (crc < 0 ? 0x04c11db7 : 0);
  }
  return crc;
}

/** Yields the programs that a section lists (§2.4.4.3), each with its map's packet identifier. */
function* programsIn(section: Buffer): Generator<readonly [program: number, pid: number]> {
  for (let at = 8; at + 4 <= section.length - 4; at += 4) {
    const program = section.readUInt16BE(at);
    if (program !== 0) yield [program, section.readUInt16BE(at + 2) & 0x1fff]; // 0 is the network
  }
}

/** Yields the streams that a map lists (§2.4.4.8). */
function* streamsIn(map: Buffer): Generator<StreamKind> {
  const end = map.length - 4;
  const start = 12 + (map.readUInt16BE(10) & 0xfff);
  const isBluRay = descriptorsIn(map.subarray(12, start)).some(isNamed(BLU_RAY));
  let at = start;
  for (; at + 5 <= end;) {
    const length = map.readUInt16BE(at + 3) & 0xfff;
    const type = map.readUInt8(at);
    const descriptors = descriptorsIn(map.subarray(at + 5, at + 5 + length));
    if (type === PRIVATE_DATA) yield privateKind(descriptors);
    else if (AUDIO_TYPES.includes(type)) yield "audio";
    else if (VIDEO_TYPES.includes(type)) yield "video";
    else if (isBluRay && BLU_RAY_AUDIO_TYPES.includes(type)) yield "audio";
    else if (!IGNORED_TYPES.includes(type)) yield "other";
    at += 5 + length;
  }
  if (at !== end || map.readUInt8(7) !== 0) yield "other"; // not all of the map was read
}

interface Descriptor {
  readonly tag: number;
  readonly content: Buffer;
}

function descriptorsIn(bytes: Buffer): Descriptor[] {
  const descriptors: Descriptor[] = [];
  for (let at = 0; at + 2 <= bytes.length;) {
    const end = at + 2 + bytes.readUInt8(at + 1);
    descriptors.push({ tag: bytes.readUInt8(at), content: bytes.subarray(at + 2, end) });
    at = end;
  }
  return descriptors;
}

/** Tells whether a descriptor registers one of these names. */
const isNamed = (...names: readonly string[]) => ({ tag, content }: Descriptor) =>
  tag === REGISTRATION && names.includes(content.toString("latin1", 0, 4));

/** Returns the kind of private data, which may be AC-3 or Opus, AV1 or VP9, or subtitles. */
function privateKind(descriptors: readonly Descriptor[]): StreamKind {
  if (descriptors.some(isNamed(...VIDEO_NAMES))) return "video";
  const isAudio = ({ tag, content }: Descriptor) =>
    AUDIO_DESCRIPTORS.includes(tag) ||
    tag === EXTENSION_DESCRIPTOR && AUDIO_EXTENSIONS.includes(content[0] ?? 0);
  if (descriptors.some(isNamed(...AUDIO_NAMES)) || descriptors.some(isAudio)) return "audio";
  return "other";
}
