/**
 * The tables of a catalogue and of a ledger in PostgreSQL.
 */

import { PHASES } from "../../lifecycle/policy.ts";
import { IMPACTS } from "../ledger.ts";
import { MAX_LOCATION, MAX_STATED } from "../storage.ts";

/** Milliseconds since the epoch, within the range of `Date`. */
const isInstant = (column: string) => `${column} BETWEEN -8640000000000000 AND 8640000000000000`;
const isName = (column: string) => `${column} ~ '^[ -~]{1,64}$'`;
const isDay = (column: string) => `${column} ~ '^[0-9]{4}-[01][0-9]-[0-3][0-9]$'`;
const isOneOf = (column: string, values: readonly string[]) =>
  `${column} IN (${values.map((value) => `'${value}'`).join(", ")})`;
/** A value that another server stated. */
const isStated = (column: string) =>
  `length(${column}) BETWEEN 1 AND ${MAX_STATED} AND ${column} !~ '[^ -~]'`;

/**
 * The change made by each version of the schema; append-only. Their number is the current version.
 * Texts are compared byte by byte, whatever the locale of the database.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE catalogue (
    id integer PRIMARY KEY CHECK (id = 1),
    schema integer NOT NULL,
    version bigint NOT NULL,
    content text
  );
  INSERT INTO catalogue (id, schema, version) VALUES (1, 1, 0);
  CREATE TABLE item (
    token uuid PRIMARY KEY CHECK (token::text ~ '^.{14}4.{4}[89ab]'),
    kind text NOT NULL CHECK (${isOneOf("kind", ["audio", "video"])}),
    type text CHECK (type ~ '^(audio|video)/[!-~][ -~]*$'),
    length bigint CHECK (length BETWEEN 0 AND 9007199254740991),
    digest text COLLATE "C" CHECK (digest ~ '^[0-9a-f]{64}$'),
    published_at bigint CHECK (${isInstant("published_at")}),
    name text,
    language text CHECK (language ~ '^[A-Za-z0-9-]+$'),
    unpublished_at bigint CHECK (${isInstant("unpublished_at")}),
    CHECK (CASE WHEN unpublished_at IS NULL
      THEN num_nulls(type, length, digest, published_at) = 0
      ELSE num_nonnulls(type, length, digest, published_at, name, language) = 0 END)
  );
  CREATE INDEX item_by_digest ON item (digest) WHERE digest IS NOT NULL;
  CREATE TABLE ledger (
    id integer PRIMARY KEY CHECK (id = 1),
    kept_from text COLLATE "C" CHECK (${isDay("kept_from")})
  );
  INSERT INTO ledger (id) VALUES (1);
  CREATE TABLE usage (
    day text COLLATE "C" CHECK (${isDay("day")}),
    route text COLLATE "C" CHECK (${isName("route")}),
    method text COLLATE "C" CHECK (${isName("method")}),
    phase text COLLATE "C" CHECK (${isOneOf("phase", PHASES)}),
    status text COLLATE "C" CHECK (${isName("status")}),
    impact text COLLATE "C" CHECK (${isOneOf("impact", IMPACTS)}),
    client text COLLATE "C" CHECK (${isName("client")}),
    calls bigint NOT NULL CHECK (calls BETWEEN 1 AND 9007199254740991),
    first bigint NOT NULL CHECK (${isInstant("first")}),
    last bigint NOT NULL CHECK (${isInstant("last")} AND last >= first),
    PRIMARY KEY (day, route, method, phase, status, impact, client)
  );
  CREATE TABLE watch (
    server text COLLATE "C" CHECK (${isName("server")}),
    since bigint CHECK (${isInstant("since")}),
    until bigint NOT NULL CHECK (${isInstant("until")}),
    ending text CHECK (${isOneOf("ending", ["stopped", "gone"])}),
    PRIMARY KEY (since, server)
  );
`,
  `
  ALTER TABLE item
    ADD COLUMN location text COLLATE "C"
      CHECK (location ~ '^(https?://[!-~]+|s3://[^/]+/.+)$' AND length(location) <= ${MAX_LOCATION}),
    ADD COLUMN validator text COLLATE "C" CHECK (validator ~ '^[ -~]{1,${MAX_STATED}}$'),
    DROP CONSTRAINT item_type_check,
    DROP CONSTRAINT item_check,
    ADD CHECK (CASE
      WHEN unpublished_at IS NOT NULL THEN num_nonnulls(
        type, length, digest, published_at, name, language, location, validator) = 0
      WHEN published_at IS NULL THEN FALSE
      WHEN digest IS NULL THEN (location ~ '^http') IS TRUE AND num_nonnulls(name, language) = 0
        AND (type IS NULL OR type ~ '^[ -~]{1,${MAX_STATED}}$')
      ELSE num_nulls(type, length) = 0 AND type ~ '^(audio|video)/[!-~][ -~]*$'
        AND num_nulls(location, validator) IN (0, 2) AND (location ~ '^s3:') IS NOT FALSE END);
`,
  // The same checks in a tenth of the time: a bounded repetition in a regular expression takes
  // PostgreSQL longer than the rest of an import. NOT VALID, since existing rows were checked
  // before.
  `
  ALTER TABLE item
    DROP CONSTRAINT item_token_check,
    DROP CONSTRAINT item_digest_check,
    DROP CONSTRAINT item_location_check,
    DROP CONSTRAINT item_validator_check,
    DROP CONSTRAINT item_check,
    ADD CONSTRAINT item_token_check CHECK (
      get_byte(uuid_send(token), 6) >> 4 = 4 AND get_byte(uuid_send(token), 8) >> 6 = 2) NOT VALID,
    ADD CONSTRAINT item_digest_check CHECK (
      length(digest) = 64 AND digest !~ '[^0-9a-f]') NOT VALID,
    ADD CONSTRAINT item_location_check CHECK (length(location) <= ${MAX_LOCATION} AND CASE
      WHEN location LIKE 's3:%' THEN location ~ '^s3://[^/]+/.'
      ELSE (location LIKE 'https://_%' OR location LIKE 'http://_%') AND location !~ '[^!-~]'
      END) NOT VALID,
    ADD CONSTRAINT item_validator_check CHECK (${isStated("validator")}) NOT VALID,
    ADD CONSTRAINT item_check CHECK (CASE
      WHEN unpublished_at IS NOT NULL THEN num_nonnulls(
        type, length, digest, published_at, name, language, location, validator) = 0
      WHEN published_at IS NULL THEN FALSE
      WHEN digest IS NULL THEN (location LIKE 'http%') IS TRUE AND num_nonnulls(name, language) = 0
        AND (type IS NULL OR ${isStated("type")})
      ELSE num_nulls(type, length) = 0 AND type ~ '^(audio|video)/[!-~]' AND type !~ '[^ -~]'
        AND num_nulls(location, validator) IN (0, 2) AND (location LIKE 's3:%') IS NOT FALSE
      END) NOT VALID;
`,
];
