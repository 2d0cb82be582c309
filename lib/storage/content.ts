/**
 * Content: the bytes of published items, each stored once under its digest.
 */

import type { Body } from "../http/answer.ts";
import type { Awaitable } from "../http/awaitable.ts";
import type { ByteRange } from "../http/byte_range.ts";
import type { StorageError } from "./storage.ts";

/** What content is, and where. */
export interface ContentReference {
  /** SHA-256 of the content, 64 lower-case hexadecimal digits. */
  readonly digest: string;
  /** Bytes. */
  readonly length: number;
  /** `s3://bucket/key` of an object published in place; left out where the digest is the place. */
  readonly location?: string;
  /** The ETag of that object when it was published. */
  readonly validator?: string;
}

/** A bucket of an S3-compatible object store, and what it takes to use it. */
export interface BucketSettings {
  readonly kind: "bucket";
  readonly bucket: string;
  /** What the keys of all objects of ours begin with, without the slash that follows; may be empty. */
  readonly prefix: string;
  readonly region: string;
  /** Where the store is; Amazon's own when left out. */
  readonly endpoint?: string | undefined;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/** Where content is kept, if anywhere. */
export type ContentPlace =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "none" }
  | BucketSettings;

/** What is done with a source while it is read. */
export type Step = "copying" | "hashing" | "sending";

/** Content to take in. */
export interface Source {
  /** Reads it from the beginning; some places read it twice. */
  read(step: Step): AsyncIterable<Uint8Array>;
  /** Ends the work before anything is published. */
  readonly signal?: AbortSignal | undefined;
}

/** A source gave other bytes when it was read again. */
export class SourceChangedError extends Error {
  override readonly name = "SourceChangedError";
}

/** An object that is in the bucket under a key of its own, and can be published where it is. */
export interface ExistingContent extends Required<Omit<ContentReference, "digest">> {
  /** Opens it, or a range of it; it fails when the object is another one by now. */
  open(range?: ByteRange): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
}

/** Content on its way in: whole, and not yet in its place. To be disposed of in any case. */
export interface Staged extends AsyncDisposable {
  /** SHA-256, 64 lower-case hexadecimal digits. */
  readonly digest: string;
  /** Bytes. */
  readonly length: number;
}

/** How what is in the place of content compares with what was published. */
export type Comparison =
  | { readonly state: "same" }
  | { readonly state: "missing" | "different"; readonly reason: string };

/**
 * A place for content. Every method throws {@linkcode StorageError} when the place fails. What
 * {@linkcode ContentStore.stage} gives is for the same place alone.
 */
export interface ContentStore {
  /** Bytes of the longest content that it takes, if there is a limit. */
  readonly maxLength?: number;

  /** The name that the place has for itself: empty before it got one, `undefined` without a place. */
  id(): Promise<string | undefined>;

  /** Makes the place, unless it is there, and gives it a name, unless it has one. */
  create(id: string): Promise<void>;

  /** Makes sure that the place is there, and is the one of this name. */
  check(id: string): Promise<void>;

  /** Makes sure that content is there with the length that it was published with. */
  requireContent(content: ContentReference): Awaitable<void>;

  /** Opens content, or a range of it. A stream is read no faster than it is consumed. */
  open(content: ContentReference, range?: ByteRange): Awaitable<Body>;

  /** Takes content in while hashing it, without giving it its place yet. */
  stage(source: Source): Promise<Staged>;

  /**
   * Runs a change of what uses some content, as the only one at work on it. Should the process be
   * killed in the midst of it, no item lacks its content.
   *
   * @param digest The content concerned.
   * @param isUsed Whether any published item uses the content of a digest, by now.
   * @param change Commits to the catalogue.
   * @param staged Content to put in its place before that.
   */
  change<T>(
    digest: string,
    isUsed: (digest: string) => Promise<boolean>,
    change: () => Promise<T>,
    staged?: Staged,
  ): Promise<T>;

  /** Runs an action while the content of none of these digests is removed. */
  hold<T>(digests: readonly string[], action: () => Promise<T>): Promise<T>;

  /** Says what is wrong with each of these; `undefined` where it is there as it is described. */
  faultsIn(contents: readonly ContentReference[]): Promise<(StorageError | undefined)[]>;

  /**
   * Looks at an object that is there already, where a place has such.
   *
   * @param location `s3://bucket/key`
   */
  inspect?(location: string): Promise<ExistingContent>;

  /** Looks at what is in the place of content now, without reading it. */
  compare(content: ContentReference): Promise<Comparison>;

  /** The digests of all content that was copied here, read incrementally. */
  list(): AsyncIterable<string>;

  /**
   * Whether content is here that no item uses and that nobody is publishing.
   *
   * @param isUsed As in {@linkcode ContentStore.change}.
   */
  isUnused(digest: string, isUsed: (digest: string) => Promise<boolean>): Promise<boolean>;

  /** Milliseconds for which content may be here before anything shows that it is being published. */
  readonly settling?: number;

  /** Lets go of everything held open. */
  close?(): Promise<void>;
}
