/**
 * The catalogue: what is published, and what was.
 */

import type { Awaitable } from "../http/awaitable.ts";
import type { ContentReference } from "./content.ts";
import type { Versioned } from "./generations.ts";
import type { CatalogueEntry, LinkedItem, LookupResult, PublishedItem } from "./storage.ts";
import type { Token } from "./token.ts";

/** A token that already names an item, published or not: tokens are never used twice. */
export class TokenTakenError extends Error {
  override readonly name = "TokenTakenError";

  constructor(token: Token) {
    super(`Token "${token}" is taken`);
  }
}

/** A token, and what is on record of it. */
export type CatalogueRecord = readonly [Token, CatalogueEntry];

/**
 * A catalogue. Every method throws {@linkcode StorageError} when the engine fails. Its version moves
 * with whatever is published and unpublished, in the same transaction.
 */
export interface Catalogue extends Versioned {
  /** Looks a token up. */
  find(token: Token): Awaitable<LookupResult>;

  /** Looks many tokens up at once; those that were never used are left out. */
  findAll(tokens: readonly Token[]): Promise<ReadonlyMap<Token, CatalogueEntry>>;

  /**
   * Adds an item.
   *
   * @throws {TokenTakenError} When its token was ever used.
   */
  add(item: PublishedItem | LinkedItem): Promise<void>;

  /**
   * Adds items and tombstones in one transaction, except those whose token was ever used.
   *
   * @param entries One of each token at most.
   * @returns The tokens of those that were added.
   */
  addAll(entries: readonly CatalogueRecord[]): Promise<ReadonlySet<Token>>;

  /**
   * Puts a tombstone in the place of an item.
   *
   * @param unpublishedAt Milliseconds since the epoch.
   * @returns Whether it was published until now.
   */
  unpublish(token: Token, unpublishedAt: number): Promise<boolean>;

  /**
   * Whether any published item uses the content of this digest, or of any when it is left out. One
   * that is published in place, or at a public URL, uses none.
   */
  uses(digest?: string): Promise<boolean>;

  /** A published item of this name that has this very content, in the same place. */
  findByContent(
    content: Omit<ContentReference, "length">,
    name: string,
  ): Promise<PublishedItem | undefined>;

  /** Those of some digests whose content no published item uses, each given once at most. */
  unused(digests: readonly string[]): Promise<string[]>;

  /** Whether nothing was ever published. */
  isEmpty(): Promise<boolean>;

  /**
   * Everything that was ever published, in the order of tokens, read incrementally.
   *
   * @param after Where to begin, in place of the first one.
   */
  list(after?: Token): AsyncIterable<[Token, CatalogueEntry]>;

  /**
   * Remembers which place holds the content of the items, unless it is known already.
   *
   * @param id The name that the place has for itself.
   * @returns The name of the place that is known from now on.
   */
  claimContent(id: string): Promise<string>;

  /** Makes sure that the catalogue answers. */
  check(): Promise<void>;
}
