import { assert, assertEquals, assertRejects } from "@std/assert";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { StorageError } from "../../lib/errors/storage_error.ts";
import type { Bytes } from "../../lib/publishing/bytes.ts";
import { detectMediaType, type Stated } from "../../lib/publishing/media_type.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { detect } from "./detection.ts";
import { frames } from "./frames.ts";

// The package that detects formats reads the environment when it is loaded.
const test = needing("environment");

const ascii = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));

const MP3 = frames("MP3", 2).toString("latin1");
const FLAC = `fLaC\x80\0\0\x22${"\0".repeat(34)}\xff`;
/** The chunks of a WAV file with its first sample, as a program writes them that is recording. */
const CHUNKS = `fmt \x10\0\0\0${"\0".repeat(16)}data\xff\xff\xff\xff\0\0`;
const WAV = ascii(`RIFF\x26\0\0\0WAVE${CHUNKS}`);
const DS64 = `\x1c\0\0\0${"\0".repeat(28)}`;
const WAVE64 = Uint8Array.fromHex(
  "726966662e91cf11a5d628db04c10000e02200000000000077617665f3acd3118cd100c04f8edb8a",
);
const MXF = Uint8Array.fromHex("060e2b34020501010d0102010102");
const MP4_WITHOUT_TRACKS = ascii(
  "\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41\0\0\0\x09mdat.",
);
/** Puts an ID3v2 tag in front of something; its size has seven bits per byte. */
const tagged = (size: string, length: number, rest: string) =>
  `ID3\x04\0\0${size}${"\xff\xfb".repeat(length / 2)}${rest}`;

/** A terabyte in which one box of a megabyte follows another. */
const BOXES: Bytes = {
  size: 2 ** 40,
  isWhole: true,
  read: (offset, length) =>
    Promise.resolve(
      (offset === 0 ? MP4_WITHOUT_TRACKS : ascii("\0\x10\0\0free")).subarray(0, length),
    ),
};

test("detectMediaType() rethrows errors of reading", async () => {
  const lost = new StorageError("bucket", "gone");
  const read = (offset: number, length: number) =>
    offset > 0 ? Promise.reject(lost) : BOXES.read(offset, length);
  const detecting = () => detectMediaType("it", { ...BOXES, read }, {});
  assert(await assertRejects(detecting, StorageError) === lost);
});

// The formats themselves have a test of their own, which makes files of each.
test("detectMediaType() knows formats after tags, and some that file-type does not know", async () => {
  const rows: [what: string, head: string, type: string][] = [
    ["WAV beyond 4 GB", `RF64\xff\xff\xff\xffWAVEds64${DS64}${CHUNKS}`, "audio/wav"],
    [
      "WAV beyond 4 GB with more metadata",
      `BW64\xff\xff\xff\xffWAVEds64${DS64}${CHUNKS}`,
      "audio/wav",
    ],
    ["MP3 with a tag", tagged("\0\0\0\0", 0, MP3), "audio/mpeg"],
    ["FLAC with a tag", tagged("\0\0\x01\x02", 130, FLAC), "audio/flac"],
    ["FLAC with two tags", tagged("\0\0\0\x02", 2, tagged("\0\0\0\x06", 6, FLAC)), "audio/flac"],
  ];
  for (const [what, text, type] of rows) {
    const kind = type.split("/")[0] as "audio" | "video";
    assertEquals(await detect(ascii(text)), { kind, type }, what);
    assertEquals(await detect(ascii(text), { kind }), { kind, type }, what);
  }
});

needing("environment", "files")(
  "detectMediaType() accepts what the publisher states, where possible",
  async () => {
    const [mp3, mp4] = [await Deno.readFile(SAMPLE_MP3), await Deno.readFile(SAMPLE_MP4)];
    const zeros = new Uint8Array(5000);
    const rows: [content: Uint8Array<ArrayBuffer>, stated: Stated, kind: string, type: string][] = [
      [mp3, {}, "audio", "audio/mpeg"],
      [mp4, {}, "video", "video/mp4"],
      [mp4, { kind: "audio" }, "audio", "audio/mp4"],
      [mp4, { kind: "video" }, "video", "video/mp4"],
      [mp4, { type: "audio/x-special" }, "audio", "audio/x-special"],
      [zeros, { type: "audio/mpeg" }, "audio", "audio/mpeg"],
      [MP4_WITHOUT_TRACKS, { kind: "video" }, "video", "video/mp4"],
      [MP4_WITHOUT_TRACKS, { kind: "audio" }, "audio", "audio/mp4"],
      [WAV, { kind: "video" }, "video", "audio/wav"],
      [mp4, { kind: "audio", type: "video/mp2t" }, "audio", "video/mp2t"],
    ];
    for (const [content, stated, kind, type] of rows) {
      const detected = await detect(content, stated);
      assertEquals([detected.kind, detected.type], [kind, type]);
    }
  },
);

test("detectMediaType() refuses content that is not recognizably audio or video", async () => {
  const unknown = "has an unknown format; state its media type with --type";
  const rows: [content: Uint8Array<ArrayBuffer>, stated: Stated, message: string][] = [
    [new Uint8Array(5000), {}, unknown],
    [new Uint8Array(5000), { kind: "audio" }, unknown],
    [ascii(tagged("\0\0\0\x04", 4, "\0".repeat(5000))), {}, unknown],
    [ascii("Dear diary,\n"), {}, unknown],
    [Uint8Array.of(0), {}, unknown],
    [
      ascii("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0"),
      {},
      "is image/png, which is neither audio nor video",
    ],
    [ascii("FORM\0\0\0\x04ILBM"), {}, unknown], // a picture
    [ascii("FORM\0\0\0\x04ANIM"), { kind: "video" }, unknown],
    [ascii(".snd files are sound"), {}, unknown],
    [WAVE64, {}, "is Wave64, which has no audio or video type; state one with --type"],
    [
      MXF,
      { kind: "audio" },
      "is MXF, which has no audio or video type; state one with --type",
    ],
    [
      MP4_WITHOUT_TRACKS,
      {},
      "is video/mp4, but it is unknown whether it is audio or video; state it with --kind",
    ],
  ];
  for (const [content, stated, message] of rows) {
    const error = await assertRejects(() => detect(content, stated), RefusedError);
    assertEquals(error.message, `"it" ${message}`);
  }
});
