/** The SQL that is particular to SQLite. */

import type { Dialect } from "../sql/schema.ts";

/** SQLite's text functions stop at the first NUL; its byte functions do not. */
const hasNoNul = (column: string) => `length(CAST(${column} AS BLOB)) = length(${column})`;

/** The pattern of a version 4 UUID (RFC 9562 §5.4) in lower case, for GLOB. */
const UUID_4_PATTERN = "xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx"
  .replaceAll("x", "[0-9a-f]");

export const DIALECT: Dialect = {
  uuidKey: (column) =>
    `TEXT PRIMARY KEY CHECK (${column} GLOB '${UUID_4_PATTERN}' AND ${hasNoNul(column)})`,
  text: "TEXT",
  integer: "INTEGER",
  json: (column) => `${column} TEXT NOT NULL CHECK (json_valid(${column}))`,
  hasOnly: (column, characters) =>
    `${column} NOT GLOB '*[^${characters}]*' AND ${hasNoNul(column)}`,
  isDay: (column) => `${column} IS date(${column})`,
  options: " STRICT, WITHOUT ROWID", // keeps primary keys from being null
};
