/**
 * Detecting media types by content alone: names and extensions prove nothing.
 */

import { fileTypeFromBuffer } from "file-type";
import type { Kind } from "../storage/storage.ts";
import { type Bytes, withBeginning } from "./tracks/bytes.ts";
import { isoTracks } from "./tracks/iso_media.ts";
import { matroskaTracks } from "./tracks/matroska.ts";
import { oggTracks } from "./tracks/ogg.ts";
import type { Track } from "./tracks/track.ts";

/** Bytes at the beginning that are enough to detect the format. */
const HEAD_LENGTH = 64 * 1024;

/** One name for each format: of the registered ones, the one that clients know best. */
const FORMATS: Readonly<Record<string, string>> = {
  "audio/x-m4a": "video/mp4",
  "audio/mp4": "video/mp4",
  "audio/x-flac": "audio/flac",
  "audio/wave": "audio/wav",
  "video/x-m4v": "video/mp4",
  "video/matroska": "video/x-matroska",
  "video/MP1S": "video/mpeg", // a program stream in a file, not in RTP packets
  "video/MP2P": "video/mpeg",
  "audio/ogg": "video/ogg",
  "audio/ogg; codecs=opus": "video/ogg",
  "application/ogg": "video/ogg",
};

/** A format whose kind and media type depend on its tracks. */
interface Container {
  readonly tracks: (content: Bytes) => Promise<Track[]>;
  /** The type if there is no picture. */
  readonly soundType: string;
}

const CONTAINERS: Readonly<Record<string, Container>> = {
  "video/mp4": { tracks: isoTracks, soundType: "audio/mp4" },
  "video/3gpp": { tracks: isoTracks, soundType: "audio/3gpp" },
  "video/3gpp2": { tracks: isoTracks, soundType: "audio/3gpp2" },
  "video/quicktime": { tracks: isoTracks, soundType: "video/quicktime" }, // no audio type is registered
  "video/webm": { tracks: matroskaTracks, soundType: "audio/webm" },
  "video/x-matroska": { tracks: matroskaTracks, soundType: "audio/x-matroska" },
  "video/ogg": { tracks: oggTracks, soundType: "audio/ogg" },
};

/** Thrown for content that cannot be published. The message is for the publisher. */
export class MediaTypeError extends Error {
  override readonly name = "MediaTypeError";
}

/** What the publisher states, which overrides detection. */
export interface Stated {
  readonly kind?: Kind | undefined;
  readonly type?: string | undefined;
}

/** The type of some content. */
export interface MediaType {
  readonly kind: Kind;
  readonly type: string;
}

/**
 * Detects the kind and media type of content.
 *
 * @param content Read only where its structure requires, never whole.
 * @param stated What the publisher states instead.
 * @throws {MediaTypeError} When it is neither audio nor video, or not of the stated kind. The
 *   message continues the name of the file.
 */
export async function detectMediaType(content: Bytes, stated: Stated): Promise<MediaType> {
  if (stated.type !== undefined) return ofKind(stated.type, stated.kind);
  const bytes = await withBeginning(content, HEAD_LENGTH); // most parts are there, and small
  const type = await detectFormat(bytes);
  if (type === undefined) {
    throw new MediaTypeError("has an unknown format; state its media type with --type");
  }
  const container = CONTAINERS[type];
  if (container === undefined) return ofKind(type, stated.kind);

  const tracks = await container.tracks(bytes);
  const sounds = tracks.filter(({ holds }) => holds === "sound");
  const hasPicture = tracks.some(({ holds }) => holds === "picture");
  if (sounds.length === 0 && !hasPicture) {
    throw new MediaTypeError(
      `is ${type} without an audio or video track; if it is complete, state its type with --type`,
    );
  }
  const { soundType } = container;
  const isOpus = sounds.every(({ codec }) => codec === "opus");
  const asSound = {
    kind: "audio",
    type: isOpus ? `${soundType}; codecs=opus` : soundType,
  } as const;
  const detected = hasPicture ? { kind: "video", type } as const : asSound;
  if (stated.kind === undefined || stated.kind === detected.kind) return detected;
  if (sounds.length > 0 && stated.kind === "audio") return asSound;
  throw wrongKind(detected.type, stated.kind, hasPicture ? "it has no sound" : "it has no picture");
}

/** Uses a type as stated. */
function ofKind(type: string, stated: Kind | undefined): MediaType {
  const kind = /^(audio|video)\//.exec(type)?.[1] as Kind | undefined;
  if (kind === undefined) {
    throw new MediaTypeError(`is ${type}, which is neither audio nor video`);
  }
  if (stated !== undefined && stated !== kind) throw wrongKind(type, stated);
  return { kind, type };
}

function wrongKind(type: string, kind: Kind, why?: string): MediaTypeError {
  const because = why === undefined ? "" : ` (${why})`;
  return new MediaTypeError(`is ${type}, so its kind cannot be ${kind}${because}`);
}

async function detectFormat(content: Bytes): Promise<string | undefined> {
  const head = await content.read(await tagsLength(content), HEAD_LENGTH);
  const type: string | undefined = (await fileTypeFromBuffer(head))?.mime;
  return type === undefined ? undefined : FORMATS[type] ?? type;
}

/** ID3v2 tags to skip before the sound: usually one, or one and its update. */
const MAX_TAGS = 4;

/**
 * Measures the ID3v2 tags at the beginning, which may contain pictures of any size, with the
 * padding after each tag, which its own length leaves out.
 */
async function tagsLength(content: Bytes): Promise<number> {
  let length = 0;
  for (let count = 0; count < MAX_TAGS; count++) {
    const [i, d, three, _version, _revision, flags = 0, ...size] = await content.read(length, 10);
    if (i !== 0x49 || d !== 0x44 || three !== 0x33 || size.length < 4) return length;
    const footer = flags & 0x10 ? 10 : 0;
    // Seven bits of each byte count (ID3v2.4 §6.2).
    length += 10 + size.reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0) + footer;
    const padding = (await content.read(length, HEAD_LENGTH)).findIndex((byte) => byte !== 0);
    length += Math.max(0, padding);
  }
  return length;
}
