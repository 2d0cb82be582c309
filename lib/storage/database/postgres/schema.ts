/** The tables of a catalogue and of a ledger in PostgreSQL. */

import { type Dialect, isInstant, itemTable, usageTables } from "../schema.ts";

/** The version of the schema. Any other is refused. */
export const VERSION = 7;

/**
 * Texts are compared byte by byte, whatever the locale of the database. The checks use no bounded
 * repetition: in a regular expression, that takes PostgreSQL longer than the rest of an import.
 */
const DIALECT: Dialect = {
  token: `uuid PRIMARY KEY CHECK (
    get_byte(uuid_send(token), 6) >> 4 = 4 AND get_byte(uuid_send(token), 8) >> 6 = 2)`,
  text: 'text COLLATE "C"',
  integer: "bigint",
  json: (column) => `${column} json NOT NULL`,
  hasOnly: (column, characters) => `${column} !~ '[^${characters}]'`,
  isDay: (column) => `${column} ~ '^[0-9]{4}-[01][0-9]-[0-3][0-9]$'`,
  options: "",
};

export const TABLES = `
  CREATE TABLE catalogue (
    id integer PRIMARY KEY CHECK (id = 1),
    schema integer NOT NULL,
    version bigint NOT NULL,
    content text
  );
  INSERT INTO catalogue (id, schema, version) VALUES (1, ${VERSION}, 0);
  ${itemTable(DIALECT)}
  CREATE TABLE ledger (
    id integer PRIMARY KEY CHECK (id = 1),
    started bigint CHECK (${isInstant("started")})
  );
  INSERT INTO ledger (id) VALUES (1);
  ${usageTables(DIALECT)}
`;
