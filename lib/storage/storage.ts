/**
 * What the server asks of storage, and what it gets.
 */

import type { Awaitable } from "../http/awaitable.ts";
import type { Body } from "../http/answer.ts";
import type { ByteRange } from "../http/byte_range.ts";
import type { ContentReference } from "./content.ts";
import type { Generations, Versioned } from "./generations.ts";
import type { Token } from "./token.ts";

/** The two kinds of published media. */
export type Kind = "audio" | "video";

/** An item as it was published. Nothing of it ever changes; it can only be unpublished. */
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
 * An item whose content is at a public URL, to which clients are redirected. This record never
 * changes; it can only be unpublished. The content is the other server's: only that server says what
 * it is now, and nothing here ever fetches it.
 */
export interface LinkedItem {
  /** Names the item in URLs. */
  readonly token: Token;
  /** Whether it is audio or video. */
  readonly kind: Kind;
  /**
   * The URL of the content: absolute, `https:` or `http:`, in the ASCII characters of RFC 3986, of
   * at most {@linkcode MAX_LOCATION} characters, with neither user nor fragment.
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
 * Characters of the longest URL that an item can have. It goes into a response field among a dozen
 * others, and nginx, for one, takes 4 kB of response head from a server by default.
 */
export const MAX_LOCATION = 2_048;

/** Characters of the longest media type and validator that are recorded of another server. */
export const MAX_STATED = 255;

/** What storage knows of a token. */
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
    /** Milliseconds since the epoch, until when this may be used again; only now if left out. */
    readonly freshUntil?: number;
  };

/** What the catalogue has on record. */
export type CatalogueEntry = Exclude<LookupResult, { state: "unknown" }>;

/** The entry of an item that is published. */
export function entryOf(item: PublishedItem | LinkedItem): CatalogueEntry {
  const { kind } = item;
  return "digest" in item ? { state: "published", kind, item } : { state: "linked", kind, item };
}

/** The side of storage that serves requests. Every driver passes `tests/storage_suite.ts`. */
export interface Storage extends Versioned {
  /** Tells when what {@linkcode find} said is to be used no more, where that is remembered. */
  readonly generations?: Generations;

  /**
   * Looks a token up, and sees to it that the content of a published item is there and whole.
   *
   * @param now Milliseconds since the epoch: the instant of the request that asks.
   * @throws {StorageError} For faults only; absence is an answer.
   */
  find(token: Token, now: number): Awaitable<LookupResult>;

  /**
   * Opens the content of an item, or a range of it. A stream reads as fast as it is consumed, and
   * cancelling it closes whatever it holds.
   *
   * @throws {UnpublishedError} When the item was unpublished since it was found.
   * @throws {StorageError} When the content is missing, is not whole, or cannot be read.
   */
  open(item: PublishedItem, range?: ByteRange): Awaitable<Body>;

  /**
   * Makes sure that storage answers.
   *
   * @throws {StorageError} When it does not.
   */
  check(): Promise<void>;

  /** Lets go of everything held open. */
  close(): Promise<void>;
}

/** A fault of storage. The message names content by digest, and never holds a token. */
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

/** An object cannot be published where it is; nothing is wrong with storage. */
export class ObjectError extends StorageError {
  override readonly name = "ObjectError";
}

/** What is in the place of content is other content than was published. */
export class ReplacedError extends StorageError {
  override readonly name = "ReplacedError";
}

/** The item was published when it was found, and is no more. */
export class UnpublishedError extends Error {
  override readonly name = "UnpublishedError";
}
