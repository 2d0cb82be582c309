/** Transport streams: what the maps of their programs say, and what no map proves. */

import { assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { needing } from "../support/permissions.ts";
import {
  type MappedStream,
  packet,
  programMap,
  programTable,
  section,
  transport,
  transportPackets,
} from "./containers.ts";
import { outcomeOf } from "./detection.ts";

const test = needing("environment");

type Outcome = "audio" | "video" | "refused";

const kindOf = async (content: Buffer) =>
  (await outcomeOf(content)).replace(" video/mp2t", "").replace(/^--\w+$/, "refused");

const AAC = { type: 0x0f };
const H264 = { type: 0x1b };
const data = (...descriptors: [tag: number, content: string][]) => ({ type: 6, descriptors });
const SOUND = transportPackets(0x200, packet(0xc0, Buffer.alloc(2000)));

/** One program with these streams, and their beginning. */
const program = (streams: readonly MappedStream[], names?: string) =>
  Buffer.concat([
    transportPackets(0, programTable(1)),
    transportPackets(0x101, programMap(1, streams, names)),
    SOUND,
  ]);

type Row<Parts> = readonly [what: string, parts: readonly Parts[], outcome: Outcome];

const STREAMS: readonly Row<MappedStream>[] = [
  ...[0x03, 0x04, 0x0f, 0x11, 0x1c, 0x81, 0x87, 0xcf].map((type) =>
    [`sound of type ${type}`, [{ type }], "audio"] as const
  ),
  ...[0x01, 0x02, 0x10, 0x1b, 0x24, 0x33, 0x42, 0xd1, 0xea, 0xdb].map((type) =>
    [`a picture of type ${type}`, [AAC, { type }], "video"] as const
  ),
  ["two languages", [AAC, AAC], "audio"],
  ["sound with titles", [AAC, { type: 0x15 }], "audio"],
  ["sound with marks for advertisements", [{ type: 0x86 }, AAC], "audio"],
  ["titles and marks alone", [{ type: 0x15 }, { type: 0x86 }], "refused"],
  ["no stream", [], "refused"],
  ["AC-3 as in Europe", [data([0x6a, "\0"])], "audio"],
  ["E-AC-3", [data([0x52, "\x01"], [0x7a, "\0"])], "audio"],
  ["DTS", [data([0x7b, "\0\0\0\0\0"])], "audio"],
  ["AAC", [data([0x7c, "\0"])], "audio"],
  ["AC-4", [data([0x7f, "\x15\0"])], "audio"],
  ["Opus", [data([5, "Opus"], [0x7f, "\x80\x02"])], "audio"],
  ["SMPTE 302M", [data([5, "BSSD"])], "audio"],
  ["AV1", [data([5, "AV01"], [0x80, "\x81\0\0\0"]), data([5, "Opus"])], "video"],
  ["VP9", [data([5, "VP09"])], "video"],
  ["AV1 that is said to be AC-3, too", [data([0x6a, "\0"], [5, "AV01"])], "video"],
  ["data", [data()], "refused"],
  ["sound and data", [AAC, data()], "refused"],
  ["sound and subtitles", [AAC, data([0x59, "eng\x10\0\0\0\0"])], "refused"],
  ["sound and what is registered otherwise", [AAC, data([5, "KLVA"])], "refused"],
  ["sound and a type that is unknown", [AAC, { type: 0x80 }], "refused"],
  ["sound and a section", [AAC, { type: 0x05 }], "refused"],
];

test("the maps of a transport stream tell sound from pictures", async () => {
  for (const [what, streams, outcome] of STREAMS) {
    assertEquals(await kindOf(program(streams)), outcome, what);
    const [table, map] = [programTable(1), programMap(1, streams)];
    const bluRay = [[0, table], [0x101, map]] as const;
    const packets = bluRay.map(([pid, part]) => transportPackets(pid, part, 4));
    assertEquals(await kindOf(Buffer.concat(packets)), outcome, `${what}, 192 bytes each`);
  }
  for (const type of [0x80, 0x82, 0x83, 0x86, 0xa1]) {
    assertEquals(await kindOf(program([{ type }], "HDMV")), "audio", `${type} on Blu-ray`);
    assertEquals(await kindOf(program([{ type }])), "refused", `${type} elsewhere`);
  }
  assertEquals(await kindOf(program([{ type: 0x90 }, AAC], "HDMV")), "refused", "subtitles");
});

/** The packets of a map, with a change of its section. */
const changed = (change: (section: Buffer) => Buffer | void) => {
  const map = programMap(1, [AAC]);
  return transportPackets(0x101, change(map) ?? map);
};
const START = transportPackets(0, programTable(1));
const MAP = transportPackets(0x101, programMap(1, [AAC]));
const FILM = transportPackets(0x102, programMap(2, [AAC, H264]));
const TWO = transportPackets(0, programTable(1, 2));
const PICTURE = transportPackets(0x201, packet(0xe0, Buffer.alloc(500)));
const LONG = Array.from({ length: 40 }, () => data([5, "Opus"], [0x0a, "eng\0"], [0x52, "\0"]));

const WHOLES: readonly Row<Buffer>[] = [
  ["a map after sound", [START, SOUND, MAP], "audio"],
  ["a map that is repeated", [START, MAP, SOUND, START, MAP], "audio"],
  ["a map of several packets", [START, transportPackets(0x101, programMap(1, LONG))], "audio"],
  ["a map with padding", [START, transportPackets(0x101, programMap(1, [AAC])), SOUND], "audio"],
  ["two programs of sound", [TWO, MAP, transportPackets(0x102, programMap(2, [AAC]))], "audio"],
  ["two programs", [TWO, MAP, FILM], "video"],
  ["a network beside the program", [transportPackets(0, programTable(0, 1)), MAP], "audio"],
  [
    "a map that changes",
    [START, MAP, SOUND, transportPackets(0x101, programMap(1, [H264]))],
    "video",
  ],
  ["a program without its map", [TWO, MAP, SOUND], "refused"],
  ["no map", [START, SOUND, SOUND], "refused"],
  ["no table of programs", [MAP, SOUND, MAP], "refused"],
  ["sound alone", [SOUND, SOUND], "refused"],
  ["a film without a map", [PICTURE, SOUND], "refused"],
  ["a picture that no map lists", [START, MAP, SOUND, PICTURE], "refused"],
  ["a map of another program", [START, transportPackets(0x101, programMap(3, [AAC]))], "refused"],
  [
    "half a table",
    [transportPackets(0, section(0, 1, Buffer.from("0001e101", "hex"), { last: 1 })), MAP],
    "refused",
  ],
  [
    "a map that is not yet valid",
    [
      START,
      transportPackets(
        0x101,
        section(2, 1, Buffer.from("e200f0000fe200f000", "hex"), { isCurrent: false }),
      ),
    ],
    "refused",
  ],
  ["a map that was damaged", [START, changed((map) => void map.writeUInt8(0x03, 12))], "refused"],
  ["a damaged map, then another", [START, changed((map) => void map.fill(7, 5)), MAP], "audio"],
  ["a map that was cut", [START, MAP.subarray(0, 100)], "refused"],
  ["sound after damage", [START, MAP, Buffer.alloc(77), SOUND], "audio"],
  ["a map after damage", [START, SOUND, Buffer.alloc(500, "G damage"), MAP, SOUND], "audio"],
  ["the rest of a packet", [START.subarray(20), START, MAP], "refused"],
  ["zeros", [Buffer.from(`G${"\0".repeat(187)}G${"\0".repeat(187)}`)], "refused"],
];

test("a transport stream is refused unless all its maps are read", async () => {
  for (const [what, parts, outcome] of WHOLES) {
    assertEquals(await kindOf(Buffer.concat(parts)), outcome, what);
  }
  const far = [START, ...Array(200).fill(SOUND), MAP];
  assertEquals(await kindOf(Buffer.concat(far)), "refused", "a map after 256 kB");
});

test("a film in a transport stream never becomes sound, whichever bytes are wrong", async () => {
  const film = transport(0x0f, 0x1b);
  const picture = transport(0x1b, 0x06);
  for (const whole of [film, picture, program([data([5, "AV01"]), AAC])]) {
    for (let at = 0; at < 3 * 188; at++) {
      for (const bits of [0x01, 0x06, 0x14, 0x80, 0xff]) {
        const damaged = Buffer.from(whole);
        damaged.writeUInt8(damaged.readUInt8(at) ^ bits, at);
        assertEquals(await kindOf(damaged) === "audio", false, `byte ${at} ^ ${bits}`);
      }
    }
  }
});
