/**
 * The catalogue: all items and tombstones, in an SQL database. The database rejects invalid items,
 * so reading validates nothing.
 */

import {
  chunksOf,
  type Database,
  pages,
  type Row,
  type Statement,
  type Value,
} from "../../database/sql/database.ts";
import { RefusedError } from "../../errors/refused_error.ts";
import type { Versioned } from "../generations.ts";
import {
  type CatalogueEntry,
  type ContentReference,
  entryOf,
  type Kind,
  type LinkedItem,
  type LookupResult,
  type PublishedItem,
} from "../item.ts";
import { type Token, tokenOf } from "../token.ts";

export type TokenEntry = readonly [Token, CatalogueEntry];

/** The columns of an item, each with its type and the property of items or tombstones in it. */
const COLUMNS = [
  ["token", "uuid", "token"],
  ["kind", "text", "kind"],
  ["type", "text", "type"],
  ["length", "bigint", "length"],
  ["digest", "text", "digest"],
  ["published_at", "bigint", "publishedAt"],
  ["name", "text", "name"],
  ["language", "text", "language"],
  ["location", "text", "location"],
  ["validator", "text", "validator"],
  ["unpublished_at", "bigint", "unpublishedAt"],
] as const;

export const ITEM_COLUMNS = COLUMNS.map(([column]) => column).join(", ");

/** The columns that a tombstone lacks. */
export const ITEM_FACTS = COLUMNS.map(([column]) => column)
  .filter((column) => !["token", "kind", "unpublished_at"].includes(column));

/** Sorts before every token. */
const NO_TOKEN = "00000000-0000-0000-0000-000000000000";

/**
 * The first statement of every transaction that publishes or unpublishes. It locks the catalogue's
 * only row, so that the statements after it see what earlier transactions committed. The new
 * version is random, because a counter would reuse numbers after a backup is restored.
 */
const bumpVersion = (): Statement => ({
  text: "UPDATE media_head_catalogue SET version = $1",
  values: [Math.floor(Math.random() * Number.MAX_SAFE_INTEGER)],
});

/** The reads that every request needs. Each engine optimizes them. */
export interface Lookups extends Versioned {
  /** Returns an entry's {@linkcode ITEM_COLUMNS}. */
  find(token: Token): Promise<Row | undefined>;
}

/**
 * A catalogue in the tables `media_head_catalogue` and `media_head_item`. Every method throws
 * {@linkcode StorageError} when the engine fails. Publishing and unpublishing change its version in
 * the same transaction.
 */
export class Catalogue implements Versioned {
  readonly #database: Database;
  readonly #lookups: Lookups;

  /** @param database Closed by the caller. */
  constructor(database: Database, lookups: Lookups) {
    this.#database = database;
    this.#lookups = lookups;
  }

  get versionTtlMs(): number {
    return this.#lookups.versionTtlMs;
  }

  version(): Promise<number> {
    return this.#lookups.version();
  }

  async find(token: Token): Promise<LookupResult> {
    const row = await this.#lookups.find(token);
    return row === undefined ? { state: "unknown" } : readEntry(row);
  }

  /** Looks up many tokens at once; unknown ones are left out of the result. */
  async findAll(tokens: readonly Token[]): Promise<ReadonlyMap<Token, CatalogueEntry>> {
    const found = new Map<Token, CatalogueEntry>();
    for (const part of chunksOf(tokens, this.#database.batch)) {
      const rows = this.#database.rowsOf(["uuid"], part.map((token) => [token]));
      const text = `SELECT ${ITEM_COLUMNS} FROM media_head_item WHERE token IN (${rows.text})`;
      for (const row of await this.#database.query({ text, values: rows.values })) {
        found.set(tokenIn(row), readEntry(row));
      }
    }
    return found;
  }

  /**
   * Adds an item.
   *
   * @throws {RefusedError} When its token was ever used.
   */
  async add<Item extends PublishedItem | LinkedItem>(item: Item): Promise<Item> {
    const { token } = item;
    const added = await this.addAll([[token, entryOf(item)]]);
    if (added.has(token)) return item;
    throw new RefusedError(`Token "${token}" is taken`, { kind: "used token" });
  }

  /**
   * Adds items and tombstones in one transaction, skipping tokens that were ever used.
   *
   * @param entries At most one for each token.
   * @returns The tokens that were added.
   */
  async addAll(entries: readonly TokenEntry[]): Promise<ReadonlySet<Token>> {
    if (entries.length === 0) return new Set();
    const parts = chunksOf(entries, this.#database.batch);
    const inserts = parts.map((part) => this.#insert(part, "TRUE"));
    const added = (await this.#database.transact([bumpVersion(), ...inserts])).flat();
    return new Set(added.map(tokenIn));
  }

  /**
   * Adds an item, unless one with the same name and content is published in the same place.
   *
   * @returns The published item: this one, or the one that was there before.
   * @throws {RefusedError} When its token was ever used.
   */
  async addUnlessPublished(item: PublishedItem): Promise<PublishedItem> {
    const { token, name = "" } = item;
    const isNew = `NOT EXISTS (
      SELECT 1 FROM media_head_item AS item WHERE item.digest = new.digest AND item.name = new.name
        AND coalesce(item.location, '') = coalesce(new.location, '')
        AND coalesce(item.validator, '') = coalesce(new.validator, ''))`;
    const insert = this.#insert([[token, entryOf(item)]], isNew);
    const statements = [bumpVersion(), insert, itemWith(item, name)];
    const [, added = [], [published] = []] = await this.#database.transact(statements);
    if (added.length > 0) return item;
    if (published === undefined) {
      throw new RefusedError(`Token "${token}" is taken`, { kind: "used token" });
    }
    return (readEntry(published) as CatalogueEntry & { state: "published" }).item;
  }

  /** Returns a statement that adds entries on a condition, and skips tokens that were ever used. */
  #insert(entries: readonly TokenEntry[], condition: string): Statement {
    const types = COLUMNS.map(([, type]) => type);
    const { text, values } = this.#database.rowsOf(types, entries.map(itemValuesOf));
    return {
      text: `INSERT INTO media_head_item (${ITEM_COLUMNS}) WITH new (${ITEM_COLUMNS}) AS (${text})
             SELECT * FROM new WHERE ${condition} ON CONFLICT (token) DO NOTHING RETURNING token`,
      values,
    };
  }

  /** Replaces the validator of an item's object. Does nothing if it is no longer published. */
  async setValidator(token: Token, validator: string): Promise<void> {
    await this.#database.transact([bumpVersion(), {
      text: `UPDATE media_head_item SET validator = $2
             WHERE token = $1 AND unpublished_at IS NULL RETURNING token`,
      values: [token, validator],
    }]);
  }

  /**
   * Replaces an item with a tombstone.
   *
   * @param unpublishedAt Milliseconds since the epoch.
   * @returns Whether it was published until now.
   */
  async unpublish(token: Token, unpublishedAt: number): Promise<boolean> {
    const [, unpublished] = await this.#database.transact([bumpVersion(), {
      text: `UPDATE media_head_item SET unpublished_at = $2, ${ITEM_FACTS.join(" = NULL, ")} = NULL
             WHERE token = $1 AND unpublished_at IS NULL RETURNING token`,
      values: [token, unpublishedAt],
    }]);
    return unpublished?.length === 1;
  }

  /**
   * Returns whether any published item uses the content with this digest, or the object with this
   * digest at a location. Without arguments, returns whether any item uses content stored under its
   * digest.
   */
  async uses(digest?: string, location = ""): Promise<boolean> {
    const [condition, values] = digest === undefined
      ? ["digest IS NOT NULL AND location IS NULL", []]
      : ["digest = $1 AND coalesce(location, '') = $2", [digest, location]];
    const text = `SELECT token FROM media_head_item WHERE ${condition} LIMIT 1`;
    return (await this.#database.query({ text, values })).length > 0;
  }

  /**
   * Returns whether any published item uses the content with this digest, after waiting for changes
   * in progress.
   */
  async usesAfterChanges(digest: string): Promise<boolean> {
    const text = "SELECT token FROM media_head_item WHERE digest = $1 AND location IS NULL LIMIT 1";
    return (await this.#database.queryAfterChanges(
      { text, values: [digest] },
      "media_head_catalogue",
    ))
      .length > 0;
  }

  /** Finds a published item with this name and content, in the same place. */
  async findByContent(
    content: Omit<ContentReference, "length">,
    name: string,
  ): Promise<PublishedItem | undefined> {
    const [row] = await this.#database.query(itemWith(content, name));
    const entry = row && readEntry(row);
    return entry?.state === "published" ? entry.item : undefined;
  }

  /** Returns the token of the shortest published item of these kinds. */
  async shortestPublished(kinds: readonly Kind[]): Promise<Token | undefined> {
    const list = kinds.map((_, at) => `$${at + 1}`).join(", ");
    const text = `SELECT token FROM media_head_item
                  WHERE kind IN (${list}) AND unpublished_at IS NULL
                  ORDER BY CASE WHEN length IS NULL THEN 1 ELSE 0 END, length LIMIT 1`;
    const [row] = await this.#database.query({ text, values: kinds });
    return row && tokenIn(row);
  }

  async isEmpty(): Promise<boolean> {
    const text = "SELECT token FROM media_head_item LIMIT 1";
    return (await this.#database.query({ text })).length === 0;
  }

  /** Lists everything ever published, ordered by token, reading incrementally. */
  async *list(): AsyncGenerator<[Token, CatalogueEntry]> {
    const text = `SELECT ${ITEM_COLUMNS} FROM media_head_item
                  WHERE token > $1 ORDER BY token LIMIT $2`;
    const rows = pages(this.#database, (last, limit) => ({
      text,
      values: [last?.["token"] ?? NO_TOKEN, limit],
    }));
    for await (const row of rows) yield [tokenIn(row), readEntry(row)];
  }

  /** Sets the identifier of the content store, unless there is one already. */
  async claimContent(id: string): Promise<string> {
    const known = await this.contentId();
    if (known !== null) return known;
    // The first process wins.
    const text = "UPDATE media_head_catalogue SET content = $1 WHERE content IS NULL";
    await this.#database.transact([{ text, values: [id] }]);
    return await this.contentId() ?? id;
  }

  /** Returns the identifier of the content store; `null` if there is none yet. */
  async contentId(): Promise<string | null> {
    const [row] = await this.#database.query({ text: "SELECT content FROM media_head_catalogue" });
    return row?.["content"] as string | null;
  }
}

/** Selects a published item with this name and content, in the same place. */
function itemWith(
  { digest, location = "", validator = "" }: Omit<ContentReference, "length">,
  name: string,
): Statement {
  const text = `SELECT ${ITEM_COLUMNS} FROM media_head_item
                WHERE digest = $1 AND name = $2
                  AND coalesce(location, '') = $3 AND coalesce(validator, '') = $4 LIMIT 1`;
  return { text, values: [digest, name, location, validator] };
}

/** Returns an entry's values in {@linkcode ITEM_COLUMNS}. */
function itemValuesOf([token, entry]: TokenEntry): Value[] {
  const facts: Partial<PublishedItem & LinkedItem & { unpublishedAt: number }> =
    entry.state === "unpublished" ? entry : entry.item;
  return COLUMNS.map(([, , property]) => property === "token" ? token : facts[property] ?? null);
}

/** Returns the token of a row. The database ensures that it is valid. */
function tokenIn(row: Row): Token {
  return tokenOf(row["token"] as Parameters<typeof tokenOf>[0]);
}

/** Returns the entry of a row. The database ensures that it has the right properties. */
function readEntry(row: Row): CatalogueEntry {
  const facts: { [property: string]: Value } = {};
  for (const [column, , property] of COLUMNS) {
    const value = row[column] ?? null;
    if (value !== null) facts[property] = value;
  }
  const { kind, unpublishedAt } = facts as unknown as { kind: Kind; unpublishedAt?: number };
  if (unpublishedAt !== undefined) return { state: "unpublished", kind, unpublishedAt };
  return entryOf(facts as unknown as PublishedItem | LinkedItem);
}
