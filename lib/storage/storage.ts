/**
 * The interface between the server and storage.
 */

import type { Awaitable } from "../http/awaitable.ts";
import type { Body } from "../http/answer.ts";
import type { ByteRange } from "../http/byte_range.ts";
import type { ContentReference } from "./content.ts";
import type { Generations, Versioned } from "./generations.ts";
import type { Token } from "./token.ts";

/** The two kinds of published media. */
export type Kind = "audio" | "video";

/** An item as it was published. It never changes; it can only be unpublished. */
export interface PublishedItem extends ContentReference {
  /** Names the item in URLs. */
  readonly token: Token;
  /** Whether it is audio or video. */
  readonly kind: Kind;
  /** Media type, e.g. `audio/mpeg`. */
  readonly type: string;
  /** Milliseconds since the epoch. */
  readonly publishedAt: number;
  /** A file name to offer for saving. */
  readonly name?: string;
  /** BCP 47 language tag of the content, e.g. `en-GB`. */
  readonly language?: string;
}

/**
 * An item whose content is at a public URL, to which clients are redirected. It never changes; it
 * can only be unpublished. The content belongs to the other server and may change; this server
 * never fetches it.
 */
export interface LinkedItem {
  /** Names the item in URLs. */
  readonly token: Token;
  /** Whether it is audio or video. */
  readonly kind: Kind;
  /**
   * The URL of the content: absolute, `https:` or `http:`, in the ASCII characters of RFC 3986, of
   * at most {@linkcode MAX_LOCATION} characters, without user information or fragment.
   */
  readonly location: string;
  /** Milliseconds since the epoch. */
  readonly publishedAt: number;
  /** The media type that the other server stated when this was published. */
  readonly type?: string;
  /** Bytes, as stated then. */
  readonly length?: number;
  /** The ETag stated then, or else the Last-Modified. */
  readonly validator?: string;
}

/**
 * Characters of the longest URL that an item can have. It is sent in one of a dozen response
 * fields, and nginx, for one, accepts 4 kB of header from an upstream server by default.
 */
export const MAX_LOCATION = 2_048;

/** Characters of the longest media type and validator recorded from another server. */
export const MAX_STATED = 255;

/** The result of looking up a token. */
export type LookupResult =
  & (
    | { readonly state: "published"; readonly kind: Kind; readonly item: PublishedItem }
    | { readonly state: "linked"; readonly kind: Kind; readonly item: LinkedItem }
    | {
      readonly state: "unpublished";
      readonly kind: Kind;
      /** Milliseconds since the epoch. */
      readonly unpublishedAt: number;
    }
    | { readonly state: "unknown" }
  )
  & {
    /** Milliseconds since the epoch until which this may be reused; not at all if left out. */
    readonly freshUntil?: number;
  };

/** What the catalogue has on record for a token. */
export type CatalogueEntry = Exclude<LookupResult, { state: "unknown" }>;

/** Returns the entry of a published item. */
export function entryOf(item: PublishedItem | LinkedItem): CatalogueEntry {
  const { kind } = item;
  return "digest" in item ? { state: "published", kind, item } : { state: "linked", kind, item };
}

/**
 * The part of storage that serves requests. Every driver passes `tests/storage/storage_suite.ts`.
 */
export interface Storage extends Versioned {
  /** Tells when results of {@linkcode find} are stale, if they are cached. */
  readonly generations?: Generations;

  /**
   * Looks up a token, and checks that the content of a published item is there and complete.
   *
   * @param now Milliseconds since the epoch: the instant of the request that asks.
   * @throws {StorageError} For faults only; absence is a result.
   */
  find(token: Token, now: number): Awaitable<LookupResult>;

  /**
   * Opens the content of an item, or a range of it. A stream reads only as fast as it is consumed,
   * and cancelling it releases its resources.
   *
   * @throws {UnpublishedError} When the item was unpublished after the lookup.
   * @throws {StorageError} When the content is missing, incomplete, or cannot be read.
   */
  open(item: PublishedItem, range?: ByteRange): Awaitable<Body>;

  /**
   * Checks that storage answers.
   *
   * @throws {StorageError} When it does not.
   */
  check(): Promise<void>;

  /** Releases all resources. */
  close(): Promise<void>;
}

/** A storage fault. The message names content by digest, and never contains a token. */
export class StorageError extends Error {
  override readonly name: string = "StorageError";

  /**
   * @param driver The part of storage that failed, e.g. `sqlite`.
   * @param fault What failed.
   * @param options The cause, where there is one.
   */
  constructor(readonly driver: string, readonly fault: string, options?: ErrorOptions) {
    super(`${driver}: ${fault}`, options);
  }
}

/** Thrown when an object cannot be published in place, although storage works. */
export class ObjectError extends StorageError {
  override readonly name = "ObjectError";
}

/** Thrown when the content was replaced by other content. */
export class ReplacedError extends StorageError {
  override readonly name = "ReplacedError";
}

/** Thrown when an item was unpublished after its lookup. */
export class UnpublishedError extends Error {
  override readonly name = "UnpublishedError";
}
