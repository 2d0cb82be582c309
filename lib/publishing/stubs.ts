/** Files of sound that are only beginnings: stubs, and uploads that were cut. */

import { Buffer } from "node:buffer";
import type { WindowedBlob } from "./bytes.ts";

const VOC = Buffer.from("Creative Voice File").toString("hex");

/** The first bytes without which there is no sound, in hexadecimal digits, by media type. */
const BEGINNINGS: Readonly<Record<string, RegExp>> = {
  "audio/flac": /^664c6143[08]0000022.{68}/, // "fLaC", and the block STREAMINFO (RFC 9639 §8.2)
  "audio/wavpack": /^7776706b.{10}04.{44}/, // "wvpk", and the rest of a block's header
  "audio/ape": /^4d414320..0[ef].{52}/, // "MAC ", and a version, 3.8 to 4
  "audio/amr": /^2321414d52(?:2d5742)?0a../, // "#!AMR" or "#!AMR-WB", and a frame (RFC 4867 §5)
  "audio/x-voc": new RegExp(`^${VOC}1a.{14}`), // a block
};

/** A format in chunks: where the first begins, how long each is, and which it must have. */
interface Chunked {
  readonly start: number;
  readonly headerBytes: number;
  /** Returns the bytes after a header, up to the next. */
  readonly lengthOf: (header: Buffer) => number;
  readonly needed: readonly string[];
}

const even = (length: number) => length + length % 2;
const riff = { start: 12, headerBytes: 8, lengthOf: (it: Buffer) => even(it.readUInt32LE(4)) };
const iff = { start: 12, headerBytes: 8, lengthOf: (it: Buffer) => even(it.readUInt32BE(4)) };

const CHUNKED: Readonly<Record<string, Chunked>> = {
  "audio/wav": { ...riff, needed: ["fmt ", "data"] },
  "audio/qcelp": { ...riff, needed: ["fmt ", "data"] },
  "audio/aiff": { ...iff, needed: ["COMM", "SSND"] },
  "audio/midi": {
    ...{ start: 0, headerBytes: 8, lengthOf: (it) => it.readUInt32BE(4) },
    needed: ["MThd", "MTrk"],
  },
  "audio/x-caf": {
    ...{ start: 8, headerBytes: 12, lengthOf: (it) => Number(it.readBigUInt64BE(4)) },
    needed: ["desc", "data"],
  },
  "audio/x-dsf": {
    ...{ start: 0, headerBytes: 12, lengthOf: (it) => Number(it.readBigUInt64LE(4)) - 12 },
    needed: ["DSD ", "fmt ", "data"],
  },
};

/** The longest of the beginnings. */
const BEGINNING_BYTES = 64;

/** Tells whether content that begins as a format of sound lacks what every file of it has. */
export async function isStub(content: WindowedBlob, type: string): Promise<boolean> {
  const beginning = BEGINNINGS[type];
  if (beginning !== undefined) {
    const bytes = Buffer.from(await content.read(0, BEGINNING_BYTES));
    return !beginning.test(bytes.toString("hex"));
  }
  const chunked = CHUNKED[type];
  return chunked !== undefined && !await hasChunks(content, chunked);
}

async function hasChunks(content: WindowedBlob, chunked: Chunked): Promise<boolean> {
  const { headerBytes, lengthOf } = chunked;
  const missing = new Set(chunked.needed);
  try {
    for (let at = chunked.start; missing.size > 0;) {
      const header = Buffer.from(await content.read(at, headerBytes));
      if (header.length < headerBytes) return false;
      missing.delete(header.toString("latin1", 0, 4));
      at += headerBytes + Math.max(0, lengthOf(header)); // below 0 if it is unknown, for the last
    }
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false; // more chunks than any real file has
    throw error;
  }
}
