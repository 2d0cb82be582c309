/** Content: the bytes of published items, each stored once under its digest. */

import type { Body } from "../../http/outcome.ts";
import type { ByteRange } from "../../http/byte_range.ts";
import type { ContentReference, FailedRead } from "../item.ts";
import type { OnFault } from "../storage.ts";

/**
 * The maximum length of content, or of a range of it, that is read at once and not as a stream.
 * Each slow client keeps that much in memory.
 */
export const MAX_AT_ONCE_BYTES = 128 * 1024;

/** Why a source is being read. */
export type Step = "copying" | "hashing" | "sending";

/** A source of content to store. */
export interface Source {
  /** Reads it from the beginning. */
  read(step: Step): AsyncIterable<Uint8Array>;
  /** Cancels the work before anything is published. */
  readonly signal?: AbortSignal | undefined;
}

/** An existing object of the bucket that can be published in place, under its own key. */
export interface ExistingContent extends Required<Omit<ContentReference, "digest">> {
  /** Opens the object, or a range of it. Fails if it was replaced meanwhile. */
  open(range?: ByteRange): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
}

/** Content that is stored under its digest. */
export type Content = Pick<ContentReference, "digest" | "length">;

/**
 * The result of comparing stored content with the published content; "failed" if the store answers,
 * but refuses this content.
 */
export type Comparison =
  | { readonly state: "same" }
  | {
    readonly state: "missing" | "different" | "failed";
    readonly reason: string;
    /** The reason without the values in it, such as the digest. Default: the reason itself. */
    readonly kind?: string;
  };

/** A file that a change has left behind. */
export interface Leftover {
  readonly path: string;
  /** Why it could not be deleted; left out if it is deleted now. */
  readonly cause?: unknown;
}

/**
 * The operations of every content store. They throw {@linkcode StorageError} when the store fails.
 */
interface Store {
  /** Returns the store's identifier: empty before it has one, `undefined` if it does not exist. */
  id(): Promise<string | undefined>;

  /**
   * Creates the store if it does not exist, and sets its identifier if it has none. Fails if it has
   * another.
   */
  create(id: string): Promise<void>;

  /** Checks that the store exists and has this identifier. */
  check(id: string): Promise<void>;

  /**
   * Compares content with the stored copy, if that can be opened now, without reading long content.
   *
   * @param read A read to try again, because it failed. A bucket then asks for that instead of the
   *   first byte.
   */
  compare(content: ContentReference, read?: FailedRead): Promise<Comparison>;

  /**
   * Opens content, or a range of it. A stream reads only as fast as it is consumed.
   *
   * @param onFault Called if the content cannot be read to its end; the stream then ends early.
   *   Without it, the stream fails instead.
   */
  open(content: ContentReference, range?: ByteRange, onFault?: OnFault): Promise<Body>;

  /**
   * Changes which items use some content. No item loses its content, even if the process is killed
   * meanwhile. A folder makes one change at a time, and then removes the content if no item uses
   * it.
   *
   * @param commit Commits the change to the catalogue.
   * @param source The source of the content if it must be stored first.
   */
  change<T>(content: Content, commit: () => Promise<T>, source?: Source): Promise<T>;

  /** Runs an action. No content is removed meanwhile. */
  withoutRemovals<T>(action: () => Promise<T>): Promise<T>;

  /** Lists the digests of all content copied here, reading incrementally. */
  list(): AsyncIterable<string>;

  close(): Promise<void>;
}

/** A content store in which no objects can be published in place. */
export interface PlainStore extends Store {
  readonly kind: "folder" | "none";

  /**
   * Deletes what earlier changes have left behind, because they were killed or could not delete it.
   *
   * @param digest The digest of the only content to delete; all of it if left out.
   */
  deleteLeftovers(digest?: string): Promise<Leftover[]>;
}

/** A bucket as a content store. Its objects can be published in place. */
export interface ObjectStore extends Store {
  readonly kind: "bucket";

  /** The maximum length of content that it accepts, in bytes. */
  readonly maxLength: number;

  /** Returns the location of content: `s3://bucket/key`. */
  locationOf(content: Pick<ContentReference, "digest" | "location">): string;

  /**
   * Returns the length and ETag of an existing object.
   *
   * @param location `s3://bucket/key`
   * @throws {RefusedError} When it cannot be published in place.
   */
  statObject(location: string): Promise<ExistingContent>;
}

export type ContentStore = PlainStore | ObjectStore;
