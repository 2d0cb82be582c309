/**
 * The tables of a catalogue and of a ledger in SQLite. Each has its own file, because a long import
 * locks the catalogue, and must not keep servers from flushing their counts.
 */

import { HOW_TO_UPGRADE } from "../../errors.ts";
import { TOKEN_PATTERN } from "../../token.ts";
import { type Dialect, isInstant, itemTable, usageTables } from "../schema.ts";

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

/** SQLite's text functions stop at the first NUL; its byte functions do not. */
const hasNoNul = (column: string) => `length(CAST(${column} AS BLOB)) = length(${column})`;

const DIALECT: Dialect = {
  token: `TEXT PRIMARY KEY CHECK (token GLOB '${TOKEN_PATTERN}' AND ${hasNoNul("token")})`,
  text: "TEXT",
  integer: "INTEGER",
  json: (column) => `${column} TEXT NOT NULL CHECK (json_valid(${column}))`,
  hasOnly: (column, characters) =>
    `${column} NOT GLOB '*[^${characters}]*' AND ${hasNoNul(column)}`,
  isDay: (column) => `${column} IS date(${column})`,
  options: " STRICT, WITHOUT ROWID", // whose primary keys are never null
};

export const CATALOGUE: Schema = {
  name: "catalogue",
  applicationId: 0x6d68_6361,
  version: 2,
  upgrade: HOW_TO_UPGRADE,
  tables: `
    CREATE TABLE catalogue (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      version INTEGER NOT NULL,
      content TEXT
    ) STRICT;
    INSERT INTO catalogue (only, version) VALUES (1, 0);
    ${itemTable(DIALECT)}
  `,
};

export const LEDGER: Schema = {
  name: "ledger",
  applicationId: 0x6d68_6c65,
  version: 5,
  upgrade: "stop the servers, and move it away to start counting afresh",
  tables: `
    CREATE TABLE ledger (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      started INTEGER CHECK (${isInstant("started")})
    ) STRICT;
    INSERT INTO ledger (only) VALUES (1);
    ${usageTables(DIALECT)}
  `,
};
