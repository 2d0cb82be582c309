/** Every audio and video type that `file-type` knows: what is published, and what is refused. */

import { assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { needing } from "../support/permissions.ts";
import {
  ascii,
  asf,
  avi,
  flv,
  iso,
  matroska,
  MPEG1_PACK,
  MPEG2_PACK,
  packet,
  page,
  systemHeader,
  transport,
} from "./containers.ts";
import { detect, outcomeOf } from "./detection.ts";
import { frames } from "./frames.ts";

// The package that detects formats reads the environment when it is loaded.
const test = needing("environment");

/**
 * What `file-type` says of content, and what becomes of it: its kind and type, or the option with
 * which the refusal asks for what is missing.
 */
type Row = readonly [named: string, content: Buffer, outcome: string];

/** Formats that hold nothing but sound. */
const SOUNDS: readonly Row[] = [
  ["audio/mpeg", frames("MP3", 2), "audio audio/mpeg"],
  ["audio/aac", frames("AAC", 2), "audio audio/aac"],
  ["audio/vnd.dolby.dd-raw", frames("AC-3", 2), "audio audio/vnd.dolby.dd-raw"],
  ...([
    ["audio/flac", `fLaC\x80\0\0\x22${"\0".repeat(34)}\xff`],
    ["audio/wav", "RIFF\x16\0\0\0WAVEfmt \0\0\0\0data\x02\0\0\0\0\0"],
    ["audio/qcelp", "RIFF\x16\0\0\0QLCMfmt \0\0\0\0data\x02\0\0\0\0\0"],
    ["audio/aiff", `FORM\0\0\0\x1eAIFFCOMM\0\0\0\0SSND\0\0\0\x0a${"\0".repeat(10)}`],
    ["audio/aiff", `FORM\0\0\0\x1eAIFCSSND\0\0\0\x09${"\0".repeat(10)}COMM\0\0\0\0`],
    ["audio/x-caf", `caff\0\x01\0\0desc${"\0".repeat(8)}data${"\xff".repeat(8)}${"\0".repeat(5)}`],
    ["audio/x-musepack", `MP+\x07${"\0".repeat(26)}`],
    ["audio/x-musepack", "MPCKSH\x04\0AP\x04\0"],
    ["audio/midi", "MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk\0\0\0\x04\0\xff\x2f\0"],
    [
      "audio/x-dsf",
      ["DSD ", "fmt ", "data"].map((id) => `${id}\x0c${"\0".repeat(7)}`).join("") + ".",
    ],
    ["audio/x-dff", `FRM8${"\0".repeat(8)}DSD PROP${"\0".repeat(8)}DSD ${"\0".repeat(9)}`],
    ["audio/wavpack", `wvpk\0\0\0\0\x10\x04${"\0".repeat(23)}`],
    ["audio/ape", `MAC \x96\x0f${"\0".repeat(26)}`],
    ["audio/amr", "#!AMR\n\x3c"],
    ["audio/x-it", `IMPM${"\0".repeat(189)}`],
    ["audio/x-s3m", `${"\0".repeat(44)}SCRM${"\0".repeat(49)}`],
    ["audio/x-xm", `Extended Module:${"\0".repeat(49)}`],
    ["audio/x-voc", `Creative Voice File\x1a${"\0".repeat(6)}\x01${"\0".repeat(5)}`],
  ] as const).map(([type, text]) => [type, ascii(text), `audio ${type}`] as const),
];

/** Rows of a container: without tracks, with sound only, and with a picture. */
function container<Track>(
  named: string,
  make: (...tracks: Track[]) => Buffer,
  [sound, picture]: readonly [sound: Track, picture: Track],
  [audio, video]: readonly [audio: string, video: string],
): Row[] {
  return [
    [named, make(), "--kind"],
    [named, make(sound), `audio ${audio}`],
    [named, make(sound, picture), `video ${video}`],
  ];
}

/** Rows of MP4 and its kin, by brand. */
const isoContainer = (named: string, brand: string, audio: string, video: string) =>
  container(named, (...tracks: string[]) => iso(brand, ...tracks), ["soun", "vide"], [
    audio,
    video,
  ]);

const matroskaContainer = (named: string, docType: string, audio: string, video: string) =>
  container(named, (...tracks: number[]) => matroska(docType, ...tracks), [2, 1], [audio, video]);

const programContainer = (named: string, pack: Buffer) => {
  const make = (...codes: number[]) =>
    Buffer.concat([
      pack,
      ...codes.length > 0 ? [systemHeader(1, codes.length - 1, ...codes)] : [],
      packet(0xc0),
    ]);
  return container(named, make, [0xc0, 0xe0], ["video/mpeg", "video/mpeg"]);
};

const ogg = (...codecs: string[]) =>
  Buffer.concat([...codecs.map((codec) => page(2, 1, ascii(codec))), page(0, 1, ascii("."))]);
const MJ2 = (...tracks: string[]) =>
  Buffer.concat([ascii("\0\0\0\x0cjP  \r\n\x87\n"), iso("mjp2", ...tracks)]);

/** Formats that may hold sound only. None is published by its name. */
const CONTAINERS: readonly Row[] = [
  ...isoContainer("video/mp4", "isom", "audio/mp4", "video/mp4"),
  ...isoContainer("video/x-m4v", "M4V ", "audio/mp4", "video/mp4"),
  ...isoContainer("audio/x-m4a", "M4A ", "audio/mp4", "video/mp4"),
  ...isoContainer("audio/mp4", "M4B ", "audio/mp4", "video/mp4"),
  ...isoContainer("video/3gpp", "3gp4", "audio/3gpp", "video/3gpp"),
  ...isoContainer("video/3gpp2", "3g2a", "audio/3gpp2", "video/3gpp2"),
  ...isoContainer("video/quicktime", "qt  ", "video/quicktime", "video/quicktime"),
  ...container("image/mj2", MJ2, ["soun", "vide"], ["video/mj2", "video/mj2"]),
  ...matroskaContainer("video/webm", "webm", "audio/webm", "video/webm"),
  ...matroskaContainer("video/matroska", "matroska", "audio/x-matroska", "video/x-matroska"),
  ...container("video/vnd.avi", avi, ["auds", "vids"], ["video/vnd.avi", "video/vnd.avi"]),
  ...container("video/mp2t", transport, [0x0f, 0x1b], ["video/mp2t", "video/mp2t"]),
  ["video/x-flv", flv(0), "--kind"],
  ["video/x-flv", flv(4, 18, 8, 8), "audio video/x-flv"],
  ["video/x-flv", flv(5, 18, 8, 9), "video video/x-flv"],
  ...programContainer("video/MP1S", MPEG1_PACK),
  ...programContainer("video/MP2P", MPEG2_PACK),
  ["video/mpeg", ascii("\0\0\x01\xba\0\0\0\0\0\0\x01\xc0"), "--kind"], // a damaged pack
  ["video/mpeg", ascii("\0\0\x01\xb3\x08\0\x60\x13\0\0\x01\x01"), "video video/mpeg"], // video alone
  ["application/ogg", ogg("fishead\0"), "--kind"],
  ["audio/ogg", ogg("\x01vorbis\0"), "audio audio/ogg"],
  ["audio/ogg; codecs=opus", ogg("OpusHead"), "audio audio/ogg; codecs=opus"],
  ["audio/ogg", ogg("\x01vorbis\0", "\x80theora\0"), "video video/ogg"],
  ["video/ogg", ogg("\x80theora\0"), "video video/ogg"],
  ["application/vnd.ms-asf", asf(), "--kind"],
  ["audio/x-ms-asf", asf("audio"), "audio audio/x-ms-asf"],
  ["audio/x-ms-asf", asf("audio", "video"), "video video/x-ms-asf"],
  ["video/x-ms-asf", asf("video", "audio"), "video video/x-ms-asf"],
];

/** Formats without an audio or video type to publish them with. */
const WITHOUT_TYPE: readonly Row[] = [
  ["application/mxf", Buffer.from("060e2b34020501010d0102010102", "hex"), "--type"],
  ["application/vnd.rn-realmedia", ascii(".RMF\0\0\0\x12"), "--type"],
];

const ROWS = [...SOUNDS, ...CONTAINERS, ...WITHOUT_TYPE];

/** Types that `file-type` names otherwise, although they hold sound or pictures that move. */
const OTHERWISE_NAMED = [
  "application/ogg",
  "application/vnd.ms-asf",
  "application/mxf",
  "application/vnd.rn-realmedia",
  "image/mj2",
];

test("every audio and video type that is known is published by its tracks, or refused", async () => {
  const { fileTypeFromBuffer, supportedMimeTypes } = await import("file-type");
  const known = [...supportedMimeTypes].filter((type) =>
    /^(?:audio|video)\//.test(type) || OTHERWISE_NAMED.includes(type)
  );
  assertEquals([...new Set(ROWS.map(([named]) => named))].sort(), known.sort());
  for (const [named, content, outcome] of ROWS) {
    assertEquals((await fileTypeFromBuffer(content))?.mime, named);
    assertEquals(await outcomeOf(content), outcome, named);
  }
});

test("the publisher's kind overrides what was detected, with the container's type for it", async () => {
  for (const [named, content] of CONTAINERS) {
    for (const kind of ["audio", "video"] as const) {
      const outcomes = CONTAINERS.flatMap(([other, , outcome]) => other === named ? outcome : []);
      const type = outcomes.find((outcome) => outcome.startsWith(kind))?.slice("audio ".length);
      if (type !== undefined) assertEquals(await detect(content, { kind }), { kind, type }, named);
    }
  }
  const type = "video/ogg";
  assertEquals(await detect(ogg("OpusHead"), { kind: "video" }), { kind: "video", type });
});
