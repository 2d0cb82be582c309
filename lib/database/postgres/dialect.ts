/** The SQL of PostgreSQL, where it differs. */

import type { Dialect } from "../sql/schema.ts";

/**
 * Texts are compared byte by byte, whatever the locale of the database. The checks use no bounded
 * repetition: in a regular expression, that takes PostgreSQL longer than the rest of an import.
 */
export const DIALECT: Dialect = {
  uuidKey: (column) =>
    `uuid PRIMARY KEY CHECK (get_byte(uuid_send(${column}), 6) >> 4 = 4
      AND get_byte(uuid_send(${column}), 8) >> 6 = 2)`,
  text: 'text COLLATE "C"',
  integer: "bigint",
  json: (column) => `${column} json NOT NULL`,
  hasOnly: (column, characters) => `${column} !~ '[^${characters}]'`,
  isDay: (column) => `${column} ~ '^[0-9]{4}-[01][0-9]-[0-3][0-9]$'`,
  options: "",
};
