/**
 * A catalogue in an SQL database. The database rejects invalid items, so nothing is validated when
 * it is read.
 */

import {
  type Catalogue,
  type CatalogueRecord,
  TokenTakenError,
} from "../../catalogue/catalogue.ts";
import {
  type CatalogueEntry,
  type ContentReference,
  entryOf,
  type Kind,
  type LinkedItem,
  type LookupResult,
  type PublishedItem,
} from "../../item.ts";
import type { Token } from "../../token.ts";
import {
  chunksOf,
  type Database,
  pages,
  type Row,
  type Statement,
  type Value,
} from "./database.ts";

const COLUMN_TYPES = {
  kind: "text",
  type: "text",
  length: "bigint",
  digest: "text",
  published_at: "bigint",
  name: "text",
  language: "text",
  location: "text",
  validator: "text",
  unpublished_at: "bigint",
} as const;

const COLUMNS = Object.keys(COLUMN_TYPES);
const TYPES = Object.values(COLUMN_TYPES);

/** The columns of an item besides its token. */
export const ITEM_COLUMNS = COLUMNS.join(", ");

/** Sorts before every token. */
const NO_TOKEN = "00000000-0000-0000-0000-000000000000";

/**
 * Part of every transaction that publishes or unpublishes. The new version is random: a counter
 * would reuse numbers after a backup is restored.
 */
const bumpVersion = (): Statement => ({
  text: "UPDATE catalogue SET version = $1",
  values: [Math.floor(Math.random() * Number.MAX_SAFE_INTEGER)],
});

/** The reads that every request needs, which each engine optimizes. */
export interface Lookups {
  /** Returns an entry's values in {@linkcode ITEM_COLUMNS}. */
  readonly find: (token: Token) => Promise<readonly Value[] | undefined>;
  /** Returns the version of the catalogue. */
  readonly version: () => Promise<number>;
  /** See {@linkcode Catalogue.versionTtl}. */
  readonly versionTtl: number;
}

/** A catalogue in the tables `catalogue` and `item`. */
export class SqlCatalogue implements Catalogue {
  readonly #database: Database;
  readonly #lookups: Lookups;

  /** @param database Closed by the caller. */
  constructor(database: Database, lookups: Lookups) {
    this.#database = database;
    this.#lookups = lookups;
  }

  get versionTtl(): number {
    return this.#lookups.versionTtl;
  }

  version(): Promise<number> {
    return this.#lookups.version();
  }

  async find(token: Token): Promise<LookupResult> {
    const values = await this.#lookups.find(token);
    return values === undefined ? { state: "unknown" } : readEntry(token, values);
  }

  async findAll(tokens: readonly Token[]): Promise<ReadonlyMap<Token, CatalogueEntry>> {
    const found = new Map<Token, CatalogueEntry>();
    for (const part of chunksOf(tokens, this.#database.batch)) {
      const rows = this.#database.rowsOf(["uuid"], part.map((token) => [token]));
      const text = `SELECT token, ${ITEM_COLUMNS} FROM item WHERE token IN (${rows.text})`;
      for (const row of await this.#database.query({ text, values: rows.values })) {
        const token = row["token"] as Token;
        found.set(token, readEntry(token, valuesOf(row)));
      }
    }
    return found;
  }

  async add(item: PublishedItem | LinkedItem): Promise<void> {
    const { token } = item;
    const added = await this.addAll([[token, entryOf(item)]]);
    if (!added.has(token)) throw new TokenTakenError(token);
  }

  async addAll(entries: readonly CatalogueRecord[]): Promise<ReadonlySet<Token>> {
    if (entries.length === 0) return new Set();
    const rows = entries.map(([token, entry]) => [token, ...itemValuesOf(entry)]);
    const inserts = chunksOf(rows, this.#database.batch).map((part) => {
      const { text, values } = this.#database.rowsOf(["uuid", ...TYPES], part);
      return {
        text: `INSERT INTO item (token, ${ITEM_COLUMNS}) ${text}
               ON CONFLICT (token) DO NOTHING RETURNING token`,
        values,
      };
    });
    const added = (await this.#database.transact([...inserts, bumpVersion()])).flat();
    return new Set(added.map((row) => row["token"] as Token));
  }

  async unpublish(token: Token, unpublishedAt: number): Promise<boolean> {
    const [unpublished] = await this.#database.transact([{
      text: `UPDATE item SET unpublished_at = $2, type = NULL, length = NULL, digest = NULL,
               published_at = NULL, name = NULL, language = NULL, location = NULL, validator = NULL
             WHERE token = $1 AND unpublished_at IS NULL RETURNING token`,
      values: [token, unpublishedAt],
    }, bumpVersion()]);
    return unpublished?.length === 1;
  }

  async uses(digest?: string): Promise<boolean> {
    const [condition, values] = digest === undefined
      ? ["digest IS NOT NULL", []]
      : ["digest = $1", [digest]];
    const text = `SELECT token FROM item WHERE ${condition} AND location IS NULL LIMIT 1`;
    return (await this.#database.queryAfterChanges({ text, values })).length > 0;
  }

  async findByContent(
    { digest, location = "", validator = "" }: Omit<ContentReference, "length">,
    name: string,
  ): Promise<PublishedItem | undefined> {
    const text = `SELECT token, ${ITEM_COLUMNS} FROM item
                  WHERE digest = $1 AND name = $2
                    AND coalesce(location, '') = $3 AND coalesce(validator, '') = $4 LIMIT 1`;
    const values = [digest, name, location, validator];
    const [row] = await this.#database.query({ text, values });
    if (row === undefined) return undefined;
    const entry = readEntry(row["token"] as Token, valuesOf(row));
    return entry.state === "published" ? entry.item : undefined;
  }

  async unused(digests: readonly string[]): Promise<string[]> {
    if (digests.length === 0) return [];
    const wanted = this.#database.rowsOf(["text"], digests.map((digest) => [digest]));
    const rows = await this.#database.query({
      text: `WITH wanted (digest) AS (${wanted.text})
             SELECT digest FROM wanted WHERE NOT EXISTS (
               SELECT 1 FROM item WHERE item.digest = wanted.digest AND location IS NULL)`,
      values: wanted.values,
    });
    return rows.map(({ digest }) => digest as string);
  }

  async isEmpty(): Promise<boolean> {
    return (await this.#database.query({ text: "SELECT token FROM item LIMIT 1" })).length === 0;
  }

  async *list(first: string = NO_TOKEN): AsyncGenerator<[Token, CatalogueEntry]> {
    const text = `SELECT token, ${ITEM_COLUMNS} FROM item
                  WHERE token > $1 ORDER BY token LIMIT $2`;
    const rows = pages(this.#database, (after, limit) => ({
      text,
      values: [after?.["token"] ?? first, limit],
    }));
    for await (const row of rows) {
      const token = row["token"] as Token;
      yield [token, readEntry(token, valuesOf(row))];
    }
  }

  async claimContent(id: string): Promise<string> {
    const known = await this.contentId();
    if (known !== null) return known;
    const text = "UPDATE catalogue SET content = $1 WHERE content IS NULL"; // the first one wins
    await this.#database.transact([{ text, values: [id] }]);
    return await this.contentId() ?? id;
  }

  async check(): Promise<void> {
    await this.#lookups.version();
  }

  async contentId(): Promise<string | null> {
    const [row] = await this.#database.query({ text: "SELECT content FROM catalogue" });
    return row?.["content"] as string | null;
  }
}

/** Returns the values of a row in {@linkcode ITEM_COLUMNS}. */
export function valuesOf(row: Row): Value[] {
  return COLUMNS.map((column) => row[column] ?? null);
}

/**
 * The values of a published item, a linked item or a tombstone; the database requires the right
 * ones for each.
 */
type ItemValues = [
  kind: Kind,
  type: string | null,
  length: number | null,
  digest: string | null,
  publishedAt: number | null,
  name: string | null,
  language: string | null,
  location: string | null,
  validator: string | null,
  unpublishedAt: number | null,
];

/** Returns an entry's values in {@linkcode ITEM_COLUMNS}. */
function itemValuesOf(entry: CatalogueEntry): ItemValues {
  const { kind } = entry;
  if (entry.state === "unpublished") {
    return [kind, null, null, null, null, null, null, null, null, entry.unpublishedAt];
  }
  const { publishedAt, ...facts } = entry.item;
  const { type, length, digest, name, language, location, validator }: Partial<
    PublishedItem & LinkedItem
  > = facts;
  return [
    kind,
    type ?? null,
    length ?? null,
    digest ?? null,
    publishedAt,
    name ?? null,
    language ?? null,
    location ?? null,
    validator ?? null,
    null,
  ];
}

function readEntry(token: Token, values: readonly Value[]): CatalogueEntry {
  const [kind, type, length, digest, time, name, language, location, validator, unpublishedAt] =
    values as ItemValues;
  if (unpublishedAt !== null) return { state: "unpublished", kind, unpublishedAt };
  const publishedAt = time as number;
  if (digest === null) {
    const item: LinkedItem = {
      token,
      kind,
      location: location as string,
      publishedAt,
      ...(type === null ? undefined : { type }),
      ...(length === null ? undefined : { length }),
      ...(validator === null ? undefined : { validator }),
    };
    return { state: "linked", kind, item };
  }
  const item: PublishedItem = {
    token,
    kind,
    type: type as string,
    length: length as number,
    digest,
    publishedAt,
    ...(name === null ? undefined : { name }),
    ...(language === null ? undefined : { language }),
    ...(location === null ? undefined : { location, validator: validator as string }),
  };
  return { state: "published", kind, item };
}
