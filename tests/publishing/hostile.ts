/** Files that are made to take their reader's time or memory, by name. */

import { Buffer } from "node:buffer";
import { gzipSync } from "node:zlib";
import {
  ascii,
  box,
  element,
  ENTRY,
  flv,
  MPEG2_PACK,
  packet,
  page,
  SEGMENT,
  TRACKS,
  uint32,
} from "./containers.ts";

const times = (count: number, part: Buffer) => Buffer.concat(Array(count).fill(part));

const FTYP = box("ftyp", ascii("isom\0\0\0\x01isom"));
const mp4 = (...parts: Buffer[]) => Buffer.concat([FTYP, ...parts]);
/** Samples without fields: as many as one wants, in no bytes. */
const trun = (samples: number) => box("trun", uint32(0), uint32(samples), uint32(0));
const TRAK = box("trak", box("mdia", box("hdlr", uint32(0), uint32(0), ascii("soun"))));
/** Boxes of one type in each other, whose lengths reach to the end. */
const nested = (type: string, depth: number) =>
  Buffer.concat(
    Array.from({ length: depth }, (_, at) => [uint32(8 * (depth - at)), ascii(type)]).flat(),
  );

const EBML = ascii("\x1a\x45\xdf\xa3\x87\x42\x82\x84webm");
const UNKNOWN_LENGTH = "\x01\xff\xff\xff\xff\xff\xff\xff";

const VORBIS = ascii("\x01vorbis");

/** An entry of a ZIP file. */
const entry = (name: string, flags: string, content: Buffer) => {
  const length = Buffer.alloc(8);
  length.writeUInt32LE(content.length);
  length.writeUInt32LE(content.length, 4);
  const lengths = flags === "\x08" ? Buffer.alloc(8) : length;
  const head = ascii(`PK\x03\x04\x14\0${flags}\0${"\0".repeat(10)}`);
  const names = ascii(`${String.fromCharCode(name.length)}\0\0\0${name}`);
  return Buffer.concat([head, lengths, names, content]);
};

/** A chunk of PNG. */
const chunk = (type: string, content: Buffer) =>
  Buffer.concat([uint32(content.length), ascii(type), content, uint32(0)]);
const PNG = [ascii("\x89PNG\r\n\x1a\n"), chunk("IHDR", Buffer.alloc(13))];

export const HOSTILE: Readonly<Record<string, () => Buffer>> = {
  "samples.mp4": () => mp4(box("moof", box("traf", trun(0xffff_ffff)))), // in 56 bytes
  "runs.mp4": () => mp4(box("moof", box("traf", times(2_200, trun(0xff_ffff))))),
  "boxes.mp4": () => mp4(times(300_000, box("free"))),
  "tracks.mp4": () => mp4(box("moov", times(60_000, TRAK))),
  "apart.mp4": () =>
    mp4(box("moov", times(100, Buffer.concat([TRAK, box("free", Buffer.alloc(99_999))])))),
  "chapters.mp4": () => mp4(box("moov", box("trak", box("tref", box("chap", Buffer.alloc(3e6)))))),
  "nested.mp4": () => mp4(nested("moov", 200_000)),
  "nested.mov": () => Buffer.concat([box("wide"), nested("trak", 200_000)]),
  "nested.webm": () => Buffer.concat([EBML, times(200_000, ascii(SEGMENT + UNKNOWN_LENGTH))]),
  "elements.webm": () =>
    Buffer.concat([EBML, element(SEGMENT, times(1_000_000, ascii("\xec\x80")))]),
  "tracks.webm": () =>
    Buffer.concat([
      EBML,
      element(SEGMENT, element(TRACKS, times(300_000, ascii(`${ENTRY}\x83\x83\x81\x02`)))),
    ]),
  "header.mkv": () =>
    Buffer.concat([
      ascii("\x1a\x45\xdf\xa3\x01\0\0\0\0\xff\xff\xff"),
      times(8_000_000, ascii("\xec\x80")),
    ]),
  "pages.ogg": () =>
    Buffer.concat([page(2, 1, VORBIS), times(82_000, page(1, 1, Buffer.alloc(1)))]),
  "streams.ogg": () =>
    Buffer.concat(Array.from({ length: 82_000 }, (_, at) => page(2, at, VORBIS))),
  "tags.mp3": () => times(300_000, ascii("ID3\x03\0\0\0\0\0\0")),
  "tags-apart.mp3": () =>
    times(300, Buffer.concat([ascii("ID3\x03\0\0\0\x04\0\0"), Buffer.alloc(65_536)])),
  "marks.txt": () => times(1_000_000, ascii("\xef\xbb\xbf")),
  "bomb.gz": () => gzipSync(Buffer.alloc(200_000_000)),
  "bomb-of-tags.gz": () => gzipSync(times(1_000_000, ascii("ID3\x03\0\0\0\0\0\0"))),
  "bomb-of-entries.gz": () => gzipSync(times(300_000, entry("a", "\0", Buffer.alloc(20)))),
  "bomb-of-scans.gz": () => gzipSync(Buffer.concat([entry("a", "\x08", Buffer.alloc(90_000_000))])),
  "bomb-of-boxes.gz": () => gzipSync(mp4(times(2_000_000, box("free")))),
  "entries.zip": () => times(100_000, entry("a", "\0", Buffer.alloc(20))),
  "scans.zip": () => times(2_000, entry("a", "\x08", Buffer.alloc(1_000))),
  "scan.zip": () => entry("mimetype", "\x08", Buffer.alloc(20_000_000, "PK\x07")),
  "far.zip": () => times(100, entry("a", "\0", Buffer.alloc(300_000))),
  "chunks.png": () => Buffer.concat([...PNG, times(200_000, chunk("tEXt", Buffer.alloc(0)))]),
  "far.png": () => Buffer.concat([...PNG, times(300, chunk("tEXt", Buffer.alloc(70_000)))]),
  "far.wma": () => {
    const object = Buffer.concat([Buffer.alloc(16, 7), Buffer.alloc(8)]);
    object.writeUInt32LE(100_000, 16);
    const head = Buffer.from(
      "3026b2758e66cf11a6d900aa0062ce6c00000000000000000000000000000102",
      "hex",
    );
    return Buffer.concat([
      head.subarray(0, 30),
      times(300, Buffer.concat([object, Buffer.alloc(99_976)])),
    ]);
  },
  "chunks.avi": () =>
    Buffer.concat([
      ascii("RIFF\xff\xff\xff\xffAVI LIST\xff\xff\xff\xffhdrl"),
      times(300_000, ascii("JUNK\0\0\0\0")),
    ]),
  "nested.avi": () =>
    Buffer.concat([ascii("RIFF\0\0\0\0AVI "), times(200_000, ascii("LIST\0\0\0\0strl"))]),
  "tags.flv": () => flv(5, ...Array(100_000).fill(8)),
  "packets.mpg": () => Buffer.concat([MPEG2_PACK, times(300_000, packet(0xc0))]),
  "zeros.mpg": () => Buffer.concat([MPEG2_PACK, Buffer.alloc(20_000_000)]),
  "headers.mpg": () =>
    times(300, Buffer.concat([MPEG2_PACK, packet(0xbb, Buffer.alloc(65_000, 0xbf))])),
  "free.mp3": () => Buffer.concat([times(4_000, ascii("\xff\xfb\0")), Buffer.alloc(10_000)]),
  "frames.aac": () =>
    Buffer.concat([times(2_300, ascii("\xff\xf1\x50\x80\0\xff\xfc")), Buffer.alloc(10_000)]),
  "pickle.bin": () =>
    Buffer.concat([ascii("\x04\0\0\0\0\0\0\0\0\0\0\0\x00\x0f\0\0"), Buffer.alloc(5_000, "[")]),
};
