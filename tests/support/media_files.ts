/** Media files with many contents and names, made from the samples. */

import { dirname } from "node:path";
import { SAMPLE_MP3, SAMPLE_MP4 } from "./paths.ts";

/** Names that break code which splits or quotes, or control terminals. */
const AWKWARD = [
  ...["a b", "it's", '"quoted"', "new\nline", "ünï 🎧", "-dash", "--kind", "$(x) `y` *", "a\\b"],
  ...["tab\t", "%41", "\u202egpj", " lead and trail "],
];

/** Makes files of one kind each, whose content depends only on their number. */
const FORMATS: readonly (readonly [string, (number: number) => Uint8Array])[] = [
  [".mp3", (number) => padded(SAMPLE_MP3, number)],
  [".mp4", (number) => padded(SAMPLE_MP4, number)],
  [".wav", wav],
];

/** A generated file. */
export interface MadeFile {
  readonly path: string;
  /** The last part of its path. */
  readonly name: string;
  readonly content: Uint8Array;
  readonly isMedia: boolean;
}

/** Makes media files and other files in subfolders of a folder, all with awkward names. */
export function makeFiles(folder: string, media: number, others: number): MadeFile[] {
  return Array.from({ length: media + others }, (_, number) => {
    const isMedia = number < media;
    const [extension, make] = FORMATS[number % FORMATS.length] as typeof FORMATS[number];
    const name = `${AWKWARD[number % AWKWARD.length]}${number}${extension}`;
    const path = `${folder}/${AWKWARD[number % 7]}/${AWKWARD[number % 5]}/${name}`;
    const content = isMedia ? make(number) : new TextEncoder().encode(`Dear diary no. ${number}\n`);
    Deno.mkdirSync(dirname(path), { recursive: true });
    Deno.writeFileSync(path, content);
    return { path, name, content, isMedia };
  });
}

/** Makes a second of silence, or less. */
export function wav(number: number): Uint8Array {
  const content = new Uint8Array(2_000 + number);
  content.set(new TextEncoder().encode("RIFF\x24\x00\x00\x00WAVEfmt "));
  return content;
}

/** Appends bytes that no player shows. */
function padded(path: string, number: number): Uint8Array {
  const sample = Deno.readFileSync(path);
  const content = new Uint8Array(sample.length + 1 + number);
  content.set(sample);
  return content;
}
