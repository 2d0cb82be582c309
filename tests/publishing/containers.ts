/** The smallest containers, written byte by byte, with the tracks that one names. */

import { Buffer } from "node:buffer";

export const ascii = (text: string) => Buffer.from(text, "latin1");
export const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const uint16 = (value: number) => uint32(value).subarray(2);
const littleEndian = (value: number) => uint32(value).reverse();

/** A box of MP4. */
export const box = (type: string, ...parts: Buffer[]) => {
  const content = Buffer.concat(parts);
  return Buffer.concat([uint32(8 + content.length), ascii(type), content]);
};

/** MP4, 3GP or QuickTime of a brand, with tracks of these types: `soun` and `vide`. */
export const iso = (brand: string, ...handlers: string[]) => {
  const track = (handler: string) =>
    box("trak", box("mdia", box("hdlr", Buffer.alloc(8), ascii(handler))));
  return Buffer.concat([
    box("ftyp", ascii(brand), uint32(0)),
    ...handlers.length > 0 ? [box("moov", ...handlers.map(track))] : [],
    box("mdat", Buffer.of(0)),
  ]);
};

/** An element of Matroska with a length of eight bytes. */
export const element = (id: string, ...parts: Buffer[]) => {
  const content = Buffer.concat(parts);
  return Buffer.concat([ascii(id), ascii("\x01\0\0\0"), uint32(content.length), content]);
};
export const [SEGMENT, TRACKS, ENTRY] = ["\x18\x53\x80\x67", "\x16\x54\xae\x6b", "\xae"] as const;
const CLUSTER = "\x1f\x43\xb6\x75";

/** Matroska or WebM with tracks of these types: 1 is video, 2 sound. */
export const matroska = (docType: string, ...types: number[]) => {
  const entries = types.map((type) => element(ENTRY, element("\x83", Buffer.of(type))));
  const tracks = types.length > 0 ? [element(TRACKS, ...entries)] : [];
  const header = element("\x1a\x45\xdf\xa3", element("\x42\x82", ascii(docType)));
  return Buffer.concat([header, element(SEGMENT, ...tracks, element(CLUSTER, Buffer.of(0)))]);
};

/** A page of Ogg. Only those of headers have the position 0. */
export const page = (flags: number, stream: number, content: Buffer) => {
  const head = ascii(`OggS\0${String.fromCharCode(flags)}${"\0".repeat(20)}\x01`);
  head.writeUInt8(flags === 2 ? 0 : 1, 6);
  head.writeUInt32LE(stream, 14);
  return Buffer.concat([head, Buffer.from([content.length]), content]);
};

/** ASF with streams of these types. */
export const asf = (...types: ("audio" | "video")[]) => {
  const guids = {
    audio: "409e69f84d5bcf11a8fd00805f5c442b",
    video: "c0ef19bc4d5bcf11a8fd00805f5c442b",
  };
  const object = (guid: string, content: Buffer) => {
    const length = littleEndian(24 + content.length);
    return Buffer.concat([Buffer.from(guid, "hex"), length, uint32(0), content]);
  };
  const streams = types.map((type) =>
    object("9107dcb7b7a9cf118ee600c00c205365", Buffer.from(guids[type], "hex"))
  );
  const count = Buffer.concat([littleEndian(types.length), ascii("\x01\x02")]);
  return object("3026b2758e66cf11a6d900aa0062ce6c", Buffer.concat([count, ...streams]));
};

/** A chunk of RIFF, padded. */
const chunk = (id: string, ...parts: Buffer[]) => {
  const content = Buffer.concat(parts);
  const padding = Buffer.alloc(content.length % 2);
  return Buffer.concat([ascii(id), littleEndian(content.length), content, padding]);
};

/** AVI with streams of these types: `auds` and `vids`. */
export const avi = (...types: string[]) => {
  const stream = (type: string) =>
    chunk("LIST", ascii("strl"), chunk("strh", ascii(type), Buffer.alloc(52)));
  const header = chunk("LIST", ascii("hdrl"), chunk("JUNK", ascii("odd")), ...types.map(stream));
  return chunk("RIFF", ascii("AVI "), header, chunk("LIST", ascii("movi")));
};

/** FLV with these flags, 4 for sound and 1 for video, and tags of these types: 8 and 9, 18 is data. */
export const flv = (flags: number, ...tags: number[]) => {
  const tag = (type: number) =>
    Buffer.concat([Buffer.of(type), uint32(5).subarray(1), Buffer.alloc(7 + 5), uint32(11 + 5)]);
  const header = Buffer.concat([ascii("FLV\x01"), Buffer.of(flags), uint32(9), uint32(0)]);
  return Buffer.concat([header, ...tags.map(tag)]);
};

/** The beginnings of packs in MPEG-1 and in MPEG-2 program streams; the latter has stuffing. */
export const MPEG1_PACK = Buffer.from("000001ba2100010001800001", "hex");
export const MPEG2_PACK = Buffer.from("000001ba44000400040100000ffaffff", "hex");

/** A system header of a program stream that lists streams by their codes. */
export const systemHeader = (audioBound: number, videoBound: number, ...codes: number[]) =>
  packet(
    0xbb,
    Buffer.from([0x80, 0, 1, audioBound << 2, 0x20 | videoBound, 0xff]),
    ...codes.map((code) => Buffer.from([code, 0xc0, 0x20])),
  );

/** A packet of a program stream. */
export function packet(code: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([0, 0, 1, code]), uint16(content.length), content]);
}

/** A stream in the map of a program: its type, and descriptors by their tags. */
export interface MappedStream {
  readonly type: number;
  readonly descriptors?: readonly (readonly [tag: number, content: string])[];
}

const descriptor = ([tag, content]: readonly [tag: number, content: string]) =>
  Buffer.concat([Buffer.of(tag, content.length), ascii(content)]);

/** The checksum of a section (ISO/IEC 13818-1 annex A), as MPEG computes it: from the highest bit. */
function checksum(bytes: Buffer): Buffer {
  const crc = bytes.reduce((crc, byte) => {
    let next = crc ^ byte << 24;
    for (let bit = 0; bit < 8; bit++) next = next << 1 ^ (next < 0 ? 0x04c11db7 : 0);
    return next;
  }, -1);
  return uint32(crc >>> 0);
}

/** A section of a table. */
export function section(
  table: number,
  id: number,
  content: Buffer,
  { isCurrent = true, number = 0, last = 0 } = {},
): Buffer {
  const version = 0xc0 | (isCurrent ? 1 : 0);
  const rest = Buffer.concat([uint16(id), Buffer.of(version, number, last), content]);
  const whole = Buffer.concat([Buffer.of(table), uint16(0xb000 | rest.length + 4), rest]);
  return Buffer.concat([whole, checksum(whole)]);
}

/** The table of programs, by their numbers: each has its map at 256 and its number. */
export const programTable = (...programs: number[]) =>
  section(
    0,
    1,
    Buffer.concat(programs.map((it) => Buffer.concat([uint16(it), uint16(0xe100 + it)]))),
  );

/** The map of a program. */
export const programMap = (program: number, streams: readonly MappedStream[], names = "") => {
  const info = names === "" ? Buffer.alloc(0) : descriptor([5, names]);
  const entries = streams.map(({ type, descriptors = [] }, at) => {
    const described = Buffer.concat(descriptors.map(descriptor));
    return Buffer.concat([
      Buffer.of(type),
      uint16(0xe200 + at),
      uint16(0xf000 | described.length),
      described,
    ]);
  });
  const content = [uint16(0xe200), uint16(0xf000 | info.length), info, ...entries];
  return section(2, program, Buffer.concat(content));
};

/** Packets of a transport stream with a section, or with the beginning of a packet of a stream. */
export function transportPackets(pid: number, content: Buffer, prefix = 0): Buffer {
  const isSection = content.readUIntBE(0, 3) !== 1;
  let rest = isSection ? Buffer.concat([Buffer.of(0), content]) : content;
  const packets: Buffer[] = [];
  for (let isStart = true; rest.length > 0; isStart = false) {
    const header = Buffer.of(0x47, pid >> 8 | (isStart ? 0x40 : 0), pid & 0xff, 0x10);
    const payload = Buffer.alloc(184, 0xff);
    rest.copy(payload);
    packets.push(Buffer.alloc(prefix), header, payload);
    rest = rest.subarray(184);
  }
  return Buffer.concat(packets);
}

/** A transport stream with one program that has these streams, or none. */
export const transport = (...types: number[]) =>
  Buffer.concat([
    transportPackets(0, programTable(1)),
    ...types.length > 0
      ? [transportPackets(0x101, programMap(1, types.map((type) => ({ type }))))]
      : [],
    transportPackets(0x200, packet(0xc0, Buffer.alloc(400))),
  ]);
