/** Content: the bytes of published items, each stored once under its digest. */

import type { Body } from "../../http/outcome.ts";
import type { ByteRange } from "../../http/byte_range.ts";
import type { ContentReference } from "../item.ts";
import type { OnFault } from "../storage.ts";

/**
 * The maximum length in bytes of content, or of a range of it, that is read at once and not as a
 * stream. A slow client keeps that much in memory.
 */
export const MAX_AT_ONCE_BYTES = 128 * 1024;

/** Why a source is being read. */
export type Step = "copying" | "hashing" | "sending";

/** Where to read content to store. */
export interface Source {
  /** Reads it from the beginning. */
  read(step: Step): AsyncIterable<Uint8Array>;
  /** Cancels the work before anything is published. */
  readonly signal?: AbortSignal | undefined;
}

/** An existing object of the bucket under its own key, which can be published in place. */
export interface ExistingContent extends Required<Omit<ContentReference, "digest">> {
  /** Opens it, or a range of it. Fails if the object was replaced meanwhile. */
  open(range?: ByteRange): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
}

/** Content that is stored under its digest. */
export type Content = Pick<ContentReference, "digest" | "length">;

/** How stored content compares with what was published. */
export type Comparison =
  | { readonly state: "same" }
  | { readonly state: "missing" | "different"; readonly reason: string };

/** What every content store does. Methods throw {@linkcode StorageError} when the store fails. */
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

  /** Compares content with what is stored and can be read now, without reading it. */
  compare(content: ContentReference): Promise<Comparison>;

  /**
   * Opens content, or a range of it. A stream reads only as fast as it is consumed.
   *
   * @param onFault Called if the stream cannot be read to its end, in which case it ends early. If
   *   left out, the stream fails instead.
   */
  open(content: ContentReference, range?: ByteRange, onFault?: OnFault): Promise<Body>;

  /**
   * Changes which items use some content. If the process is killed meanwhile, no item loses its
   * content. A folder makes one change at a time, and removes the content if no item uses it then.
   *
   * @param commit Commits the change to the catalogue.
   * @param source Where to read the content if it must be stored first.
   */
  change<T>(content: Content, commit: () => Promise<T>, source?: Source): Promise<T>;

  /** Runs an action while nothing is removed. */
  withoutRemovals<T>(action: () => Promise<T>): Promise<T>;

  /** Lists the digests of all content copied here, reading incrementally. */
  list(): AsyncIterable<string>;

  close(): Promise<void>;
}

/** A content store in which no objects can be published in place. */
export interface PlainStore extends Store {
  readonly kind: "folder" | "none";
}

/** A content store that is a bucket, in which objects can be published in place. */
export interface ObjectStore extends Store {
  readonly kind: "bucket";

  /** Bytes of the longest content that it accepts. */
  readonly maxLength: number;

  /** Returns the object with some content, as `s3://bucket/key`. */
  locationOf(content: Pick<ContentReference, "digest" | "location">): string;

  /**
   * Returns the length and ETag of an existing object.
   *
   * @param location `s3://bucket/key`
   * @throws {ObjectError} When it cannot be published in place.
   */
  statObject(location: string): Promise<ExistingContent>;
}

export type ContentStore = PlainStore | ObjectStore;
