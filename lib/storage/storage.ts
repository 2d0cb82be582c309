/** The interface between the server and storage. */

import type { ByteRange } from "../http/byte_range.ts";
import type { Body } from "../http/outcome.ts";
import type { LookupResult, PublishedItem } from "./item.ts";
import type { ObjectChecks } from "./object_checks.ts";
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
   * @param checks Earlier checks of objects in a bucket, to reuse. Without them, the store is asked.
   * @throws {StorageError} For faults only. An unknown token is a result.
   */
  find(token: Token, now: number, checks?: ObjectChecks): Promise<LookupResult>;

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
