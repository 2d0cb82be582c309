/**
 * The tables of a catalogue and of a ledger in SQLite, each in its own file: a long import locks
 * the catalogue, and must not keep servers from flushing their counts.
 */

import { PHASES } from "../../../lifecycle/policy.ts";
import { IMPACTS } from "../../ledger/ledger.ts";
import { EXPORT } from "../../errors.ts";
import { MAX_LOCATION, MAX_STATED } from "../../item.ts";

export interface Schema {
  /** The name for messages. */
  readonly name: "catalogue" | "ledger";
  /** SQLite's `application_id`, which distinguishes our files from those of other programs. */
  readonly applicationId: number;
  readonly version: number;
  /** What to do about a file of an earlier version. */
  readonly upgrade: string;
  readonly tables: string;
}

// Each function returns the SQL of a check of a column.

/** Milliseconds since the epoch, within the range of `Date`. */
const instantCheck = (column: string) => `${column} BETWEEN -8640000000000000 AND 8640000000000000`;
const TOKEN = "xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx".replaceAll("x", "[0-9a-f]");
/** SQLite's text functions stop at the first NUL; its byte functions do not. */
const bytesCheck = (column: string, length: number | string) =>
  `length(CAST(${column} AS BLOB)) = ${length}`;
const printableCheck = (column: string) =>
  `${column} NOT GLOB '*[^ -~]*' AND ${bytesCheck(column, `length(${column})`)}`;
const nameCheck = (column: string, max = 64) =>
  `length(${column}) BETWEEN 1 AND ${max} AND ${printableCheck(column)}`;
const oneOfCheck = (column: string, values: readonly string[]) =>
  `${column} IN (${values.map((value) => `'${value}'`).join(", ")})`;
const dayCheck = (column: string) => `${column} IS date(${column})`;

const mediaTypeCheck = (column: string) =>
  `(${column} GLOB 'audio/[!-~]*' OR ${column} GLOB 'video/[!-~]*') AND ${printableCheck(column)}`;
/** A value that another server stated. */
const statedCheck = (column: string) => nameCheck(column, MAX_STATED);

/** The catalogue: see `lib/storage/catalogue/catalogue.ts`. */
export const CATALOGUE: Schema = {
  name: "catalogue",
  applicationId: 0x6d68_6361,
  version: 2,
  upgrade: EXPORT,
  tables: `
    CREATE TABLE catalogue (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      version INTEGER NOT NULL,
      content TEXT
    ) STRICT;
    INSERT INTO catalogue (only, version) VALUES (1, 0);
    CREATE TABLE item (
      token TEXT NOT NULL PRIMARY KEY CHECK (token GLOB '${TOKEN}' AND ${bytesCheck("token", 36)}),
      kind TEXT NOT NULL CHECK (${oneOfCheck("kind", ["audio", "video"])}),
      length INTEGER CHECK (length BETWEEN 0 AND 9007199254740991),
      digest TEXT CHECK (
        digest NOT GLOB '*[^0-9a-f]*' AND length(digest) = 64 AND ${bytesCheck("digest", 64)}
      ),
      published_at INTEGER CHECK (${instantCheck("published_at")}),
      name TEXT,
      language TEXT CHECK (
        language GLOB '?*' AND language NOT GLOB '*[^A-Za-z0-9-]*' AND ${printableCheck("language")}
      ),
      unpublished_at INTEGER CHECK (${instantCheck("unpublished_at")}),
      type TEXT CHECK (${statedCheck("type")}),
      location TEXT CHECK (
        length(location) <= ${MAX_LOCATION} AND (location GLOB 's3://?*/?*' OR (
          (location GLOB 'https://?*' OR location GLOB 'http://?*')
          AND location NOT GLOB '*[^!-~]*' AND ${bytesCheck("location", "length(location)")}))
      ),
      validator TEXT CHECK (${statedCheck("validator")}),
      CHECK (CASE
        WHEN unpublished_at IS NOT NULL
          THEN coalesce(type, length, digest, published_at, name, language, location, validator)
            IS NULL
        WHEN published_at IS NULL THEN FALSE
        WHEN digest IS NULL
          THEN (location GLOB 'http*') IS TRUE AND coalesce(name, language) IS NULL
        ELSE type IS NOT NULL AND ${mediaTypeCheck("type")} AND length IS NOT NULL
          AND (location IS NULL) = (validator IS NULL)
          AND (location GLOB 's3:*') IS NOT FALSE END)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX item_by_digest ON item (digest) WHERE digest IS NOT NULL;
  `,
};

/** The ledger: see `lib/storage/ledger/sql_ledger.ts`. */
export const LEDGER: Schema = {
  name: "ledger",
  applicationId: 0x6d68_6c65,
  version: 3,
  upgrade: "stop the servers, and move it away to start counting afresh",
  tables: `
    CREATE TABLE ledger (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      kept_from TEXT CHECK (${dayCheck("kept_from")})
    ) STRICT;
    INSERT INTO ledger (only) VALUES (1);
    CREATE TABLE usage (
      day TEXT NOT NULL CHECK (${dayCheck("day")}),
      route TEXT NOT NULL CHECK (${nameCheck("route")}),
      method TEXT NOT NULL CHECK (${nameCheck("method")}),
      phase TEXT NOT NULL CHECK (${oneOfCheck("phase", PHASES)}),
      status TEXT NOT NULL CHECK (${nameCheck("status")}),
      impact TEXT NOT NULL CHECK (${oneOfCheck("impact", IMPACTS)}),
      client TEXT NOT NULL CHECK (${nameCheck("client", 80)}),
      calls INTEGER NOT NULL CHECK (calls BETWEEN 1 AND 9007199254740991),
      first INTEGER NOT NULL CHECK (${instantCheck("first")}),
      last INTEGER NOT NULL CHECK (${instantCheck("last")} AND last >= first),
      PRIMARY KEY (day, route, method, phase, status, impact, client)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE heartbeat (
      server TEXT NOT NULL CHECK (${nameCheck("server")}),
      policies TEXT NOT NULL CHECK (json_valid(policies)),
      since INTEGER NOT NULL CHECK (${instantCheck("since")}),
      until INTEGER NOT NULL CHECK (${instantCheck("until")}),
      ending TEXT CHECK (${oneOfCheck("ending", ["stopped", "gone"])}),
      PRIMARY KEY (since, server)
    ) STRICT, WITHOUT ROWID;
  `,
};
