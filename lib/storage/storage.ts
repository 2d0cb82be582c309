/** The interfaces of storage: one for the server, and one for the cache in front of it. */

import type { StorageError } from "../errors/storage_error.ts";
import type { ByteRange } from "../http/byte_range.ts";
import type { Body } from "../http/outcome.ts";
import type { LookupResult, PublishedItem } from "./item.ts";
import type { Ask } from "./object_checks.ts";
import type { Token } from "./token.ts";

/** Called with the reason when a stream of content ends early. */
export type OnFault = (fault: unknown) => void;

/**
 * The part of storage that serves requests. Every driver passes `tests/storage/storage_suite.ts`.
 */
export interface ItemStorage {
  /**
   * Looks up a token, and checks that the content of a published item is there and complete.
   *
   * @param now The instant of the request, in milliseconds since the epoch.
   * @throws {StorageError} For faults only. An unknown token is a result.
   */
  find(token: Token, now: number): Promise<LookupResult>;

  /**
   * Opens the content of an item, or a range of it. A stream reads only as fast as it is consumed,
   * and cancelling it releases its resources.
   *
   * @param onFault Called if the content cannot be read to its end; the stream then ends early.
   *   Without it, the stream fails instead.
   * @throws {UnpublishedError} When the content is gone because the item was unpublished after the
   *   lookup.
   * @throws {StorageError} When the content is missing, incomplete, or cannot be read.
   */
  open(item: PublishedItem, range?: ByteRange, onFault?: OnFault): Promise<Body>;

  /** Checks that storage answers. */
  check(): Promise<void>;
}

/** Returns the fault of an item's content, if any: by asking the store, or from earlier answers. */
export type FindFault = (item: PublishedItem, ask: Ask) => Promise<StorageError | undefined>;

/** Storage whose lookups can be cached. */
export interface CacheableStorage extends Pick<ItemStorage, "open" | "check"> {
  /** Whether each question about content is billed, so that answers must be reused. */
  readonly isBilled: boolean;

  /**
   * Looks up a token as {@linkcode ItemStorage.find} does.
   *
   * @param findFault Checks the content of a published item.
   */
  lookUp(token: Token, findFault: FindFault): Promise<LookupResult>;
}
