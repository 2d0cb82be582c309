/** Files of sound that are only beginnings. */

import { assertEquals, assertRejects } from "@std/assert";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { memoryBytes } from "../../lib/publishing/bytes.ts";
import { detectMediaType } from "../../lib/publishing/media_type.ts";
import { needing } from "../support/permissions.ts";
import { ascii } from "./containers.ts";

const test = needing("environment");

const zeros = (length: number) => "\0".repeat(length);
const FMT = `fmt \x10\0\0\0${zeros(16)}`;
const HEADER = "MThd\0\0\0\x06\0\x01\0\x01\0\x60";
const MAC = "MAC address,Owner\n00:00:5e:00:53:01,The library\n";

/** A file, and its type, or that with which it begins. */
type Row = readonly [what: string, content: string, type: string, isWhole: boolean];

const ROWS: readonly Row[] = [
  ["FLAC", `fLaC\0\0\0\x22${zeros(34)}`, "audio/flac", true],
  ["FLAC that was cut in its first block", `fLaC\0\0\0\x22${zeros(33)}`, "audio/flac", false],
  ["FLAC with another first block", `fLaC\x04\0\0\x22${zeros(34)}`, "audio/flac", false],
  ["the name of FLAC", "fLaC", "audio/flac", false],
  ["a score", `${HEADER}MTrk\0\0\0\x04\0\xff\x2f\0`, "audio/midi", true],
  ["a score after what is not known", `${HEADER}XFIH\0\0\0\x01.MTrk\0\0\0\0`, "audio/midi", true],
  ["a score without a track", HEADER, "audio/midi", false],
  ["a score that was cut", `${HEADER}MTrk`, "audio/midi", false],
  ["WAVE", `RIFF\0\0\0\0WAVE${FMT}data\x01\0\0\0\0`, "audio/wav", true],
  [
    "WAVE with other chunks",
    `RIFF\0\0\0\0WAVEJUNK\x01\0\0\0..${FMT}LIST\0\0\0\0data${zeros(4)}`,
    "audio/wav",
    true,
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
  ["AIFF without sound", `FORM\0\0\0\x1eAIFFCOMM\0\0\0\x12${zeros(18)}`, "audio/aiff", false],
  ["CAF that was cut", `caff\0\x01\0\0desc${zeros(7)}\x20${zeros(32)}`, "audio/x-caf", false],
  ["DSF that was cut", `DSD \x1c${zeros(23)}`, "audio/x-dsf", false],
  ["WavPack that was cut", `wvpk${zeros(4)}\x10\x04${zeros(9)}`, "audio/wavpack", false],
  ["a table of addresses", MAC, "audio/ape", false],
  ["AMR without a frame", "#!AMR\n", "audio/amr", false],
  ["VOC without a block", `Creative Voice File\x1a${zeros(6)}`, "audio/x-voc", false],
];

test("a stub of sound is refused, and so is an upload that was cut", async () => {
  for (const [what, content, type, isWhole] of ROWS) {
    const detecting = () => detectMediaType("it", memoryBytes(new Uint8Array(ascii(content))), {});
    if (isWhole) assertEquals(await detecting(), { kind: "audio", type }, what);
    else {
      const { message } = await assertRejects(detecting, RefusedError, "", what);
      const remedy = "make sure that it is whole";
      assertEquals(message, `"it" begins as ${type}, but has no sound; ${remedy}`, what);
    }
  }
});
