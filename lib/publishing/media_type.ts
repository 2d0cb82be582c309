/**
 * Media types, stated by publishers or detected in content. File names and extensions are ignored,
 * because they prove nothing.
 */

import { Buffer } from "node:buffer";
import { RefusedError } from "../errors/refused_error.ts";
import { StorageError } from "../errors/storage_error.ts";
import { quoted } from "../input/printable.ts";
import { type Kind, MAX_STATED } from "../storage/item.ts";
import { type Bytes, WindowedBlob } from "./bytes.ts";
import { consistsOfFrames, detectFrames, searchFrames } from "./frames.ts";
import { isStub } from "./stubs.ts";
import { isCutTag, skipTags } from "./tags.ts";
import { findTracks } from "./tracks.ts";

/** One name for each format: the registered one that clients know best. */
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
  "audio/x-ms-asf": "video/x-ms-asf", // named after its first stream
  "application/vnd.ms-asf": "video/x-ms-asf",
  "image/mj2": "video/mj2",
};

/** Formats that `file-type` does not know, or takes for others, by their first bytes. */
const SIGNATURES: readonly { readonly pattern: RegExp; readonly type: string | undefined }[] = [
  { pattern: /^(?:RF64|BW64).{4}WAVE/s, type: "audio/wav" }, // ITU-R BS.2088: WAV of any length
  { pattern: /^\.snd\0\0.{6}\0\0\0/s, type: "audio/basic" }, // AU
  { pattern: /^riff.{20}wave/s, type: "Wave64" },
  { pattern: /^FORM.{4}(?!AIF[FC])/s, type: undefined }, // IFF has pictures and more; not AIFF
  // Segments of MP4, and other files that begin with one of its boxes (ISO/IEC 14496-12).
  {
    pattern: /^.{4}(?:styp|sidx|ssix|moof|emsg|prft|uuid|pdin|meta|mfra|imda)/s,
    type: "video/mp4",
  },
  { pattern: /^.{4}skip/s, type: "video/quicktime" }, // as those that begin with `free`
];

/** The names of formats of which neither an audio nor a video type is registered. */
const UNREGISTERED: Readonly<Record<string, string>> = {
  "Wave64": "Wave64",
  "application/mxf": "MXF",
  "application/vnd.rn-realmedia": "RealMedia",
};

/** Containers whose audio has a type of its own, which differs in its first word only. */
const HAS_AUDIO_TYPE = /^video\/(?:mp4|3gpp2?|webm|x-matroska|ogg|x-ms-asf)$/;

const MEDIA_TYPE =
  /^(audio|video)\/[\w.+-]+(; ?[\w-]+=([\w.+-]+|"[\x20-\x21\x23-\x5b\x5d-\x7e]*"))*$/i;

/**
 * Parses an audio or video type. The type becomes lower case, but not its parameters, because they
 * may be case-sensitive.
 */
export function parseMediaType(text: string): string | undefined {
  return MEDIA_TYPE.test(text) && text.length <= MAX_STATED
    ? text.replace(/^[^;]*/, (type) => type.toLowerCase())
    : undefined;
}

/** Returns the kind named by a media type, if any. */
export function kindOf(type: string | undefined): Kind | undefined {
  return /^(audio|video)\//i.exec(type ?? "")?.[1]?.toLowerCase() as Kind | undefined;
}

export interface MediaType {
  readonly kind: Kind;
  readonly type: string;
}

/** Thrown when the publisher has to state what cannot be detected. */
export class UndetectedError extends RefusedError {
  /** The name of what to state. */
  readonly unstated: keyof MediaType;

  /** @param advice What is wrong, and what to state. */
  constructor(
    readonly advice: string,
    { unstated, kind }: { readonly unstated: keyof MediaType; readonly kind: string },
  ) {
    super(`${advice} with --${unstated}`, { kind });
    this.unstated = unstated;
  }
}

/** Properties stated by the publisher. They override detection. */
export type Stated = { readonly [Name in keyof MediaType]?: MediaType[Name] | undefined };

/**
 * Detects the kind and media type of content.
 *
 * @param source Names the content in messages.
 * @param content Read only where its structure requires, never whole.
 * @param stated Properties that need not be detected.
 * @throws {RefusedError} When the content is neither audio nor video, or may be either.
 */
export async function detectMediaType(
  source: string,
  content: Bytes,
  stated: Stated,
): Promise<MediaType> {
  const blob = new WindowedBlob(content);
  const type = stated.type ?? await detectFormat(blob);
  if (type === undefined) {
    throw new UndetectedError(`${quoted(source)} has an unknown format; state its media type`, {
      unstated: "type",
      kind: "unknown format",
    });
  }
  if (stated.type === undefined && content.isWhole && await isStub(blob, type)) {
    const fault = kindOf(type) === "audio" ? "no sound" : "neither sound nor pictures";
    const remedy = "make sure that it is whole";
    throw new RefusedError(`${quoted(source)} begins as ${type}, but has ${fault}; ${remedy}`, {
      kind: "stub",
    });
  }
  const tracks = stated.type === undefined ? await findTracks(blob, type) : undefined;
  if (tracks === undefined) {
    const kind = kindOf(type);
    if (kind !== undefined) return { kind: stated.kind ?? kind, type };
    const name = UNREGISTERED[type];
    if (name === undefined) {
      throw new RefusedError(`${quoted(source)} is ${type}, which is neither audio nor video`, {
        kind: "neither audio nor video",
      });
    }
    const advice = `${quoted(source)} is ${name}, which has no audio or video type; state one`;
    throw new UndetectedError(advice, { unstated: "type", kind: `no type for ${name}` });
  }

  const { kind = tracks.kind } = stated;
  if (kind === undefined) {
    const remedy = "it is unknown whether it is audio or video; state it";
    const advice = `${quoted(source)} is ${type}, but ${remedy}`;
    throw new UndetectedError(advice, { unstated: "kind", kind: "audio or video" });
  }
  if (kind === "video" || !HAS_AUDIO_TYPE.test(type)) return { kind, type };
  return { kind, type: type.replace("video", "audio") + (tracks.isOpus ? "; codecs=opus" : "") };
}

/** Returns the media type of content, or the name of its format if it has none. */
async function detectFormat(content: WindowedBlob): Promise<string | undefined> {
  try {
    await skipTags(content);
    const frames = await detectFrames(content);
    if (frames !== undefined) return frames;

    const start = Buffer.from(await content.read(0, 28)).toString("latin1");
    const signature = SIGNATURES.find(({ pattern }) => pattern.test(start));
    if (signature !== undefined) return signature.type;

    const { fileTypeFromBlob } = await import("file-type"); // not needed if the type is known
    const type: string | undefined = (await fileTypeFromBlob(content))?.mime;
    if (type !== undefined && !consistsOfFrames(type)) return FORMATS[type] ?? type;
    return await searchFrames(content) ?? (await isCutTag(content) ? "audio/mpeg" : undefined);
  } catch (error) {
    if (error instanceof RefusedError || error instanceof StorageError) throw error;
    return undefined; // it throws errors of any kind for damaged content
  }
}
