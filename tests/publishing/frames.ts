/** Frames of sound that is not in a container: a header, then zeros. */

import { Buffer } from "node:buffer";

/** The header of a frame in hexadecimal digits, and its length in bytes. */
export const FRAMES = {
  "MP3": ["fffb9064", 417],
  "MP3, MPEG-2": ["fff38064", 208],
  "MP3, MPEG-2.5": ["ffe38064", 417],
  "MP3, free format": ["fffb0064", 300],
  "MP2": ["fffd8064", 417],
  "MP2, MPEG-2": ["fff58064", 417],
  "MP1 with CRC": ["fffe5064", 172], // begins as a text in UTF-16 does
  "AAC": ["fff15080041ffc", 32],
  "AC-3": ["0b7700000040", 128],
  "AC-3 at 44.1 kHz": ["0b7700004140", 140],
  "E-AC-3": ["0b77003f3f80", 128],
} as const satisfies Record<string, readonly [header: string, length: number]>;

export type FrameName = keyof typeof FRAMES;

export function frames(name: FrameName, count: number): Buffer {
  const [header, length] = FRAMES[name];
  const frame = Buffer.alloc(length);
  frame.write(header, "hex");
  return Buffer.concat(Array(count).fill(frame));
}
