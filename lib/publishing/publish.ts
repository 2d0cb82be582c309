/**
 * Publishing files.
 */

import { createHash } from "node:crypto";
import { basename } from "node:path";
import { TokenTakenError } from "../storage/catalogue.ts";
import { SourceChangedError, type Step } from "../storage/content.ts";
import type { MediaStorage } from "../storage/media_storage.ts";
import type { Kind, PublishedItem } from "../storage/storage.ts";
import { newToken, type Token } from "../storage/token.ts";
import { detectMediaType, type MediaType, MediaTypeError } from "./media_type.ts";
import { isPrintable, quoted, withoutUnprintable } from "./printable.ts";
import { type Bytes, fileBytes } from "./tracks/bytes.ts";
import { unlessAborted } from "./abort.ts";

/** Bytes to read from a file at a time. */
const CHUNK = 256 * 1024;

/** Metadata of an item, and how to publish it; everything has a default. */
export interface PublishOptions {
  readonly token?: Token | undefined;
  readonly kind?: Kind | undefined;
  readonly type?: string | undefined;
  readonly name?: string | undefined;
  readonly language?: string | undefined;
  /** Milliseconds since the epoch; defaults to now. */
  readonly publishedAt?: number | undefined;
  /**
   * Returns the published item with the same content and name, if there is one, instead of
   * publishing another. If one is likely, the file is hashed before it is copied, otherwise while.
   */
  readonly reuse?: "likely" | "unlikely" | undefined;
  /** What the content must match. */
  readonly expected?: Expected | undefined;
  /** Cancels the work before anything is published. */
  readonly signal?: AbortSignal;
  /** Wraps the reading of the content, to follow the progress. */
  readonly watch?: ProgressWatcher;
}

/** What content must match, as far as that is known. */
export interface Expected {
  /** SHA-256, 64 lower-case hexadecimal digits. */
  readonly digest?: string | undefined;
  /** Bytes. */
  readonly length?: number | undefined;
  /** The ETag of an object. */
  readonly validator?: string | undefined;
}

/** Passes the chunks of a file on unchanged. The size is in bytes. */
export type ProgressWatcher = (
  chunks: AsyncIterable<Uint8Array>,
  file: { readonly name: string; readonly size: number; readonly step: Step },
) => AsyncIterable<Uint8Array>;

/** Thrown for something that cannot be published. The message is for the publisher. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/**
 * Publishes a file, whole or not at all.
 *
 * @returns The item. If its token is not the one asked for, it had already been published.
 * @throws {RefusedError} When the file cannot be read, is neither audio nor video, or the token is
 *   taken.
 * @throws {StorageError} When storage fails.
 * @throws The signal's abort reason.
 */
export async function publishFile(
  storage: MediaStorage,
  path: string,
  options: PublishOptions = {},
): Promise<PublishedItem> {
  const { token = newToken(), name = fileName(path), reuse, expected, signal } = options;
  const { watch = (chunks) => chunks } = options;
  await requireFree(storage, token); // fails early; the commit checks again
  const { file, size } = await openFile(path);
  using _file = file;
  if (size > storage.maxLength) {
    const limit = `a bucket accepts at most ${storage.maxLength} in one PUT`;
    throw new RefusedError(`${quoted(path)} has ${size} bytes; ${limit}`);
  }
  try {
    const detected = await detect(path, fileBytes(file, size), options);
    const chunk = new Uint8Array(Math.min(size, CHUNK));
    const read = (step: Step) =>
      watch(readAll(file, { path, chunk, signal }), { name, size, step });
    if (reuse === "likely") {
      const digest = await sha256Of(read("hashing"));
      const item = await storage.findByContent({ digest, length: size }, name);
      if (item !== undefined) return item;
    }
    await using staged = await storage.stage({ read, signal });
    requireExpected(path, staged, expected);
    signal?.throwIfAborted();
    if (reuse !== undefined) {
      const { digest, length } = staged;
      const item = await storage.findByContent({ digest, length }, name);
      if (item !== undefined) return item;
    }
    return await storage.publish({ token, ...detected, name, ...statedIn(options) }, staged);
  } catch (error) {
    if (error instanceof TokenTakenError) throw new RefusedError(error.message);
    if (error instanceof SourceChangedError) {
      throw new RefusedError(`${quoted(path)} changed while it was read`);
    }
    throw error;
  }
}

/** Returns the metadata that is published as stated. */
export function statedIn(
  { language, publishedAt = Date.now() }: PublishOptions,
): Pick<PublishedItem, "language" | "publishedAt"> {
  return { publishedAt, ...(language === undefined ? {} : { language }) };
}

/** Computes the SHA-256 of content, in hexadecimal digits. */
export async function sha256Of(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) hash.update(chunk);
  return hash.digest("hex");
}

/**
 * Reads a whole file, and returns its media type, digest and length, without publishing it.
 *
 * @throws {RefusedError} When it cannot be read, or is neither audio nor video.
 * @throws The signal's abort reason.
 */
export async function inspectFile(
  path: string,
  options: Pick<PublishOptions, "kind" | "type" | "signal" | "watch">,
): Promise<MediaType & Required<Pick<Expected, "digest" | "length">>> {
  const { signal, watch = (chunks) => chunks } = options;
  const { file, size } = await openFile(path);
  using _file = file;
  const detected = await detect(path, fileBytes(file, size), options);
  const chunk = new Uint8Array(Math.min(size, CHUNK));
  const progress = { name: fileName(path), size, step: "hashing" } as const;
  const digest = await sha256Of(watch(readAll(file, { path, chunk, signal }), progress));
  return { ...detected, digest, length: size };
}

/**
 * Requires content to match what is expected.
 *
 * @throws {RefusedError} When it does not.
 */
export function requireExpected(
  source: string,
  found: Expected,
  { digest, length, validator }: Expected = {},
): void {
  const difference = length !== undefined && length !== found.length
    ? `has ${found.length} bytes; expected ${length}`
    : digest !== undefined && digest !== found.digest
    ? `has the SHA-256 ${found.digest}; expected ${digest}`
    : validator !== undefined && validator !== found.validator
    ? `has the ETag ${found.validator}; expected ${validator}`
    : undefined;
  if (difference !== undefined) throw new RefusedError(`${quoted(source)} ${difference}`);
}

/**
 * Requires a token that was never used.
 *
 * @throws {RefusedError} When it was.
 */
export async function requireFree(storage: MediaStorage, token: Token): Promise<void> {
  const { state } = await storage.lookUp(token);
  if (state === "unknown") return;
  const history = state !== "unpublished" ? "names a published item" : "named an item before";
  throw new RefusedError(`Token "${token}" ${history}; tokens are never reused`);
}

/** Detects the kind and media type of content, and refuses content that has none. */
export async function detect(
  source: string,
  content: Bytes,
  { kind, type, signal }: Pick<PublishOptions, "kind" | "type" | "signal">,
): Promise<MediaType> {
  try {
    return await unlessAborted(detectMediaType(content, { kind, type }), signal);
  } catch (error) {
    if (!(error instanceof MediaTypeError)) throw error;
    throw new RefusedError(`${quoted(source)} ${error.message}`);
  }
}

/** Opens a regular, non-empty file. Anything else is refused first: opening a FIFO would block. */
async function openFile(path: string): Promise<{ file: Deno.FsFile; size: number }> {
  const { size, ...info } = await readable(path, () => Deno.stat(path));
  const other = OTHERS.find(([is]) => info[is])?.[1];
  if (other !== undefined) throw new RefusedError(`${quoted(path)} is ${other}, not a file`);
  if (size === 0) throw new RefusedError(`${quoted(path)} is empty`);
  return { file: await readable(path, () => Deno.open(path)), size };
}

const OTHERS = [
  ["isDirectory", "a folder"],
  ["isFifo", "a FIFO"],
  ["isSocket", "a socket"],
  ["isCharDevice", "a device"],
  ["isBlockDevice", "a device"],
] as const;

async function* readAll(
  file: Deno.FsFile,
  { path, chunk, signal }: {
    readonly path: string;
    readonly chunk: Uint8Array;
    readonly signal: AbortSignal | undefined;
  },
): AsyncGenerator<Uint8Array> {
  await readable(path, () => file.seek(0, Deno.SeekMode.Start));
  for (;;) {
    const read = await unlessAborted(readable(path, () => file.read(chunk)), signal);
    if (read === null) return;
    yield chunk.subarray(0, read);
  }
}

/** Runs an operation on the file to publish, and refuses the file if it fails. */
async function readable<T>(path: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) {
      throw new RefusedError(`${quoted(path)} cannot be read`, { cause });
    }
    // Deno replaces bytes that are not UTF-8 before the program sees them.
    const hint = path.includes("\ufffd")
      ? "; names must be UTF-8: rename the file, or pass a link to it"
      : "";
    throw new RefusedError(`There is no file ${quoted(path)}${hint}`);
  }
}

/** Derives from a path the file name to offer for saving. */
export function fileName(path: string): string {
  return withoutUnprintable(basename(path)).replaceAll("\\", "_");
}

/** Whether a name can be offered for saving: no path, no unprintable characters. */
export function isFileName(name: string): boolean {
  return /^[^/\\]{1,255}$/u.test(name) && isPrintable(name) && name !== "." && name !== "..";
}
