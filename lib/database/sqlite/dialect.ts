/** The SQL that is particular to SQLite. */

import { UUID_4_PATTERN } from "../../input/uuid.ts";
import type { Dialect } from "../sql/schema.ts";

/** SQLite's text functions stop at the first NUL; its byte functions do not. */
const hasNoNul = (column: string) => `length(CAST(${column} AS BLOB)) = length(${column})`;

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
