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
