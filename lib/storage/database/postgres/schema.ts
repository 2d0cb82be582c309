/**
 * The tables of a catalogue and of a ledger in PostgreSQL.
 */

import { PHASES } from "../../../lifecycle/policy.ts";
import { IMPACTS } from "../../ledger/ledger.ts";
import { MAX_LOCATION, MAX_STATED } from "../../item.ts";

// Each function returns the SQL of a check of a column.

/** Milliseconds since the epoch, within the range of `Date`. */
const instantCheck = (column: string) => `${column} BETWEEN -8640000000000000 AND 8640000000000000`;
const nameCheck = (column: string, max = 64) =>
  `length(${column}) BETWEEN 1 AND ${max} AND ${column} !~ '[^ -~]'`;
const dayCheck = (column: string) => `${column} ~ '^[0-9]{4}-[01][0-9]-[0-3][0-9]$'`;
const oneOfCheck = (column: string, values: readonly string[]) =>
  `${column} IN (${values.map((value) => `'${value}'`).join(", ")})`;
/** A value that another server stated. */
const statedCheck = (column: string) => nameCheck(column, MAX_STATED);

/** The version of the schema; other ones are refused. */
export const VERSION = 5;

/**
 * Creates the tables. Texts are compared byte by byte, whatever the locale of the database. The
 * checks use no bounded repetition: in a regular expression, that takes PostgreSQL longer than the
 * rest of an import.
 */
export const TABLES = `
  CREATE TABLE catalogue (
    id integer PRIMARY KEY CHECK (id = 1),
    schema integer NOT NULL,
    version bigint NOT NULL,
    content text
  );
  INSERT INTO catalogue (id, schema, version) VALUES (1, ${VERSION}, 0);
  CREATE TABLE item (
    token uuid PRIMARY KEY CHECK (
      get_byte(uuid_send(token), 6) >> 4 = 4 AND get_byte(uuid_send(token), 8) >> 6 = 2),
    kind text NOT NULL CHECK (${oneOfCheck("kind", ["audio", "video"])}),
    type text,
    length bigint CHECK (length BETWEEN 0 AND 9007199254740991),
    digest text COLLATE "C" CHECK (length(digest) = 64 AND digest !~ '[^0-9a-f]'),
    published_at bigint CHECK (${instantCheck("published_at")}),
    name text,
    language text CHECK (language ~ '^[A-Za-z0-9-]+$'),
    unpublished_at bigint CHECK (${instantCheck("unpublished_at")}),
    location text COLLATE "C" CHECK (length(location) <= ${MAX_LOCATION} AND CASE
      WHEN location LIKE 's3:%' THEN location ~ '^s3://[^/]+/.'
      ELSE (location LIKE 'https://_%' OR location LIKE 'http://_%') AND location !~ '[^!-~]' END),
    validator text COLLATE "C" CHECK (${statedCheck("validator")}),
    CHECK (CASE
      WHEN unpublished_at IS NOT NULL THEN num_nonnulls(
        type, length, digest, published_at, name, language, location, validator) = 0
      WHEN published_at IS NULL THEN FALSE
      WHEN digest IS NULL THEN (location LIKE 'http%') IS TRUE AND num_nonnulls(name, language) = 0
        AND (type IS NULL OR ${statedCheck("type")})
      ELSE num_nulls(type, length) = 0 AND type ~ '^(audio|video)/[!-~]' AND type !~ '[^ -~]'
        AND num_nulls(location, validator) IN (0, 2) AND (location LIKE 's3:%') IS NOT FALSE END)
  );
  CREATE INDEX item_by_digest ON item (digest) WHERE digest IS NOT NULL;
  CREATE TABLE ledger (
    id integer PRIMARY KEY CHECK (id = 1),
    kept_from text COLLATE "C" CHECK (${dayCheck("kept_from")})
  );
  INSERT INTO ledger (id) VALUES (1);
  CREATE TABLE usage (
    day text COLLATE "C" CHECK (${dayCheck("day")}),
    route text COLLATE "C" CHECK (${nameCheck("route")}),
    method text COLLATE "C" CHECK (${nameCheck("method")}),
    phase text COLLATE "C" CHECK (${oneOfCheck("phase", PHASES)}),
    status text COLLATE "C" CHECK (${nameCheck("status")}),
    impact text COLLATE "C" CHECK (${oneOfCheck("impact", IMPACTS)}),
    client text COLLATE "C" CHECK (${nameCheck("client", 80)}),
    calls bigint NOT NULL CHECK (calls BETWEEN 1 AND 9007199254740991),
    first bigint NOT NULL CHECK (${instantCheck("first")}),
    last bigint NOT NULL CHECK (${instantCheck("last")} AND last >= first),
    PRIMARY KEY (day, route, method, phase, status, impact, client)
  );
  CREATE TABLE heartbeat (
    server text COLLATE "C" CHECK (${nameCheck("server")}),
    policies json NOT NULL,
    since bigint CHECK (${instantCheck("since")}),
    until bigint NOT NULL CHECK (${instantCheck("until")}),
    ending text CHECK (${oneOfCheck("ending", ["stopped", "gone"])}),
    PRIMARY KEY (since, server)
  );
`;
