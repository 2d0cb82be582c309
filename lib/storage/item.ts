/** Items, and the entries of tokens in the catalogue. */

import type { ByteRange } from "../http/byte_range.ts";
import type { Token } from "./token.ts";

export type Kind = "audio" | "video";

/** Identifies content and its location. */
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
  /** The ETag of that object when it was published, or when an import found the same bytes again. */
  readonly validator?: string;
}

/** A read of content that failed. */
export interface FailedRead {
  /** The range that was to be read; all of it if left out. */
  readonly range?: ByteRange | undefined;
}

/** An item as it was published. Except for its validator, it never changes; it can be unpublished. */
export interface PublishedItem extends ContentReference {
  readonly token: Token;
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
 * An item whose content is at a public URL. Clients are redirected there. The item never changes;
 * it can only be unpublished. Its content is on another server and may change; this server never
 * fetches it.
 */
export interface LinkedItem {
  readonly token: Token;
  readonly kind: Kind;
  /**
   * The URL of the content: absolute, `https:` or `http:`, in the ASCII characters of RFC 3986, at
   * most {@linkcode MAX_LOCATION} characters long, without user information or fragment.
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
 * The maximum length of an item's URL, in characters. It is sent with a dozen other fields, and
 * nginx, for one, accepts 4 kB of header from an upstream server by default.
 */
export const MAX_LOCATION = 2_048;

/** The maximum length of a media type or validator stated by another server, in characters. */
export const MAX_STATED = 255;

export type LookupResult =
  | { readonly state: "published"; readonly kind: Kind; readonly item: PublishedItem }
  | { readonly state: "linked"; readonly kind: Kind; readonly item: LinkedItem }
  | {
    readonly state: "unpublished";
    readonly kind: Kind;
    /** Milliseconds since the epoch. */
    readonly unpublishedAt: number;
  }
  | { readonly state: "unknown" };

/** What the catalogue has for a token. */
export type CatalogueEntry = Exclude<LookupResult, { state: "unknown" }>;

export function entryOf(item: PublishedItem | LinkedItem): CatalogueEntry {
  const { kind } = item;
  return "digest" in item ? { state: "published", kind, item } : { state: "linked", kind, item };
}
