/** Sound that is not in a container: what its frames prove, and what they do not. */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { Buffer } from "node:buffer";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { needing } from "../support/permissions.ts";
import { ascii, box, iso, MPEG2_PACK, packet } from "./containers.ts";
import { detect as detectContent } from "./detection.ts";
import { type FrameName, FRAMES, frames } from "./frames.ts";

const test = needing("environment");

const detect = (...parts: Buffer[]) => detectContent(Buffer.concat(parts));
/** Detects content of which only the beginning can be read, as at a URL. */
const detectBeginning = (...parts: Buffer[]) => detectContent(Buffer.concat(parts), {}, false);

function typeOf(name: FrameName): string {
  return name === "AAC"
    ? "audio/aac"
    : name.includes("AC-3")
    ? "audio/vnd.dolby.dd-raw"
    : "audio/mpeg";
}

/** The same bytes on each run. */
function noise(length: number): Buffer {
  let seed = 60;
  const next = () => (seed = seed * 48_271 % 0x7fff_ffff) >> 8 & 0xff;
  return Buffer.from(Array.from({ length }, next));
}

const zeros = (length: number) => Buffer.alloc(length);

/** The content of a tag, which has a frame. */
const TITLE = Buffer.concat([ascii("TIT2\0\0\0\x15\0\0\0"), zeros(20)]);

/** An ID3v2 tag that states a size, with seven bits per byte or as given. */
function id3(size: number | string, flags = 0): Buffer {
  const bytes = typeof size === "string" ? ascii(size) : Buffer.of(0, 0, size >> 7, size & 0x7f);
  return Buffer.concat([ascii("ID3\x04\0"), Buffer.of(flags), bytes, TITLE]);
}
const ID3 = id3(TITLE.length);

const apeHeader = (id: string, size: number) => {
  const header = Buffer.concat([ascii(id), zeros(24)]);
  header.writeUInt32LE(size, 12);
  return header;
};
const APE = Buffer.concat([apeHeader("APETAGEX", 52), zeros(20), apeHeader("APETAGEX", 52)]);
const OLD_TAG = Buffer.concat([ascii("TAG"), zeros(125)]);

test("frames prove MP3, AAC and AC-3, whatever precedes them", async () => {
  const before: Readonly<Record<string, readonly Buffer[]>> = {
    "nothing": [],
    "a tag": [ID3],
    "a tag and padding": [ID3, zeros(1500)],
    "long padding": [ID3, zeros(20_000)],
    "a tag with a footer": [id3(TITLE.length, 0x10), ascii("3DI\x04\0\x10\0\0\0\x1f")],
    "a footer that the tag does not state": [ID3, ascii("3DI\x04\0\0\0\0\0\x1f")],
    "two tags": [ID3, ID3],
    "an APE tag": [APE],
    "a tag and an APE tag": [ID3, APE],
    "an old tag, which is stray here": [OLD_TAG],
    "a tag that is longer than it states": [id3(8)],
    "a tag that is much longer": [id3(8), zeros(40), noise(3000)],
    "a tag that states eight bits per byte": [id3("\0\0\0\x9f"), zeros(0x9f - TITLE.length)],
    "ten stray bytes": [noise(10)],
    "the rest of a frame": [noise(2880)],
    "a tag and the rest of a frame": [ID3, noise(400)],
    "one frame of another format": [frames("MP2, MPEG-2", 1), noise(33)],
  };
  for (const [what, parts] of Object.entries(before)) {
    for (const name of Object.keys(FRAMES) as FrameName[]) {
      const isFree = name === "MP3, free format"; // found only where it is expected
      const isStray = /padding|footer that|longer|stray|rest|another/.test(what);
      if (isFree && isStray) continue;
      for (const count of [isStray ? 8 : 3, 2_400]) {
        const detected = await detect(...parts, frames(name, count));
        assertEquals(detected, { kind: "audio", type: typeOf(name) }, `${name} after ${what}`);
      }
    }
  }
});

test("frames of a short file may be followed by tags, and the last may be cut", async () => {
  for (const name of Object.keys(FRAMES) as FrameName[]) {
    const sound = frames(name, 4);
    for (const end of [OLD_TAG, APE, ID3, ascii("LYRICSBEGIN"), sound.subarray(0, 20)]) {
      assertEquals((await detect(sound, end)).type, typeOf(name), name);
    }
  }
});

test("eight frames at the beginning prove sound, whatever follows", async () => {
  for (const name of Object.keys(FRAMES) as FrameName[]) {
    if (name === "MP3, free format") continue; // does not state its length
    const sound = frames(name, 60);
    const cut = sound.subarray(5 * FRAMES[name][1] + 1);
    for (const before of [[], [ID3]]) {
      for (const rest of [[cut], [noise(9000)], [zeros(5000)], [ID3.subarray(0, 20), cut]]) {
        const detected = await detect(...before, frames(name, 8), ...rest);
        assertEquals(detected, { kind: "audio", type: typeOf(name) }, name);
      }
    }
  }
});

test("a tag that does not end is one of sound if the content goes on", async () => {
  const rows = {
    "a picture": [id3("\0\x7f\0\0"), noise(5000)],
    "padding": [ascii("ID3\x04\0\0\0\x7f\0\0"), zeros(5000)],
    "a few bytes": [id3("\0\x7f\0\0").subarray(0, 16)],
    "a picture after another tag": [ID3, id3("\0\x7f\0\0"), noise(5000)],
  };
  for (const [what, parts] of Object.entries(rows)) {
    assertEquals(await detectBeginning(...parts), { kind: "audio", type: "audio/mpeg" }, what);
    const { message } = await assertRejects(() => detect(...parts), RefusedError, "", what);
    assertEquals(
      message,
      '"it" begins as audio/mpeg, but has no sound; make sure that it is whole',
    );
  }
  const sound = await detect(id3("\0\x7f\0\0"), frames("MP3", 50)); // its size is wrong
  assertEquals(sound, { kind: "audio", type: "audio/mpeg" });
});

test("fewer frames prove nothing, nor do frames elsewhere", async () => {
  const run = frames("MP3", 50);
  const rows: Record<string, readonly Buffer[]> = {
    "a run after more than is searched": [noise(4096), run],
    "a run after a tag and more than is searched": [ID3, noise(4096), run],
    "a run in a program stream that was cut": [noise(2), packet(0xbb, noise(9)), packet(0xc0, run)],
    "a run in another pack": [zeros(9), MPEG2_PACK, packet(0xc0, run)],
    "a run in a segment whose first bytes were cut": [
      box("styp", zeros(9)).subarray(7),
      box("moof", zeros(99)),
      box("mdat", run),
    ],
    "a run in a box whose length was cut": [box("mdat", run).subarray(3)],
    "a run in a box of another type": [box("abcd", box("mdat", run))],
    "seven frames": [frames("MP3", 7), noise(9000)],
    "seven frames after stray bytes": [noise(10), frames("MP3", 7)],
    "a frame, and the beginning of another": [frames("MP3", 2).subarray(0, 500)],
    "two headers in a table": [
      ...[ascii("A table\n"), Buffer.from("ffff2613", "hex"), zeros(68)],
      ...[Buffer.from("ffff2613", "hex"), zeros(20)],
    ],
    "five frames after stray bytes": [noise(10), frames("MP3", 5), noise(9000)],
    "frames at a distance": Array.from({ length: 50 }, () => [frames("MP3", 4), noise(50)]).flat(),
    "frames of different formats": Array(50).fill([frames("MP3", 1), frames("MP2", 1)]).flat(),
    "a tag before nothing": [ID3],
    "a tag before zeros": [ID3, zeros(5000)],
    "a tag before noise": [ID3, noise(5000)],
    "noise that begins as a tag": [ascii("ID3"), noise(5000)],
    "noise that begins as a tag of a version": [ascii("ID3\x04\0\0\x7f\x7f\x7f\x7f"), noise(5000)],
    "text in UTF-16": [Buffer.from("\ufeffAny text may begin like this.\n".repeat(50), "utf16le")],
    "bytes that are all set": [Buffer.alloc(5000, 0xff)],
  };
  for (const [header] of Object.values(FRAMES)) {
    for (const length of [0, 10, 100, 300, 500, 1000, 3000, 30_000]) {
      rows[`${header} and ${length} bytes of noise`] = [Buffer.from(header, "hex"), noise(length)];
    }
  }
  for (const [what, parts] of Object.entries(rows)) {
    const { message } = await assertRejects(() => detect(...parts), RefusedError, "", what);
    assertMatch(message, /^"it" .* --type$/, what);
  }
});

test("frames inside boxes are not frames, whichever box is first", async () => {
  const first = ["styp", "sidx", "ssix", "moof", "emsg", "prft", "free", "skip", "uuid", "pdin"];
  const movie = (...handlers: string[]) => iso("isom", ...handlers).subarray(16); // without the box that names its brand
  for (const name of Object.keys(FRAMES) as FrameName[]) {
    const run = frames(name, Math.ceil(20_000 / FRAMES[name][1]));
    for (const type of first) {
      for (const length of [0, 16, 500]) {
        const content = [box(type, zeros(length)), box("moof", zeros(64)), box("mdat", run)];
        await assertRejects(() => detect(...content), RefusedError, "", `${name} after ${type}`);
        await assertRejects(() => detect(box(type, zeros(length), run)), RefusedError);
        const film = [box(type, zeros(length)), box("mdat", run), movie("soun", "vide")];
        assertEquals((await detect(...film)).kind, "video", type);
      }
    }
  }
});
