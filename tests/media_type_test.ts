import { assertEquals, assertRejects } from "@std/assert";
import { detectMediaType, MediaTypeError, type Stated } from "../lib/media_type.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "./support/paths.ts";

const ascii = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));
const BINARY = Uint8Array.of(0, 1, 2, 3, 254, 255);
const WAV = ascii("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00");
const FLAC = ascii("fLaC\x00\x00\x00\x22");
const M4A = ascii("\x00\x00\x00\x20ftypM4A \x00\x00\x00\x00M4A isom\x00\x00\x00\x00");
const MP4 = ascii("\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41");
const PNG = ascii(
  "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00",
);

Deno.test("detectMediaType() believes content first, then what the publisher says, then the name", async () => {
  const rows: [file: string, head: Uint8Array, stated: Stated, type: string][] = [
    ["a.mp3", await Deno.readFile(SAMPLE_MP3), {}, "audio/mpeg"],
    ["a.mp4", await Deno.readFile(SAMPLE_MP4), {}, "video/mp4"],
    ["a.mp4", WAV, {}, "audio/wav"],
    ["a", FLAC, {}, "audio/flac"],
    ["a", M4A, {}, "audio/mp4"],
    ["a", MP4, {}, "video/mp4"],
    ["a", MP4, { kind: "audio" }, "audio/mp4"],
    ["a", MP4, { kind: "video" }, "video/mp4"],
    ["a", MP4, { type: "audio/x-special" }, "audio/x-special"],
    ["a.mp3", BINARY, {}, "audio/mpeg"],
    ["A.MP3", BINARY, {}, "audio/mpeg"],
    ["dir.mp4/a.opus", BINARY, {}, "audio/ogg"],
    ["a.bin", BINARY, { type: "video/mp4" }, "video/mp4"],
  ];
  for (const [file, head, stated, type] of rows) {
    const kind = type.split("/")[0] as "audio" | "video";
    assertEquals(await detectMediaType(file, head, stated), { kind, type }, file);
  }
});

/** The first page of an Ogg file, as far as to the name of what is in it. */
const ogg = (codec: string) => `OggS\0\x02${"\0".repeat(20)}\x01\x13${codec}${"\0".repeat(40)}`;
/** The first box of an MP4 file, as its brand names it. */
const mp4 = (brand: string) => `\0\0\0\x14ftyp${brand}\0\0\x02\0${brand}${"\0".repeat(20)}`;
/** The first element of a Matroska file, which names its kind. */
const matroska = (size: string, kind: string) =>
  `\x1a\x45\xdf\xa3${size}\x42\x82${kind}${"\0".repeat(20)}`;

Deno.test("detectMediaType() knows formats by their first bytes, and which may be sound alone", async () => {
  const rows: [what: string, head: string, type: string, ofSound: string | undefined][] = [
    ["MP3", `\xff\xfb\x90\x64${"\0".repeat(60)}`, "audio/mpeg", "audio/mpeg"],
    ["MP3 with a tag", `ID3\x04${"\0".repeat(6)}\xff\xfb\x90\x64`, "audio/mpeg", "audio/mpeg"],
    ["AAC", "\xff\xf1\x50\x80\x01\x1f\xfc\x21", "audio/aac", "audio/aac"],
    ["AIFF", "FORM\0\0\0\x2eAIFFCOMM", "audio/aiff", "audio/aiff"],
    ["Vorbis", ogg("\x01vorbis"), "audio/ogg", "audio/ogg"],
    ["Opus", ogg("OpusHead\x01\x02"), "audio/ogg; codecs=opus", "audio/ogg; codecs=opus"],
    ["Theora", ogg("\x80theora"), "video/ogg", "audio/ogg"],
    ["WebM", matroska("\x87", "\x84webm"), "video/webm", "audio/webm"],
    ["Matroska", matroska("\x8b", "\x88matroska"), "video/x-matroska", "audio/x-matroska"],
    ["3GPP", mp4("3gp5"), "video/3gpp", "audio/3gpp"],
    ["M4V", mp4("M4V "), "video/mp4", "audio/mp4"],
    ["M4B", mp4("M4B "), "audio/mp4", "audio/mp4"],
    ["QuickTime", mp4("qt  "), "video/quicktime", undefined],
    ["AVI", "RIFF\x24\0\0\0AVI LIST", "video/vnd.avi", undefined],
    ["Flash", "FLV\x01\x05\0\0\0\x09\0\0\0\0", "video/x-flv", undefined],
  ];
  for (const [what, text, type, ofSound] of rows) {
    const head = ascii(text);
    const kind = type.split("/")[0] as "audio" | "video";
    assertEquals(await detectMediaType("a.zip", head, {}), { kind, type }, what);
    assertEquals(await detectMediaType("a.zip", head, { kind }), { kind, type }, what);
    const asSound = () => detectMediaType("a.zip", head, { kind: "audio" });
    if (ofSound === undefined) {
      await assertRejects(asSound, MediaTypeError, "so its kind cannot be audio");
    } else assertEquals(await asSound(), { kind: "audio", type: ofSound }, what);
  }
});

Deno.test("detectMediaType() falls back on the extension for what is not text", async () => {
  const rows: [file: string, type: string][] = [
    ["a.flac", "audio/flac"],
    ["a.m4a", "audio/mp4"],
    ["a.m4v", "video/mp4"],
    ["a.mka", "audio/x-matroska"],
    ["a.mkv", "video/x-matroska"],
    ["a.ogg", "audio/ogg"],
    ["a.ts", "video/mp2t"],
    ["a.mp3.webm", "video/webm"],
  ];
  for (const [file, type] of rows) {
    const kind = type.split("/")[0] as "audio" | "video";
    assertEquals(await detectMediaType(file, BINARY, {}), { kind, type }, file);
  }
});

Deno.test("detectMediaType() takes no text for media, whatever it is named", async () => {
  const rows: [head: string, isText: boolean][] = [
    ["Dear diary,\n", true],
    ["a\tb\fc\r\n", true],
    ["gr\xc3\xbcn", true],
    ["gr\xc3", true], // cut within a character
    ["gr\xc3n", false],
    ["\xfcber alles", false],
    ["a\0b", false],
    ["a\x1bb", false],
    ["a\x7fb", false],
  ];
  for (const [text, isText] of rows) {
    for (const file of ["a.mp3", "a.ts"]) {
      const detected = detectMediaType(file, ascii(text), {});
      if (isText) await assertRejects(() => detected, MediaTypeError, "is text/plain");
      else assertEquals((await detected).type, file === "a.ts" ? "video/mp2t" : "audio/mpeg", text);
    }
  }
});

Deno.test("detectMediaType() refuses what is neither audio nor video, and says what it is", async () => {
  const rows: [file: string, head: Uint8Array, stated: Stated, message: string][] = [
    ["a.mp3", PNG, {}, '"a.mp3" is image/png, which is neither audio nor video'],
    [
      "a.mp3",
      ascii("Dear diary,\n"),
      {},
      '"a.mp3" is text/plain, which is neither audio nor video',
    ],
    ["main.ts", ascii("const a = 1;\n"), {}, '"main.ts" is text/plain, which is neither'],
    ["a.zip", BINARY, {}, '"a.zip" is application/zip, which is neither'],
    ["a", BINARY, {}, 'Cannot tell what "a" is; state it with --type'],
    ["a.wav", WAV, { kind: "video" }, '"a.wav" is audio/wav, so its kind cannot be video'],
    ["a.mp4", MP4, { kind: "audio", type: "video/mp4" }, "so its kind cannot be audio"],
  ];
  for (const [file, head, stated, message] of rows) {
    await assertRejects(() => detectMediaType(file, head, stated), MediaTypeError, message);
  }
});
