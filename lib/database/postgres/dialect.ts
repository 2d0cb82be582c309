/** The SQL that is particular to PostgreSQL. */

import type { Dialect } from "../sql/schema.ts";

/**
 * Compares texts byte by byte, regardless of the database's locale. The checks use no bounded
 * repetition, because in a regular expression it takes PostgreSQL longer than the rest of an
 * import.
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
