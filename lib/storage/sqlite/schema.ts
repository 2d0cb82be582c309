/**
 * The tables of a catalogue and of a ledger in SQLite, each in its own file: a long import locks
 * the catalogue, and must not keep servers from flushing their counts.
 */

import { PHASES } from "../../lifecycle/policy.ts";
import { IMPACTS } from "../ledger.ts";
import { MAX_LOCATION, MAX_STATED } from "../storage.ts";

/** The schema of a file, with its history. */
export interface Schema {
  /** The name for messages. */
  readonly name: "catalogue" | "ledger";
  /** SQLite's `application_id`, which distinguishes our files from those of other programs. */
  readonly applicationId: number;
  /** The change made by each version; append-only. Their number is the current version. */
  readonly steps: readonly string[];
}

/** Milliseconds since the epoch, within the range of `Date`. */
const isInstant = (column: string) => `${column} BETWEEN -8640000000000000 AND 8640000000000000`;
/** A version 4 UUID. */
const TOKEN = "xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx".replaceAll("x", "[0-9a-f]");
/** SQLite's text functions stop at the first NUL; its byte functions do not. */
const hasBytes = (column: string, length: number | string) =>
  `length(CAST(${column} AS BLOB)) = ${length}`;
/** Printable ASCII. */
const isPrintable = (column: string) =>
  `${column} NOT GLOB '*[^ -~]*' AND ${hasBytes(column, `length(${column})`)}`;
const isName = (column: string) => `length(${column}) BETWEEN 1 AND 64 AND ${isPrintable(column)}`;
const isOneOf = (column: string, values: readonly string[]) =>
  `${column} IN (${values.map((value) => `'${value}'`).join(", ")})`;
const isDay = (column: string) => `${column} IS date(${column})`;

const isMediaType = (column: string) =>
  `(${column} GLOB 'audio/[!-~]*' OR ${column} GLOB 'video/[!-~]*') AND ${isPrintable(column)}`;
/** A value that another server stated. */
const isStated = (column: string) =>
  `length(${column}) BETWEEN 1 AND ${MAX_STATED} AND ${isPrintable(column)}`;

/** The columns that items have in every version. */
const ITEM_COLUMNS = `
      token TEXT NOT NULL PRIMARY KEY CHECK (token GLOB '${TOKEN}' AND ${hasBytes("token", 36)}),
      kind TEXT NOT NULL CHECK (${isOneOf("kind", ["audio", "video"])}),
      length INTEGER CHECK (length BETWEEN 0 AND 9007199254740991),
      digest TEXT CHECK (
        digest NOT GLOB '*[^0-9a-f]*' AND length(digest) = 64 AND ${hasBytes("digest", 64)}
      ),
      published_at INTEGER CHECK (${isInstant("published_at")}),
      name TEXT,
      language TEXT CHECK (
        language GLOB '?*' AND language NOT GLOB '*[^A-Za-z0-9-]*' AND ${isPrintable("language")}
      ),
      unpublished_at INTEGER CHECK (${isInstant("unpublished_at")})`;

/** The catalogue: see `lib/storage/sql/catalogue.ts`. */
export const CATALOGUE: Schema = {
  name: "catalogue",
  applicationId: 0x6d68_6361,
  steps: [
    `
    CREATE TABLE catalogue (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      version INTEGER NOT NULL,
      content TEXT
    ) STRICT;
    INSERT INTO catalogue (only, version) VALUES (1, 0);
    CREATE TABLE item (
      ${ITEM_COLUMNS},
      type TEXT CHECK (${isMediaType("type")}),
      CHECK (CASE WHEN unpublished_at IS NULL
        THEN type IS NOT NULL AND length IS NOT NULL AND digest IS NOT NULL
          AND published_at IS NOT NULL
        ELSE coalesce(type, length, digest, published_at, name, language) IS NULL END)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX item_by_digest ON item (digest) WHERE digest IS NOT NULL;
  `,
    `
    CREATE TABLE item_2 ( -- SQLite changes no CHECK of a table that is there
      ${ITEM_COLUMNS},
      type TEXT CHECK (${isStated("type")}),
      location TEXT CHECK (
        length(location) <= ${MAX_LOCATION} AND (location GLOB 's3://?*/?*' OR (
          (location GLOB 'https://?*' OR location GLOB 'http://?*')
          AND location NOT GLOB '*[^!-~]*' AND ${hasBytes("location", "length(location)")}))
      ),
      validator TEXT CHECK (${isStated("validator")}),
      CHECK (CASE
        WHEN unpublished_at IS NOT NULL
          THEN coalesce(type, length, digest, published_at, name, language, location, validator)
            IS NULL
        WHEN published_at IS NULL THEN FALSE
        WHEN digest IS NULL
          THEN (location GLOB 'http*') IS TRUE AND coalesce(name, language) IS NULL
        ELSE type IS NOT NULL AND ${isMediaType("type")} AND length IS NOT NULL
          AND (location IS NULL) = (validator IS NULL)
          AND (location GLOB 's3:*') IS NOT FALSE END)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO item_2
        (token, kind, length, digest, published_at, name, language, unpublished_at, type)
      SELECT token, kind, length, digest, published_at, name, language, unpublished_at, type
        FROM item;
    DROP TABLE item;
    ALTER TABLE item_2 RENAME TO item;
    CREATE INDEX item_by_digest ON item (digest) WHERE digest IS NOT NULL;
  `,
  ],
};

/** The ledger: see `lib/storage/sql/ledger.ts`. */
export const LEDGER: Schema = {
  name: "ledger",
  applicationId: 0x6d68_6c65,
  steps: [`
    CREATE TABLE ledger (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      kept_from TEXT CHECK (${isDay("kept_from")})
    ) STRICT;
    INSERT INTO ledger (only) VALUES (1);
    CREATE TABLE usage (
      day TEXT NOT NULL CHECK (${isDay("day")}),
      route TEXT NOT NULL CHECK (${isName("route")}),
      method TEXT NOT NULL CHECK (${isName("method")}),
      phase TEXT NOT NULL CHECK (${isOneOf("phase", PHASES)}),
      status TEXT NOT NULL CHECK (${isName("status")}),
      impact TEXT NOT NULL CHECK (${isOneOf("impact", IMPACTS)}),
      client TEXT NOT NULL CHECK (${isName("client")}),
      calls INTEGER NOT NULL CHECK (calls BETWEEN 1 AND 9007199254740991),
      first INTEGER NOT NULL CHECK (${isInstant("first")}),
      last INTEGER NOT NULL CHECK (${isInstant("last")} AND last >= first),
      PRIMARY KEY (day, route, method, phase, status, impact, client)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE watch (
      server TEXT NOT NULL CHECK (${isName("server")}),
      since INTEGER NOT NULL CHECK (${isInstant("since")}),
      until INTEGER NOT NULL CHECK (${isInstant("until")}),
      ending TEXT CHECK (${isOneOf("ending", ["stopped", "gone"])}),
      PRIMARY KEY (since, server)
    ) STRICT, WITHOUT ROWID;
  `],
};
