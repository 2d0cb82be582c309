import { assert, assertEquals } from "@std/assert";
import fc from "../support/fast_check.ts";
import { type Bytes, memoryBytes } from "../../lib/publishing/tracks/bytes.ts";
import { isoTracks } from "../../lib/publishing/tracks/iso_media.ts";
import { matroskaTracks } from "../../lib/publishing/tracks/matroska.ts";
import { oggTracks } from "../../lib/publishing/tracks/ogg.ts";
import type { Track } from "../../lib/publishing/tracks/track.ts";
import { SAMPLE_MP4 } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";

const test = needing("files");

type Part = readonly number[] | string;

const bytesOf = (...parts: Part[]): number[] =>
  parts.flatMap((part) =>
    typeof part === "string" ? [...part].map((char) => char.charCodeAt(0)) : [...part]
  );
const uint32 = (
  value: number,
) => [value >>> 24, value >>> 16 & 255, value >>> 8 & 255, value & 255];
const zeros = (count: number) => new Array<number>(count).fill(0);
const content = (...parts: Part[]) => memoryBytes(Uint8Array.from(bytesOf(...parts)));

/** A box of ISO/IEC 14496-12. */
function box(type: string, ...parts: Part[]): number[] {
  const inner = bytesOf(...parts);
  return bytesOf(uint32(8 + inner.length), type, inner);
}

function trak(id: number, handler: string, ...others: Part[]): number[] {
  const isLong = id > 9; // version 1, with 64-bit timestamps
  return box(
    "trak",
    box("tkhd", [isLong ? 1 : 0, 0, 0, 0], zeros(isLong ? 16 : 8), uint32(id), zeros(60)),
    box("mdia", box("mdhd", zeros(24)), box("hdlr", zeros(8), handler, zeros(12))),
    ...others,
  );
}

/** An element of RFC 8794, with its size in one byte. */
function element(id: readonly number[], ...parts: Part[]): number[] {
  const inner = bytesOf(...parts);
  return bytesOf(id, [0x80 + inner.length], inner);
}

const EBML = element([0x1a, 0x45, 0xdf, 0xa3], element([0x42, 0x82], "webm"));
const SEGMENT = [0x18, 0x53, 0x80, 0x67];
const CLUSTER = element([0x1f, 0x43, 0xb6, 0x75], zeros(100));
const entry = (type: number) => element([0xae], element([0xd7], [1]), element([0x83], [type]));
const tracks = (...entries: Part[]) => element([0x16, 0x54, 0xae, 0x6b], ...entries);

/** A page of RFC 3533 with one packet. */
function page(flags: number, packet: string): number[] {
  return bytesOf("OggS", [0, flags], zeros(20), [1, packet.length], packet);
}

const FTYP = box("ftyp", "isom", zeros(4));
const holdsOf = (found: Track[]) => found.map(({ holds }) => holds);

Deno.test("isoTracks() finds the handlers of the tracks, wherever they are", async () => {
  const sound = trak(1, "soun");
  const rows: [what: string, file: Bytes, holds: Track["holds"][]][] = [
    ["sound", content(FTYP, box("moov", sound)), ["sound"]],
    ["both", content(FTYP, box("moov", sound, trak(2, "vide"))), ["sound", "picture"]],
    ["moov at the end", content(FTYP, box("mdat", zeros(900)), box("moov", sound)), ["sound"]],
    ["subtitles", content(box("moov", sound, trak(2, "sbtl"))), ["sound", "other"]],
    [
      "chapters with pictures",
      content(
        box(
          "moov",
          ...[trak(7, "vide"), trak(77, "vide"), trak(8, "vide")],
          trak(1, "soun", box("tref", box("chap", uint32(7), uint32(77)))),
        ),
      ),
      ["other", "other", "picture", "sound"],
    ],
    [
      "a 64-bit size",
      content(FTYP, uint32(1), "mdat", zeros(7), [20], zeros(4), box("moov", sound)),
      ["sound"],
    ],
    ["to the end", content(FTYP, uint32(0), "moov", sound), ["sound"]],
    ["no tracks", content(FTYP, box("moov", box("mvhd", zeros(100)))), []],
    ["cut off", content(FTYP, uint32(90_000), "mdat", zeros(50)), []],
    ["an invalid size", content(FTYP, uint32(3), "free", box("moov", sound)), []],
    ["nothing", content(), []],
  ];
  for (const [what, file, holds] of rows) {
    assertEquals(holdsOf(await isoTracks(file)), holds, what);
  }
});

Deno.test("isoTracks() reads only headers and the description, however large the file is", async () => {
  const moov = Uint8Array.from(box("moov", trak(1, "soun")));
  const length = 2 ** 40; // a terabyte of content before the moov box
  let read = 0;
  const file: Bytes = {
    size: length + moov.length,
    read(offset, wanted) {
      read += wanted;
      const mdat = bytesOf(uint32(1), "mdat", uint32(length / 2 ** 32), uint32(0));
      return offset < length
        ? Promise.resolve(Uint8Array.from(mdat).subarray(offset, offset + wanted))
        : memoryBytes(moov).read(offset - length, wanted);
    },
  };
  assertEquals(holdsOf(await isoTracks(file)), ["sound"]);
  assert(read < 500, `${read} bytes were read`);
});

Deno.test("matroskaTracks() finds the types of the tracks, wherever they are", async () => {
  const rows: [what: string, file: Bytes, holds: Track["holds"][]][] = [
    ["sound", content(EBML, element(SEGMENT, tracks(entry(2)))), ["sound"]],
    [
      "all kinds",
      content(EBML, element(SEGMENT, tracks(entry(1), entry(2), entry(0x11)))),
      ["picture", "sound", "other"],
    ],
    ["tracks at the end", content(EBML, element(SEGMENT, CLUSTER, tracks(entry(2)))), ["sound"]],
    [
      "a live stream",
      content(EBML, SEGMENT, [0xff], CLUSTER, CLUSTER, tracks(entry(2)), CLUSTER),
      ["sound"],
    ],
    [
      "a copy of the tracks",
      content(EBML, element(SEGMENT, tracks(entry(2)), tracks(entry(2)))),
      ["sound"],
    ],
    [
      "sizes of 8 bytes",
      content(EBML, SEGMENT, [1], zeros(6), [30], tracks(entry(1)), zeros(30)),
      ["picture"],
    ],
    ["no tracks", content(EBML, element(SEGMENT, CLUSTER)), []],
    ["cut off", content(EBML, SEGMENT.slice(0, 2)), []],
    ["nothing", content(), []],
  ];
  for (const [what, file, holds] of rows) {
    assertEquals(holdsOf(await matroskaTracks(file)), holds, what);
  }
});

Deno.test("oggTracks() reads the first page of every track", async () => {
  const opus: Track = { holds: "sound", codec: "opus" };
  const rows: [what: string, file: Bytes, found: Track[]][] = [
    ["Opus", content(page(2, "OpusHead\x01"), page(0, "OpusTags")), [opus]],
    [
      "sound before pictures",
      content(page(2, "\x01vorbis\0"), page(2, "\x80theora\x03"), page(0, "\x03vorbis")),
      [{ holds: "sound" }, { holds: "picture" }],
    ],
    [
      "a skeleton in front",
      content(page(2, "fishead\0"), page(2, "OpusHead\x01"), page(0, "")),
      [{ holds: "other" }, opus],
    ],
    ["a later track", content(page(2, "OpusHead"), page(0, "x"), page(2, "\x80theora")), [opus]],
    ["nothing", content(), []],
  ];
  for (const [what, file, found] of rows) assertEquals(await oggTracks(file), found, what);
});

/** Reads content with every parser: whole, truncated and modified. */
async function readDamaged(...wholes: Uint8Array<ArrayBuffer>[]): Promise<void> {
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 20 });
  const property = fc.asyncProperty(
    fc.constantFrom(...wholes),
    changes,
    fc.nat(),
    async (whole, changes, end) => {
      const changed = whole.slice(0, end % (2 * whole.length)); // half of them at full length
      for (const [at, value] of changes) changed[at % (changed.length || 1)] = value;
      for (const read of [isoTracks, matroskaTracks, oggTracks]) {
        assert(Array.isArray(await read(memoryBytes(changed))));
      }
    },
  );
  await fc.assert(property, { numRuns: 300 });
}

test("the container parsers terminate on any input", async () =>
  readDamaged(
    await Deno.readFile(SAMPLE_MP4),
    Uint8Array.from([...FTYP, ...box("moov", trak(1, "soun"), trak(2, "vide"))]),
    Uint8Array.from([...EBML, ...element(SEGMENT, tracks(entry(1), entry(2)))]),
    Uint8Array.from([...page(2, "\x01vorbis\0"), ...page(2, "\x80theora\x03")]),
  ));
