/**
 * A catalogue in an SQL database. The database itself refuses what is no item, and so nothing is
 * checked when it is read.
 */

import { andThen, type Awaitable } from "../../http/awaitable.ts";
import { type Catalogue, TokenTakenError } from "../catalogue.ts";
import type { Entry, Finding, Kind, LinkedItem, PublishedItem } from "../storage.ts";
import type { Token } from "../token.ts";
import { type Database, pages, type Row, type Statement } from "./database.ts";

/** The columns of an item besides its token. */
export const ITEM_COLUMNS =
  "kind, type, length, digest, published_at, name, language, location, validator, unpublished_at";

/** Sorts before every token. */
const NO_TOKEN = "00000000-0000-0000-0000-000000000000";

/**
 * Part of every transaction that publishes or unpublishes. The new version is any other number, since
 * the next one would come twice: once in a catalogue, and once in a backup of it, after that is restored.
 */
const move = (): Statement => ({
  text: "UPDATE catalogue SET version = $1",
  values: [Math.floor(Math.random() * Number.MAX_SAFE_INTEGER)],
});

/** What there is to say of items of either sort. */
type Facts = PublishedItem & LinkedItem;

/** How an engine looks at what every request needs. */
export interface Lookups {
  /** The row of an item, with {@linkcode ITEM_COLUMNS}. */
  readonly find: (token: Token) => Awaitable<Row | undefined>;
  /** The version of the catalogue. */
  readonly version: () => Awaitable<number>;
  /** See {@linkcode Catalogue.versionTtl}. */
  readonly versionTtl: number;
}

/** A catalogue in the tables `catalogue` and `item`. */
export class SqlCatalogue implements Catalogue {
  readonly #database: Database;
  readonly #lookups: Lookups;

  /** @param database Stays the caller's to close. */
  constructor(database: Database, lookups: Lookups) {
    this.#database = database;
    this.#lookups = lookups;
  }

  /** @inheritdoc */
  get versionTtl(): number {
    return this.#lookups.versionTtl;
  }

  /** @inheritdoc */
  version(): Awaitable<number> {
    return this.#lookups.version();
  }

  /** @inheritdoc */
  find(token: Token): Awaitable<Finding> {
    return andThen(
      this.#lookups.find(token),
      (row) => row === undefined ? { state: "unknown" } : entryOf(token, row),
    );
  }

  /** @inheritdoc */
  async add(item: PublishedItem | LinkedItem): Promise<void> {
    const { token, kind, publishedAt } = item;
    const { type, length, digest, name, language, location, validator }: Partial<Facts> = item;
    const [added] = await this.#database.transact([{
      text: `INSERT INTO item (token, ${ITEM_COLUMNS})
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL)
             ON CONFLICT (token) DO NOTHING RETURNING token`,
      values: [token, kind, type, length, digest, publishedAt, name, language, location, validator]
        .map((value) => value ?? null),
    }, move()]);
    if (added?.length === 0) throw new TokenTakenError(token);
  }

  /** @inheritdoc */
  async retire(token: Token, unpublishedAt: number): Promise<boolean> {
    const [retired] = await this.#database.transact([{
      text: `UPDATE item SET unpublished_at = $2, type = NULL, length = NULL, digest = NULL,
               published_at = NULL, name = NULL, language = NULL, location = NULL, validator = NULL
             WHERE token = $1 AND unpublished_at IS NULL RETURNING token`,
      values: [token, unpublishedAt],
    }, move()]);
    return retired?.length === 1;
  }

  /** @inheritdoc */
  async uses(digest: string): Promise<boolean> {
    const text = "SELECT token FROM item WHERE digest = $1 LIMIT 1";
    return (await this.#database.query({ text, values: [digest] })).length > 0;
  }

  /** @inheritdoc */
  async isEmpty(): Promise<boolean> {
    return (await this.#database.query({ text: "SELECT token FROM item LIMIT 1" })).length === 0;
  }

  /** @inheritdoc */
  async *list(): AsyncGenerator<[Token, Entry]> {
    const text = `SELECT token, ${ITEM_COLUMNS} FROM item
                  WHERE token > $1 ORDER BY token LIMIT $2`;
    const rows = pages(this.#database, (after, limit) => ({
      text,
      values: [after?.["token"] ?? NO_TOKEN, limit],
    }));
    for await (const row of rows) {
      const token = row["token"] as Token;
      yield [token, entryOf(token, row)];
    }
  }

  /** @inheritdoc */
  async claimContent(id: string): Promise<string> {
    const known = await this.#contentId();
    if (known !== null) return known;
    const text = "UPDATE catalogue SET content = $1 WHERE content IS NULL"; // the first one stays
    await this.#database.transact([{ text, values: [id] }]);
    return await this.#contentId() ?? id;
  }

  /** @inheritdoc */
  async check(): Promise<void> {
    await this.#lookups.version();
  }

  async #contentId(): Promise<string | null> {
    const [row] = await this.#database.query({ text: "SELECT content FROM catalogue" });
    return row?.["content"] as string | null;
  }
}

function entryOf(token: Token, row: Row): Entry {
  const kind = row["kind"] as Kind;
  const unpublishedAt = row["unpublished_at"] as number | null;
  if (unpublishedAt !== null) return { state: "unpublished", kind, unpublishedAt };
  if (row["location"] !== null) return { state: "linked", kind, item: linkedItem(token, row) };
  const [name, language] = [row["name"] as string | null, row["language"] as string | null];
  const item: PublishedItem = {
    token,
    kind,
    type: row["type"] as string,
    length: row["length"] as number,
    digest: row["digest"] as string,
    publishedAt: row["published_at"] as number,
    ...(name === null ? undefined : { name }),
    ...(language === null ? undefined : { language }),
  };
  return { state: "published", kind, item };
}

function linkedItem(token: Token, row: Row): LinkedItem {
  const [type, validator] = [row["type"] as string | null, row["validator"] as string | null];
  const length = row["length"] as number | null;
  return {
    token,
    kind: row["kind"] as Kind,
    location: row["location"] as string,
    publishedAt: row["published_at"] as number,
    ...(type === null ? undefined : { type }),
    ...(length === null ? undefined : { length }),
    ...(validator === null ? undefined : { validator }),
  };
}
