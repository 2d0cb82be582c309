/**
 * The catalogue: all items and tombstones.
 */

import type {
  CatalogueEntry,
  ContentReference,
  LinkedItem,
  LookupResult,
  PublishedItem,
} from "../item.ts";
import { RefusedError } from "../../input/refused_error.ts";
import type { Versioned } from "../generations.ts";
import type { Token } from "../token.ts";

/** Thrown for a token that already names an item or tombstone: tokens are never reused. */
export class TokenTakenError extends RefusedError {
  override readonly name = "TokenTakenError";

  constructor(token: Token) {
    super(`Token "${token}" is taken`);
  }
}

/** A token and its entry. */
export type CatalogueRecord = readonly [Token, CatalogueEntry];

/**
 * A catalogue. Every method throws {@linkcode StorageError} when the engine fails. Publishing and
 * unpublishing change its version in the same transaction.
 */
export interface Catalogue extends Versioned {
  /** Looks up a token. */
  find(token: Token): Promise<LookupResult>;

  /** Looks up many tokens at once; unknown ones are left out of the result. */
  findAll(tokens: readonly Token[]): Promise<ReadonlyMap<Token, CatalogueEntry>>;

  /**
   * Adds an item.
   *
   * @throws {TokenTakenError} When its token was ever used.
   */
  add(item: PublishedItem | LinkedItem): Promise<void>;

  /**
   * Adds items and tombstones in one transaction, skipping tokens that were ever used.
   *
   * @param entries At most one for each token.
   * @returns The tokens that were added.
   */
  addAll(entries: readonly CatalogueRecord[]): Promise<ReadonlySet<Token>>;

  /**
   * Replaces an item with a tombstone.
   *
   * @param unpublishedAt Milliseconds since the epoch.
   * @returns Whether it was published until now.
   */
  unpublish(token: Token, unpublishedAt: number): Promise<boolean>;

  /**
   * Whether any published item uses the content with this digest, or any content if the digest is
   * left out. Items published in place or at a public URL use none.
   */
  uses(digest?: string): Promise<boolean>;

  /** Finds a published item with this name and this content, in the same place. */
  findByContent(
    content: Omit<ContentReference, "length">,
    name: string,
  ): Promise<PublishedItem | undefined>;

  /** Returns those digests whose content no published item uses. */
  unused(digests: readonly string[]): Promise<string[]>;

  /** Whether nothing was ever published. */
  isEmpty(): Promise<boolean>;

  /**
   * Lists everything ever published, ordered by token, reading incrementally.
   *
   * @param after The token after which to start.
   */
  list(after?: Token): AsyncIterable<[Token, CatalogueEntry]>;

  /**
   * Records the identifier of the content store, unless one is already recorded.
   *
   * @param id The identifier of the store at hand.
   * @returns The identifier on record.
   */
  claimContent(id: string): Promise<string>;

  /** Returns the identifier of the content store on record; `null` if there is none. */
  contentId(): Promise<string | null>;
}
