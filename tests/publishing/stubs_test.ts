/** Files that are only beginnings. */

import { assertEquals, assertRejects } from "@std/assert";
import { Buffer } from "node:buffer";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { needing } from "../support/permissions.ts";
import { ascii, iso, matroska, MPEG2_PACK, packet, page, systemHeader } from "./containers.ts";
import { detect } from "./detection.ts";

const test = needing("environment");

const zeros = (length: number) => "\0".repeat(length);
const FMT = `fmt \x10\0\0\0${zeros(16)}`;
const INFO = `fLaC\0\0\0\x22${zeros(34)}`;
/** A picture of 100,000 bytes, as the last block of FLAC's metadata. */
const COVER = `\x86\x01\x86\xa0${zeros(100_000)}`;
const AU = `.snd\0\0\0\x1c\xff\xff\xff\xff${zeros(3)}\x01${zeros(2)}\x1f\x40${zeros(3)}\x01${
  zeros(4)
}`;
const COMM = `FORM\0\0\0\x1eAIFFCOMM\0\0\0\x12${zeros(18)}`;
const DFF = `FRM8${zeros(8)}DSD FVER${zeros(7)}\x04${zeros(4)}PROP${zeros(7)}\x04SND `;
const XM = `Extended Module: ${zeros(43)}\x14\x01${zeros(274)}`;
const IT = `IMPM${zeros(28)}\x02\0\0\0\x01\0\x01\0${zeros(152 + 2 + 8)}`;
const S3M = `${zeros(32)}\x02\0\x01\0\x01\0${zeros(6)}SCRM${zeros(48 + 2 + 4)}`;
const VORBIS = page(2, 1, ascii("\x01vorbis")).toString("latin1") +
  page(0, 1, ascii("\x03vorbis")).fill(0, 6, 14).toString("latin1");
const MP4 = iso("M4A ", "soun").toString("latin1");
const MATROSKA = matroska("matroska", 2).toString("latin1");
const PROGRAM = Buffer.concat([MPEG2_PACK, systemHeader(1, 0, 0xc0)]).toString("latin1");
const HEADER = "MThd\0\0\0\x06\0\x01\0\x01\0\x60";
const MAC = "MAC address,Owner\n00:00:5e:00:53:01,The library\n";

/** A file, and its type, or that with which it begins. */
type Row = readonly [what: string, content: string, type: string, isWhole: boolean];

const ROWS: readonly Row[] = [
  ["FLAC", `${INFO}${COVER}\xff`, "audio/flac", true],
  ["FLAC without a frame", `${INFO}${COVER}`, "audio/flac", false],
  ["FLAC that ends after its first block", INFO, "audio/flac", false],
  ["FLAC of nothing but its first block", INFO.replace("C\0", "C\x80"), "audio/flac", false],
  ["FLAC that was cut in its cover", `${INFO}${COVER.slice(0, 50_000)}`, "audio/flac", false],
  ["FLAC that was cut in its first block", INFO.slice(0, -1), "audio/flac", false],
  ["FLAC with another first block", `fLaC\x04\0\0\x22${zeros(34)}`, "audio/flac", false],
  ["the name of FLAC", "fLaC", "audio/flac", false],
  ["a score", `${HEADER}MTrk\0\0\0\x04\0\xff\x2f\0`, "audio/midi", true],
  [
    "a score after what is not known",
    `${HEADER}XFIH\0\0\0\x01.MTrk\0\0\0\x04\0\xff\x2f\0`,
    "audio/midi",
    true,
  ],
  ["a score without a track", HEADER, "audio/midi", false],
  ["a score that was cut", `${HEADER}MTrk`, "audio/midi", false],
  ["WAVE", `RIFF\0\0\0\0WAVE${FMT}data\x01\0\0\0\0`, "audio/wav", true],
  [
    "WAVE with other chunks",
    `RIFF\0\0\0\0WAVEJUNK\x01\0\0\0..${FMT}LIST\0\0\0\0data${zeros(4)}..`,
    "audio/wav",
    true,
  ],
  [
    "WAVE with a data chunk of nothing",
    `RIFF\0\0\0\0WAVE${FMT}data${zeros(4)}`,
    "audio/wav",
    false,
  ],
  [
    "WAVE that was cut before its first sample",
    `RIFF\0\0\0\0WAVE${FMT}data\xff\0\0\0`,
    "audio/wav",
    false,
  ],
  ["WAVE without data", `RIFF\0\0\0\0WAVE${FMT}`, "audio/wav", false],
  ["WAVE without a format", `RIFF\0\0\0\0WAVEdata${zeros(99)}`, "audio/wav", false],
  [
    "WAVE that was cut in another chunk",
    `RIFF\0\0\0\0WAVE${FMT}LIST\xff\0\0\0${zeros(9)}`,
    "audio/wav",
    false,
  ],
  [
    "WAVE beyond 4 GB that was cut",
    `RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0${zeros(28)}${FMT}`,
    "audio/wav",
    false,
  ],
  [
    "WAVE of endless chunks",
    `RIFF\0\0\0\0WAVE${`JUNK${zeros(4)}`.repeat(20_000)}`,
    "audio/wav",
    false,
  ],
  ["AIFF without sound", COMM, "audio/aiff", false],
  ["AIFF with a chunk of nothing", `${COMM}SSND\0\0\0\x08${zeros(8)}`, "audio/aiff", false],
  ["AU", `${AU}.`, "audio/basic", true],
  ["AU without sound", AU, "audio/basic", false],
  ["DFF", `${DFF}DSD ${zeros(7)}\x01.`, "audio/x-dff", true],
  ["DFF that is compressed", `${DFF}DST ${zeros(7)}\x01.`, "audio/x-dff", true],
  ["DFF without sound", DFF, "audio/x-dff", false],
  ["XM", `${XM}.`, "audio/x-xm", true],
  ["XM without a pattern", XM, "audio/x-xm", false],
  ["IT", `${IT}.`, "audio/x-it", true],
  ["IT without a sample", IT, "audio/x-it", false],
  ["S3M", `${S3M}.`, "audio/x-s3m", true],
  ["S3M without a sample", S3M, "audio/x-s3m", false],
  ["Musepack", "MPCKSH\x04\0RG\x04\0AP\x04.", "audio/x-musepack", true],
  ["Musepack without sound", "MPCKSH\x04\0RG\x04\0", "audio/x-musepack", false],
  ["Musepack 7", `MP+\x07${zeros(24)}..`, "audio/x-musepack", true],
  ["Musepack 7 without sound", `MP+\x07${zeros(24)}`, "audio/x-musepack", false],
  ["Ogg", VORBIS + page(0, 1, ascii(".")).toString("latin1"), "audio/ogg", true],
  ["Ogg without sound", VORBIS, "video/ogg", false],
  ["MP4", MP4, "audio/mp4", true],
  ["MP4 without sound", MP4.slice(0, -1), "video/mp4", false],
  ["MP4 that was cut in its description", MP4.slice(0, -20), "video/mp4", false],
  ["Matroska", MATROSKA, "audio/x-matroska", true],
  ["Matroska without sound", MATROSKA.slice(0, -1), "video/x-matroska", false],
  ["a program stream", PROGRAM + packet(0xc0).toString("latin1"), "video/mpeg", true],
  ["a program stream without a packet", PROGRAM, "video/mpeg", false],
  [
    "CAF with a chunk of nothing",
    `caff\0\x01\0\0desc${zeros(7)}\x20${zeros(32)}data${zeros(7)}\x04${zeros(4)}`,
    "audio/x-caf",
    false,
  ],
  ["CAF that was cut", `caff\0\x01\0\0desc${zeros(7)}\x20${zeros(32)}`, "audio/x-caf", false],
  ["DSF that was cut", `DSD \x1c${zeros(23)}`, "audio/x-dsf", false],
  ["WavPack that was cut", `wvpk${zeros(4)}\x10\x04${zeros(9)}`, "audio/wavpack", false],
  ["a table of addresses", MAC, "audio/ape", false],
  ["AMR without a frame", "#!AMR\n", "audio/amr", false],
  ["VOC without a block", `Creative Voice File\x1a${zeros(6)}`, "audio/x-voc", false],
];

test("a stub is refused, and so is an upload that was cut in its headers", async () => {
  for (const [what, text, type, isWhole] of ROWS) {
    if (isWhole) assertEquals(await detect(text), { kind: "audio", type }, what);
    else {
      const { message } = await assertRejects(() => detect(text), RefusedError, "", what);
      const fault = type.startsWith("audio/") ? "no sound" : "neither sound nor pictures";
      const remedy = "make sure that it is whole";
      assertEquals(message, `"it" begins as ${type}, but has ${fault}; ${remedy}`, what);
    }
  }
});

test("the beginning of what is at a URL is no stub", async () => {
  for (const [what, text, type] of ROWS) {
    if (!/cut|without sound/.test(what)) continue;
    const found = await detect(text, { kind: "audio" }, false);
    assertEquals(found.type, type.replace(/video\/(?!mpeg)/, "audio/"), what);
  }
});
