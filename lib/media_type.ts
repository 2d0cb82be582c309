/**
 * What kind of media some content is.
 */

import { typeByExtension } from "@std/media-types";
import { fileTypeFromBuffer } from "file-type";
import { extname } from "node:path";
import type { Kind } from "./storage/storage.ts";

/** How much of the beginning of a file is enough to tell, in bytes. */
export const HEAD_LENGTH = 64 * 1024;

/** Names that stand for a registered one: what clients know best is what is sent. */
const PREFERRED: Readonly<Record<string, string>> = {
  "audio/x-m4a": "audio/mp4",
  "audio/x-flac": "audio/flac",
  "audio/wave": "audio/wav",
  "video/x-m4v": "video/mp4",
  "video/matroska": "video/x-matroska",
};

/** Containers that may hold sound alone, where only the publisher knows. */
const SOUND_CONTAINERS = ["video/mp4", "video/webm", "video/ogg", "video/3gpp", "video/x-matroska"];

/** Why some content cannot be published, in words for the publisher. */
export class MediaTypeError extends Error {
  override readonly name = "MediaTypeError";
}

/** What the publisher says, which counts before anything detected. */
export interface Stated {
  readonly kind?: Kind | undefined;
  readonly type?: string | undefined;
}

/**
 * Tells the media type of a file by its content, or else by its extension.
 *
 * @param file The file's name.
 * @param head The beginning of its content.
 * @param stated What the publisher says instead.
 * @throws {MediaTypeError} When it is neither audio nor video, or not of the kind stated.
 */
export async function detectMediaType(
  file: string,
  head: Uint8Array,
  stated: Stated,
): Promise<{ kind: Kind; type: string }> {
  const type = stated.type ?? await detect(file, head);
  if (type === undefined) {
    throw new MediaTypeError(`Cannot tell what "${file}" is; state it with --type`);
  }
  const kind = /^(audio|video)\//.exec(type)?.[1] as Kind | undefined;
  if (kind === undefined) {
    throw new MediaTypeError(`"${file}" is ${type}, which is neither audio nor video`);
  }
  if (stated.kind === undefined || stated.kind === kind) return { kind, type };
  if (stated.type === undefined && stated.kind === "audio" && SOUND_CONTAINERS.includes(type)) {
    return { kind: "audio", type: type.replace("video/", "audio/") };
  }
  throw new MediaTypeError(`"${file}" is ${type}, so its kind cannot be ${stated.kind}`);
}

async function detect(file: string, head: Uint8Array): Promise<string | undefined> {
  let detected: string | undefined = (await fileTypeFromBuffer(head))?.mime;
  if (detected === "application/ogg") detected = undefined; // a container of anything
  // An extension proves little: ".ts" is a transport stream's, and TypeScript's.
  const type = detected ?? (isText(head) ? "text/plain" : typeByExtension(extname(file)));
  return type === undefined ? undefined : PREFERRED[type] ?? type;
}

/** Whether this is the beginning of a text in UTF-8, without control characters but white space. */
function isText(head: Uint8Array): boolean {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true });
    return !/[^\P{Cc}\t\n\f\r]/u.test(text);
  } catch {
    return false;
  }
}
