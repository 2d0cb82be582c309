/** Containers whose headers are not the whole truth. Ordinary ones are in `known_types_test.ts`. */

import { assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { needing } from "../support/permissions.ts";
import { avi, flv, iso, MPEG1_PACK, MPEG2_PACK, packet, systemHeader } from "./containers.ts";
import { outcomeOf } from "./detection.ts";
import { frames } from "./frames.ts";

const test = needing("environment");

const zeros = (length: number) => Buffer.alloc(length);
const sound = (length = 2000) => packet(0xc0, frames("MP2", 5).subarray(0, length));
const picture = packet(0xe0, zeros(2000));
const ac3 = packet(0xbd, zeros(2000));
const program = (...parts: Buffer[]) => Buffer.concat([MPEG2_PACK, ...parts]);
/** What DVDs list: all video, all audio, private streams 1 and 2. */
const DVD = [0xb9, 0xb8, 0xbd, 0xbf];

/** What becomes of content: its kind, or a refusal that asks for it. */
type Row = readonly [what: string, content: Buffer, outcome: "audio" | "video" | "refused"];

const FLV: readonly Row[] = [
  ["a film", flv(5, 18, 9, 8), "video"],
  ["a film that begins with sound", flv(5, ...Array(500).fill(8), 9), "video"],
  ["a film that is said to be sound", flv(4, 18, 8, 9), "video"],
  ["a film that is said to be nothing", flv(0, 9), "video"],
  ["an encrypted film", flv(5, 0x28, 0x29), "video"],
  ["sound", flv(4, 18, 8), "audio"],
  ["sound that is said to be a film", flv(5, 18, 8, 8), "refused"],
  ["sound that is said to be a picture", flv(1, 8, 8), "refused"],
  ["sound that is said to be nothing", flv(0, 8, 8), "refused"],
  ["sound, then damaged", flv(4, 8, 3), "refused"],
  ["the beginning of sound", flv(4, 18, 8).subarray(0, 50), "audio"],
  ["the beginning of a film", flv(5, 18, 9).subarray(0, 40), "refused"],
  ["no tags", flv(5), "refused"],
];

const AVI: readonly Row[] = [
  ["sound", avi("auds"), "audio"],
  ["sound in two languages", avi("auds", "auds"), "audio"],
  ["a film", avi("vids", "auds"), "video"],
  ["a film after its sound", avi("auds", "vids"), "video"],
  ["DV", avi("iavs"), "video"],
  ["subtitles", avi("txts"), "refused"],
  ["no streams", avi(), "refused"],
  ["the beginning of sound", avi("auds", "auds").subarray(0, 120), "refused"],
];

const PROGRAM: readonly Row[] = [
  ["a film", program(systemHeader(1, 1, 0xe0, 0xc0), picture, sound()), "video"],
  ["a film of which only sound is seen", program(systemHeader(1, 1, 0xe0, 0xc0), sound()), "video"],
  ["a film that is said to be sound", program(systemHeader(1, 0, 0xc0), sound(), picture), "video"],
  ["a film after damage", program(systemHeader(1, 1, 0xe0), packet(0x01), sound()), "video"],
  ["sound after damage", program(systemHeader(1, 0, 0xc0), packet(0x01), sound()), "refused"],
  ["a film without a list", program(sound(), picture), "video"],
  ["a film on DVD", program(systemHeader(1, 1, ...DVD), ac3, picture), "video"],
  ["sound", program(systemHeader(1, 0, 0xc0), sound()), "audio"],
  ["sound in MPEG-1", Buffer.concat([MPEG1_PACK, systemHeader(1, 0, 0xc0), sound()]), "audio"],
  ["AC-3", program(systemHeader(1, 0, 0xbd), ac3), "audio"],
  ["sound on DVD", program(systemHeader(1, 0, ...DVD), ac3), "audio"],
  ["sound without a list", program(sound(), MPEG2_PACK, sound()), "refused"],
  ["long sound without a list", program(...Array(2000).fill(sound())), "refused"],
  ["subtitles", program(systemHeader(0, 0, 0xbd), ac3), "refused"],
  ["video that is not listed", program(systemHeader(1, 1, 0xc0), sound()), "refused"],
  ["VC-1 and its sound", program(systemHeader(1, 1, 0xfd, 0xbd), ac3), "refused"],
  ["VC-1 that is not listed", program(systemHeader(1, 0, 0xbd), packet(0xfd), ac3), "refused"],
  [
    "sound, then damaged",
    program(systemHeader(1, 0, 0xc0), sound(), sound(99), MPEG2_PACK, frames("MP2", 1)),
    "refused",
  ],
  [
    "a Video CD that begins with sound",
    Buffer.concat([
      ...[MPEG1_PACK, systemHeader(1, 0, 0xc0), sound(), zeros(20)],
      ...[MPEG1_PACK, systemHeader(0, 1, 0xe0), picture],
    ]),
    "video",
  ],
  [
    "two that were joined",
    program(sound(), Buffer.of(0, 0, 1, 0xb9), MPEG2_PACK, systemHeader(0, 1, 0xe0), picture),
    "video",
  ],
];

const MP4: readonly Row[] = [
  ["sound with subtitles", iso("isom", "soun", "sbtl"), "audio"],
  ["sound with a track that is not known", iso("isom", "soun", "vidf"), "refused"],
  ["sound with pictures", iso("isom", "soun", "pict"), "video"],
  [
    "sound, and a track without its type",
    change(iso("isom", "soun", "vide"), "hdlr", 1),
    "refused",
  ],
  ["a film whose second track was hidden in the first", hidden(), "refused"],
];

/** Changes the last box of a type, so that it is another. */
function change(content: Buffer, type: string, add: number): Buffer {
  const at = content.lastIndexOf(type);
  content.writeUInt8(content.readUInt8(at) + add, at);
  return content;
}

/** A film whose sound has a box that is too long. */
function hidden(): Buffer {
  const content = iso("isom", "soun", "vide");
  const at = content.indexOf("hdlr") - 4;
  content.writeUInt32BE(60, at);
  return content;
}

test("the kind of FLV, AVI, MP4 and program streams comes from their tracks, never from a part without a picture", async () => {
  for (
    const [type, rows] of Object.entries({
      "video/x-flv": FLV,
      "video/vnd.avi": AVI,
      "video/mpeg": PROGRAM,
      "video/mp4": MP4,
    })
  ) {
    for (const [what, content, outcome] of rows) {
      const named = type === "video/mp4" ? `${outcome}/mp4` : type;
      const expected = outcome === "refused" ? "--kind" : `${outcome} ${named}`;
      assertEquals(await outcomeOf(content), expected, `${type}: ${what}`);
    }
  }
});
