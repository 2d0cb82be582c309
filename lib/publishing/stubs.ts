/** Files that are only beginnings: stubs, and uploads that were cut before any sound or picture. */

import { Buffer } from "node:buffer";
import type { WindowedBlob } from "./bytes.ts";
import { detectFrames, searchFrames } from "./frames.ts";
import { BOXES, ELEMENTS, partsOf, SEGMENT } from "./tracks.ts";

/** Tells whether content has what its headers announce. Throws a `RangeError` if it was cut. */
type Check = (content: WindowedBlob) => Promise<boolean>;

/** Enough for the headers of most formats, up to the first bytes of their sound. */
const BEGINNING_BYTES = 256;

const beginningOf = async (content: WindowedBlob, length = BEGINNING_BYTES) =>
  Buffer.from(await content.read(0, length));

/** Checks the first bytes, in hexadecimal digits. */
const begins = (pattern: RegExp): Check => async (content) =>
  pattern.test((await beginningOf(content)).toString("hex"));

/** Checks that content goes on where its headers end. */
const exceeds = (lengthOf: (headers: Buffer) => number): Check => async (content) =>
  content.size > lengthOf(await beginningOf(content));

/** A format in chunks. */
interface Chunked {
  /** Where the first begins. */
  readonly start: number;
  readonly headerBytes: number;
  /** Returns the bytes after a header, up to the next. */
  readonly lengthOf: (header: Buffer) => number;
  /** The chunks that every file has. */
  readonly needed: readonly string[];
  /** The one of them that has the sound, and what precedes it there. */
  readonly sound: string;
  readonly preamble?: number;
}

/** Checks that all chunks are there that are needed, and that there is sound. */
const hasChunks = (chunked: Chunked): Check => async (content) => {
  const { start, headerBytes, lengthOf, needed, sound, preamble = 0 } = chunked;
  const missing = new Set([...needed, sound]);
  for (let at = start; missing.size > 0;) {
    const header = Buffer.from(await content.read(at, headerBytes));
    if (header.length < headerBytes) return false;
    const id = header.toString("latin1", 0, 4);
    at += headerBytes;
    if (id === sound && at + preamble >= content.size) return false;
    missing.delete(id);
    at += Math.max(0, lengthOf(header)); // below 0 if it is unknown, for the last
  }
  return true;
};

const even = (length: number) => length + length % 2;
const RIFF = {
  ...{ start: 12, headerBytes: 8, lengthOf: (it: Buffer) => even(it.readUInt32LE(4)) },
  ...{ needed: ["fmt "], sound: "data" },
};
const DFF = {
  ...{ start: 16, headerBytes: 12, lengthOf: (it: Buffer) => even(Number(it.readBigUInt64BE(4))) },
  needed: ["PROP"],
};

/** Checks that a container has a part in which sound and pictures are. */
const hasPart = (nesting: typeof BOXES, ...ids: string[]): Check => async (content) => {
  const outer = { ...nesting, list: "", entered: [SEGMENT] };
  for await (const { id, start, end } of partsOf(content, outer)) {
    if (ids.includes(id) && start < Math.min(end, content.size)) return true;
  }
  return false;
};
const hasMovieData = hasPart(BOXES, "mdat", "imda");
const hasCluster = hasPart(ELEMENTS, "1f43b675"); // RFC 9559 §5.1.3

/** Checks that a frame follows the metadata, of which a picture may be a part (RFC 9639 §8). */
async function hasFlacFrame(content: WindowedBlob): Promise<boolean> {
  if (!await begins(/^664c6143[08]0000022.{68}/)(content)) return false;
  let at = 4;
  for (let isLast = false; !isLast;) {
    const header = Buffer.from(await content.read(at, 4));
    isLast = header.readUInt8() >= 0x80;
    at += 4 + header.readUIntBE(1, 3);
  }
  return at < content.size;
}

/** The longest page of Ogg (RFC 3533 §6). */
const PAGE_BYTES = 65_307;

/** Checks the last pages. Only those of headers have no position in the sound, or a position of 0. */
async function hasOggSound(content: WindowedBlob): Promise<boolean> {
  const tail = await content.read(Math.max(0, content.size - 2 * PAGE_BYTES), 2 * PAGE_BYTES);
  return /OggS\0.(?!\0{8}|\xff{8}).{8}/s.test(Buffer.from(tail).toString("latin1"));
}

/** Checks that there is a slice of a picture, or a packet of any stream that may be a track. */
async function hasMpegData(content: WindowedBlob): Promise<boolean> {
  const beginning = await beginningOf(content, 64 * 1024);
  for (let at = -1; (at = beginning.indexOf("\0\0\x01", at + 1, "latin1")) >= 0;) {
    const code = beginning[at + 3] ?? 0;
    if (code > 0 && code < 0xb0 || code === 0xbd || code >= 0xc0) return true;
  }
  return false;
}

const VOC = Buffer.from("Creative Voice File").toString("hex");

const CHECKS: Readonly<Record<string, Check>> = {
  // A tag that was cut is one of sound, too.
  "audio/mpeg": async (content) =>
    (await detectFrames(content) ?? await searchFrames(content)) !== undefined,
  "audio/flac": hasFlacFrame,
  "audio/wavpack": begins(/^7776706b.{10}04.{46}/), // "wvpk", and the rest of a block's header
  "audio/ape": begins(/^4d414320..0[ef].{52}/), // "MAC ", and a version, 3.8 to 4
  "audio/amr": begins(/^2321414d52(?:2d5742)?0a../), // "#!AMR" or "#!AMR-WB", and a frame (RFC 4867 §5)
  "audio/x-voc": begins(new RegExp(`^${VOC}1a.{12}(?!00).{10}`)), // a block that is not the last
  "audio/x-musepack": begins(/^(?:4d502b.{52}|4d50434b(?:..)*4150..)/), // "MPCK", and a packet "AP"
  "audio/basic": exceeds((it) => it.readUInt32BE(4)),
  "audio/x-xm": exceeds((it) => 60 + it.readUInt32LE(60)),
  "audio/x-it": exceeds((it) =>
    192 + it.readUInt16LE(32) +
    4 * (it.readUInt16LE(34) + it.readUInt16LE(36) + it.readUInt16LE(38))
  ),
  "audio/x-s3m": exceeds((it) =>
    96 + it.readUInt16LE(32) + 2 * (it.readUInt16LE(34) + it.readUInt16LE(36))
  ),
  "audio/wav": hasChunks(RIFF),
  "audio/qcelp": hasChunks(RIFF),
  "audio/aiff": hasChunks({
    ...{ ...RIFF, lengthOf: (it) => even(it.readUInt32BE(4)) },
    ...{ needed: ["COMM"], sound: "SSND", preamble: 8 },
  }),
  "audio/midi": hasChunks({
    ...{ start: 0, headerBytes: 8, lengthOf: (it) => it.readUInt32BE(4) },
    ...{ needed: ["MThd"], sound: "MTrk" },
  }),
  "audio/x-caf": hasChunks({
    ...{ start: 8, headerBytes: 12, lengthOf: (it) => Number(it.readBigUInt64BE(4)) },
    ...{ needed: ["desc"], sound: "data", preamble: 4 },
  }),
  "audio/x-dsf": hasChunks({
    ...{ start: 0, headerBytes: 12, lengthOf: (it) => Number(it.readBigUInt64LE(4)) - 12 },
    ...{ needed: ["DSD ", "fmt "], sound: "data" },
  }),
  "audio/x-dff": async (content) =>
    await hasChunks({ ...DFF, sound: "DSD " })(content) ||
    await hasChunks({ ...DFF, sound: "DST " })(content), // compressed
  "video/mp4": hasMovieData,
  "video/3gpp": hasMovieData,
  "video/3gpp2": hasMovieData,
  "video/quicktime": hasMovieData,
  "video/mj2": hasMovieData,
  "video/webm": hasCluster,
  "video/x-matroska": hasCluster,
  "video/ogg": hasOggSound,
  "video/mpeg": hasMpegData,
};

/** Tells whether content that is there whole ends before any of its sound or pictures. */
export async function isStub(content: WindowedBlob, type: string): Promise<boolean> {
  try {
    const check = CHECKS[type];
    return check !== undefined && !await check(content);
  } catch (error) {
    if (error instanceof RangeError) return true; // cut, or with more parts than any real file has
    throw error;
  }
}
