/**
 * Content: the bytes of published items, each stored once under its digest.
 */

import type { Body } from "../http/answer.ts";
import type { Awaitable } from "../http/awaitable.ts";
import type { ByteRange } from "../http/byte_range.ts";
import type { StorageError } from "./storage.ts";

/**
 * The maximum length of content, or of a part, that is read at once, without a stream, in bytes. A
 * slow client keeps that much in memory.
 */
export const AT_ONCE = 128 * 1024;

/** Identifies content, and where it is. */
export interface ContentReference {
  /** SHA-256 of the content, 64 lower-case hexadecimal digits. */
  readonly digest: string;
  /** Bytes. */
  readonly length: number;
  /**
   * `s3://bucket/key` of an object published in place; left out for content stored under its
   * digest.
   */
  readonly location?: string;
  /** The ETag of that object when it was published. */
  readonly validator?: string;
}

/** A bucket of an S3-compatible object store, with its credentials. */
export interface BucketSettings {
  readonly kind: "bucket";
  readonly bucket: string;
  /** The prefix of all our keys, without the slash after it; may be empty. */
  readonly prefix: string;
  readonly region: string;
  /** The store's URL; Amazon S3 if left out. */
  readonly endpoint?: string | undefined;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/** Where content is stored, if anywhere. */
export type ContentPlace =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "none" }
  | BucketSettings;

/** Why a source is being read. */
export type Step = "copying" | "hashing" | "sending";

/** Content to store. */
export interface Source {
  /** Reads it from the beginning; some stores read it twice. */
  read(step: Step): AsyncIterable<Uint8Array>;
  /** Cancels the work before anything is published. */
  readonly signal?: AbortSignal | undefined;
}

/** Thrown when a source has changed between two readings. */
export class SourceChangedError extends Error {
  override readonly name = "SourceChangedError";
}

/** An existing object of the bucket under its own key, which can be published in place. */
export interface ExistingContent extends Required<Omit<ContentReference, "digest">> {
  /** Opens it, or a range of it; fails if the object was replaced meanwhile. */
  open(range?: ByteRange): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
}

/** Staged content: complete, but not yet in its place. Must be disposed of. */
export interface Staged extends AsyncDisposable {
  /** SHA-256, 64 lower-case hexadecimal digits. */
  readonly digest: string;
  /** Bytes. */
  readonly length: number;
}

/** How stored content compares with what was published. */
export type Comparison =
  | { readonly state: "same" }
  | { readonly state: "missing" | "different"; readonly reason: string };

/**
 * A content store. Every method throws {@linkcode StorageError} when the store fails. Content can
 * only be published in the store that staged it.
 */
export interface ContentStore {
  /** Bytes of the longest content that it accepts, if there is a limit. */
  readonly maxLength?: number;

  /** Returns the store's identifier: empty before it has one, `undefined` if it does not exist. */
  id(): Promise<string | undefined>;

  /** Creates the store if it does not exist, and sets its identifier if it has none. */
  create(id: string): Promise<void>;

  /** Checks that the store exists and has this identifier. */
  check(id: string): Promise<void>;

  /** Checks that content exists with the length it was published with. */
  requireContent(content: ContentReference): Awaitable<void>;

  /**
   * Opens content, or a range of it. A stream reads only as fast as it is consumed. Bytes may be
   * borrowed: whoever returns them (`borrowed_bytes.ts`) must be the only one who used them.
   */
  open(content: ContentReference, range?: ByteRange): Awaitable<Body>;

  /** Copies content while hashing it, without moving it to its place yet. */
  stage(source: Source): Promise<Staged>;

  /**
   * Runs a change that affects which items use some content, exclusively for that content. If the
   * process is killed meanwhile, no item loses its content.
   *
   * @param digest The content's digest.
   * @param isUsed Whether any published item currently uses the content with a digest.
   * @param change Commits to the catalogue.
   * @param staged Content to move to its place first.
   */
  change<T>(
    digest: string,
    isUsed: (digest: string) => Promise<boolean>,
    change: () => Promise<T>,
    staged?: Staged,
  ): Promise<T>;

  /** Runs an action, during which the content with these digests is not removed. */
  hold<T>(digests: readonly string[], action: () => Promise<T>): Promise<T>;

  /** Returns the fault of each content; `undefined` if it is stored as referenced. */
  faultsIn(contents: readonly ContentReference[]): Promise<(StorageError | undefined)[]>;

  /**
   * Inspects an existing object, if the store is a bucket.
   *
   * @param location `s3://bucket/key`
   */
  inspect?(location: string): Promise<ExistingContent>;

  /** Compares content with what is stored now, without reading it. */
  compare(content: ContentReference): Promise<Comparison>;

  /** Lists the digests of all content copied here, reading incrementally. */
  list(): AsyncIterable<string>;

  /**
   * Whether content is stored that no item uses and nobody is publishing.
   *
   * @param isUsed As in {@linkcode ContentStore.change}.
   */
  isUnused(digest: string, isUsed: (digest: string) => Promise<boolean>): Promise<boolean>;

  /** Milliseconds for which content may be stored before its publication shows. */
  readonly settling?: number;

  /** Releases all resources. */
  close?(): Promise<void>;
}
