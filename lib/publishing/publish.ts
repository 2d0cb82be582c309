/** Publishing files. */

import { createHash } from "node:crypto";
import { basename } from "node:path";
import { type Patience, unlessAborted } from "../async/abort.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { quoted, withoutUnprintable } from "../input/printable.ts";
import { readable } from "../input/user_file.ts";
import type { Content, Step } from "../storage/content/content_store.ts";
import type { ContentReference, PublishedItem } from "../storage/item.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import { newToken, type Token } from "../storage/token.ts";
import { type Bytes, fileBytes } from "./bytes.ts";
import { detectMediaType, type MediaType, type Stated } from "./media_type.ts";

/** The number of bytes to read from a file at a time. */
const CHUNK_BYTES = 256 * 1024;

/**
 * The maximum length of a name in UTF-8, as in most file systems. Content-Disposition has the name
 * twice, with up to three characters for a byte, and nginx accepts 4 kB of header from a server by
 * default.
 */
const MAX_NAME_BYTES = 255;

/**
 * The metadata of an item, and options for publishing it. All are optional. The signal cancels the
 * work before anything is published.
 */
export interface PublishOptions extends Stated, Patience {
  readonly token?: Token | undefined;
  readonly name?: string | undefined;
  readonly language?: string | undefined;
  /** Milliseconds since the epoch; defaults to now. */
  readonly publishedAt?: number | undefined;
  /**
   * Whether to return the published item with the same content and name, if there is one, instead
   * of publishing another.
   */
  readonly reuse?: boolean;
  readonly expected?: Expected | undefined;
  /** The properties of the content, if it was already read. */
  readonly found?: Found | undefined;
  /** Wraps the reading of the content, to follow the progress. */
  readonly watch?: ProgressWatcher;
}

/** The properties found by reading content. */
export type Found = MediaType & Content;

/** Properties that the content must have. */
type Expected = {
  readonly [Name in "digest" | "length" | "validator"]?: ContentReference[Name] | undefined;
};

/** Watches the chunks of a file, and passes them on unchanged. The size is in bytes. */
export type ProgressWatcher = (
  chunks: AsyncIterable<Uint8Array>,
  file: { readonly name: string; readonly size: number; readonly step: Step },
) => AsyncIterable<Uint8Array>;

/**
 * Publishes a file, whole or not at all.
 *
 * @returns The item. If its token is not the given one, the item was already published.
 * @throws {RefusedError} When the file cannot be read, is neither audio nor video, or the token is
 *   taken.
 */
export async function publishFile(
  storage: MediaStorage,
  path: string,
  options: PublishOptions = {},
): Promise<PublishedItem> {
  const { token = newToken(), name = fileName(path), reuse, signal } = options;
  await requireFree(storage, token); // fails early; the commit checks again
  using file = await openFile(path, options);
  const { size } = file.bytes;
  const { content } = storage;
  if (content.kind === "bucket" && size > content.maxLength) {
    const limit = `a bucket accepts at most ${content.maxLength} in one PUT`;
    throw new RefusedError(`${quoted(path)} has ${size} bytes; ${limit}`, {
      kind: "too long for a bucket",
    });
  }
  const found = options.found ?? await describeContent(file, options);
  const published = reuse ? await storage.findByContent(found, name) : undefined;
  if (published !== undefined) return published; // before anything is written
  const item = { token, name, ...statedIn(options), ...found };
  return await storage.publish(item, { read: file.read, signal }, reuse);
}

/** Returns the metadata to publish exactly as stated. */
export function statedIn(
  { language, publishedAt = Date.now() }: PublishOptions,
): Pick<PublishedItem, "language" | "publishedAt"> {
  return { publishedAt, ...(language === undefined ? {} : { language }) };
}

/** Content that is open for reading. */
interface OpenContent {
  /** Its path or location, for messages. */
  readonly source: string;
  readonly bytes: Bytes;
  /** Reads it from the beginning. */
  readonly read: (step: Step) => AsyncIterable<Uint8Array>;
  /** The ETag of an object. */
  readonly validator?: string;
}

/**
 * Reads content to its end, and returns its media type, digest and length, without publishing it.
 *
 * @throws {RefusedError} When it cannot be read, is neither audio nor video, or is not as expected.
 */
export async function describeContent(
  content: OpenContent,
  options: PublishOptions,
): Promise<Found> {
  const { source, bytes, read, validator } = content;
  const detected = await unlessAborted(detectMediaType(source, bytes, options), options.signal);
  const found = await hashOf(read("hashing"));
  requireExpected(source, { ...found, validator }, options.expected);
  return { ...detected, ...found };
}

/** Reads content to its end, and returns its SHA-256 in hexadecimal digits and its length. */
export async function hashOf(chunks: AsyncIterable<Uint8Array>) {
  const hash = createHash("sha256");
  let length = 0;
  for await (const chunk of chunks) {
    hash.update(chunk);
    length += chunk.length;
  }
  return { digest: hash.digest("hex"), length };
}

export async function describeFile(path: string, options: PublishOptions) {
  using file = await openFile(path, options);
  return await describeContent(file, options);
}

function requireExpected(
  source: string,
  found: Expected,
  { digest, length, validator }: Expected = {},
): void {
  const rows = [
    ["another length", length, found.length, `has ${found.length} bytes`],
    ["another SHA-256", digest, found.digest, `has the SHA-256 ${found.digest}`],
    ["another ETag", validator, found.validator, `has the ETag ${found.validator}`],
  ] as const;
  for (const [kind, expected, actual, fact] of rows) {
    if (expected === undefined || expected === actual) continue;
    throw new RefusedError(`${quoted(source)} ${fact}; expected ${expected}`, { kind });
  }
}

/** Refuses a token that was ever used. */
export async function requireFree(storage: MediaStorage, token: Token): Promise<void> {
  const { state } = await storage.catalogue.find(token);
  if (state === "unknown") return;
  const history = state !== "unpublished" ? "names a published item" : "named an item before";
  throw new RefusedError(`Token "${token}" ${history}; tokens are never reused`, {
    kind: "used token",
  });
}

/**
 * Opens a non-empty file. Refuses anything else without opening it, because opening a FIFO would
 * block.
 */
async function openFile(
  path: string,
  { name = fileName(path), signal, watch = (chunks) => chunks }: PublishOptions,
): Promise<OpenContent & Disposable> {
  const info = await readable(path, () => Deno.stat(path));
  if (!info.isFile) throw new RefusedError(`${quoted(path)} is not a file`, { kind: "not a file" });
  if (info.size === 0) throw new RefusedError(`${quoted(path)} is empty`, { kind: "empty" });
  const file = await readable(path, () => Deno.open(path));
  const { size, mtime } = await readable(path, () => file.stat());
  const chunk = new Uint8Array(Math.min(size, CHUNK_BYTES));
  const read = async function* () {
    await readable(path, () => file.seek(0, Deno.SeekMode.Start));
    for (let left = size; left >= 0;) {
      const length = await unlessAborted(readable(path, () => file.read(chunk)), signal);
      if (length === null) {
        const now = await readable(path, () => file.stat());
        if (now.size === size && now.mtime?.getTime() === mtime?.getTime()) return;
        break;
      }
      left -= length;
      yield chunk.subarray(0, length);
    }
    throw changed(path);
  };
  return {
    source: path,
    bytes: fileBytes(path, file, size),
    read: (step) => watch(read(), { name, size, step }),
    [Symbol.dispose]: () => file.close(),
  };
}

function changed(path: string): RefusedError {
  return new RefusedError(`${quoted(path)} changed while it was read`, {
    kind: "changed while read",
  });
}

/** Derives the file name offered for saving from a path, and cuts it if it is too long. */
export function fileName(path: string): string {
  const name = withoutUnprintable(basename(path)).replaceAll("\\", "_");
  const { read } = new TextEncoder().encodeInto(name, new Uint8Array(MAX_NAME_BYTES));
  return name.slice(0, read);
}

export const FILE_NAME = `a file name of 1 to ${MAX_NAME_BYTES} bytes in UTF-8, without a path`;

/**
 * Returns the file name to offer for saving, if there is one. As in a derived name, an underscore
 * replaces each unprintable character.
 */
export function parseFileName(text: string): string | undefined {
  const name = withoutUnprintable(text);
  const isFit = /^(?!\.{1,2}$)[^/\\]+$/.test(name);
  return isFit && new TextEncoder().encode(name).length <= MAX_NAME_BYTES ? name : undefined;
}
