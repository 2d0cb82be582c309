/** The tables of a catalogue and of a ledger, in the SQL that all engines share. */

import { MAX_LOCATION, MAX_STATED } from "../item.ts";
import { ENDS, IMPACTS, USAGE_KEY } from "../ledger/records.ts";

/** What differs between the engines. */
export interface Dialect {
  /** The definition of an item's token: a version 4 UUID in lower case, and the primary key. */
  readonly token: string;
  /** The type of a text, which is compared byte by byte. */
  readonly text: string;
  /** The type of an integer of 64 bits. */
  readonly integer: string;
  /** The definition of a column with JSON. */
  readonly json: (column: string) => string;
  /** Checks that a text has none but some ASCII characters, e.g. `!-~`. */
  readonly hasOnly: (column: string, characters: string) => string;
  /** Checks that a text is a date, e.g. `2027-01-31`. */
  readonly isDay: (column: string) => string;
  /** What follows the columns of a table with a primary key. */
  readonly options: string;
}

/** Checks that a number is a count. */
const isCount = (column: string, least: 0 | 1) =>
  `${column} BETWEEN ${least} AND ${Number.MAX_SAFE_INTEGER}`;

/** Checks that a number is in milliseconds since the epoch, within the range of `Date`. */
export const isInstant = (column: string) =>
  `${column} BETWEEN -8640000000000000 AND 8640000000000000`;

const isOneOf = (column: string, values: readonly string[]) =>
  `${column} IN (${values.map((value) => `'${value}'`).join(", ")})`;

const areNull = (columns: readonly string[]) =>
  columns.map((column) => `${column} IS NULL`).join(" AND ");

/** Checks that a text is of 1 to `max` printable ASCII characters. */
const isPrintable = ({ hasOnly }: Dialect, column: string, max: number) =>
  `length(${column}) BETWEEN 1 AND ${max} AND ${hasOnly(column, " -~")}`;

/** What a tombstone lacks. */
const FACTS = "type length digest published_at name language location validator".split(" ");

/** Returns the statements that create the table of items: see `catalogue/catalogue.ts`. */
export function itemTable(dialect: Dialect): string {
  const { token, text, integer, options, hasOnly } = dialect;
  const isObject = `substr(location, 1, 5) = 's3://'`;
  return `
    CREATE TABLE item (
      token ${token},
      kind ${text} NOT NULL CHECK (${isOneOf("kind", ["audio", "video"])}),
      type ${text} CHECK (${isPrintable(dialect, "type", MAX_STATED)}),
      length ${integer} CHECK (${isCount("length", 0)}),
      digest ${text} CHECK (length(digest) = 64 AND ${hasOnly("digest", "0-9a-f")}),
      published_at ${integer} CHECK (${isInstant("published_at")}),
      name ${text},
      language ${text} CHECK (length(language) > 0 AND ${hasOnly("language", "A-Za-z0-9-")}),
      unpublished_at ${integer} CHECK (${isInstant("unpublished_at")}),
      location ${text} CHECK (length(location) <= ${MAX_LOCATION} AND CASE
        WHEN ${isObject} THEN location LIKE 's3://_%/_%' AND substr(location, 6, 1) <> '/'
        ELSE (substr(location, 1, 8) = 'https://' OR substr(location, 1, 7) = 'http://')
          AND location LIKE '%://_%' AND ${hasOnly("location", "!-~")} END),
      validator ${text} CHECK (${isPrintable(dialect, "validator", MAX_STATED)}),
      CHECK (CASE
        WHEN unpublished_at IS NOT NULL THEN ${areNull(FACTS)}
        WHEN published_at IS NULL THEN FALSE
        WHEN digest IS NULL
          THEN location IS NOT NULL AND NOT ${isObject} AND ${areNull(["name", "language"])}
        ELSE length IS NOT NULL AND type IS NOT NULL
          AND substr(type, 1, 6) IN ('audio/', 'video/') AND substr(type, 7, 1) NOT IN ('', ' ')
          AND CASE WHEN location IS NULL THEN validator IS NULL
            ELSE ${isObject} AND validator IS NOT NULL END
        END)
    )${options};
    CREATE INDEX item_by_digest ON item (digest) WHERE digest IS NOT NULL;
  `;
}

/** Returns the statements that create the tables of calls: see `ledger/ledger.ts`. */
export function usageTables(dialect: Dialect): string {
  const { text, integer, json, isDay, options } = dialect;
  // Nothing is asked of names here, which clients choose: one that could not be recorded would keep all
  // others from being recorded.
  return `
    CREATE TABLE usage (
      day ${text} CHECK (${isDay("day")}),
      route ${text} NOT NULL,
      method ${text} NOT NULL,
      phase ${text} NOT NULL,
      brownout ${text} NOT NULL,
      status ${text} NOT NULL,
      impact ${text} CHECK (${isOneOf("impact", IMPACTS)}),
      client ${text} NOT NULL,
      release ${text} NOT NULL,
      calls ${integer} NOT NULL CHECK (${isCount("calls", 1)}),
      last ${integer} NOT NULL CHECK (${isInstant("last")}),
      PRIMARY KEY (${USAGE_KEY.join(", ")})
    )${options};
    CREATE TABLE session (
      id ${text} PRIMARY KEY CHECK (${isPrintable(dialect, "id", 64)}),
      ${json("policies")},
      began ${integer} NOT NULL CHECK (${isInstant("began")}),
      reported ${integer} NOT NULL CHECK (${isInstant("reported")} AND reported >= began),
      sequence ${integer} NOT NULL CHECK (${isCount("sequence", 0)}),
      ended ${text} CHECK (${isOneOf("ended", ENDS)})
    )${options};
  `;
}
