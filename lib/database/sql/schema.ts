/** The schemas of tables, in the SQL that all engines share. */

/** A group of tables. One of them, {@linkcode tableOf} the group, has a single row. */
export interface Schema {
  /** The name of the group in messages. */
  readonly name: "catalogue" | "ledger";
  /** The only version that this release supports. */
  readonly version: number;
  /** How to upgrade tables of an earlier version. */
  readonly upgrade: string;
  /** SQLite's `application_id`. It distinguishes our files from those of other programs. */
  readonly applicationId: number;
  /** Returns the statements that create the other tables. */
  readonly tables: (dialect: Dialect) => string;
  /** Returns the columns of the single row, besides its key and the version of the schema. */
  readonly columns: (dialect: Dialect) => string;
}

/** Returns the name of the table with a single row. No other program uses names like it. */
export function tableOf({ name }: Pick<Schema, "name">): string {
  return `media_head_${name}`;
}

/** Returns the statements that create all tables of a schema. */
export function creationOf(schema: Schema, dialect: Dialect): string {
  const { version, tables, columns } = schema;
  const table = tableOf(schema);
  return `
    CREATE TABLE ${table} (
      id ${dialect.integer} PRIMARY KEY CHECK (id = 1),
      schema ${dialect.integer} NOT NULL,
      ${columns(dialect)}
    )${dialect.options};
    INSERT INTO ${table} (id, schema) VALUES (1, ${version});
    ${tables(dialect)}
  `;
}

/** The differences between the engines. */
export interface Dialect {
  /** The definition of a primary key that is a version 4 UUID in lower case. */
  readonly uuidKey: (column: string) => string;
  /** The type of a text that is compared byte by byte. */
  readonly text: string;
  /** The type of an integer of 64 bits. */
  readonly integer: string;
  /** The definition of a column of JSON. */
  readonly json: (column: string) => string;
  /** Checks that a text has only the given ASCII characters, e.g. `!-~`. */
  readonly hasOnly: (column: string, characters: string) => string;
  /** Checks that a text is a date, e.g. `2027-01-31`. */
  readonly isDay: (column: string) => string;
  /** The text after the columns of a table with a primary key. */
  readonly options: string;
}

/** Checks that a number is a count. */
export const isCount = (column: string, least: 0 | 1) =>
  `${column} BETWEEN ${least} AND ${Number.MAX_SAFE_INTEGER}`;

/** Checks that a number is an instant in milliseconds since the epoch, in the range of `Date`. */
export const isInstant = (column: string) =>
  `${column} BETWEEN -8640000000000000 AND 8640000000000000`;

export const isOneOf = (column: string, values: readonly string[]) =>
  `${column} IN (${values.map((value) => `'${value}'`).join(", ")})`;

/** Checks that a text has 1 to `max` characters, all of them printable ASCII. */
export const isPrintable = ({ hasOnly }: Dialect, column: string, max: number) =>
  `length(${column}) BETWEEN 1 AND ${max} AND ${hasOnly(column, " -~")}`;
