/**
 * The place of a database: its URL, parsed once. Whatever depends on the kind of database, or on
 * where it is, asks this value.
 */

import { WrongUsageError } from "../errors/refused_error.ts";
import { withoutPassword } from "../input/printable.ts";
import {
  addressIn,
  faultIn,
  foreignFormIn,
  parsePostgresUrl,
  placeIn,
  schemaIn,
  socketIn,
  warningIn,
} from "./postgres_url.ts";

export type DatabasePlace = SqlitePlace | PostgresPlace;

/** What every place says of itself. */
interface Place {
  /** The place for people, without credentials. */
  readonly name: string;
  /** All paths at which the database, and the ledger beside it, may have a file. */
  readonly files: readonly string[];
  /** The folder or socket that a process must be allowed to read and write, if there is one. */
  readonly access: string | undefined;
  /** The address that a process connects to, as permissions name it, if there is one. */
  readonly address: string | undefined;
  /** The files that a connection reads besides. */
  readonly certificates: readonly string[];
  /** What in the URL is hardly meant, if anything. */
  readonly warning: string | undefined;
}

export interface SqlitePlace extends Place {
  readonly kind: "sqlite";
  /** `:memory:` for a database that lasts as long as its object. */
  readonly path: string;
  /** Where the ledger of a catalogue at `path` is. */
  readonly ledgerPath: string;
}

export interface PostgresPlace extends Place {
  readonly kind: "postgres";
  /** `postgres://…`; it may have a password. */
  readonly url: string;
  /** The first schema of the search path that the URL sets, if it sets one. */
  readonly schema: string | undefined;
}

/** The result for a URL that is no place. */
interface Invalid {
  readonly kind: "invalid";
  /** What is wrong with the URL, or which program reads it; `undefined` if neither is known. */
  readonly fault: string | undefined;
}

/** The path of a database in memory. */
export const MEMORY = ":memory:";

/** An empty database that leaves no trace. */
export const IN_MEMORY: SqlitePlace = sqliteAt(MEMORY);

/**
 * Matches `sqlite:PATH`. What follows `sqlite:` must not be the URL or the address of a database
 * server: SQLite would create a file of that name, with the password in it. The scheme is in any
 * case (RFC 3986 §3.1).
 */
const SQLITE_URL = /^sqlite:(?![a-z][a-z0-9+.-]*:\/\/|\/\/[^/])(.+)/is;

/** The scheme is in any case, too. */
const POSTGRES_URL = /^postgres(?:ql)?:\/\//i;

/** Parses `sqlite:PATH` or `postgres://…`. */
export function parseDatabaseUrl(url: string): DatabasePlace | Invalid {
  const path = SQLITE_URL.exec(url)?.[1];
  if (path !== undefined) return sqliteAt(path);
  const isPostgres = POSTGRES_URL.test(url);
  const fault = foreignFormIn(url) ?? (isPostgres ? faultIn(url) : undefined);
  if (!isPostgres || fault !== undefined || parsePostgresUrl(url) === null) {
    return { kind: "invalid", fault };
  }
  return postgresAt(url);
}

/**
 * Parses the URL of a database that a user has to give.
 *
 * @param setting The setting or option that has the URL, for messages.
 * @throws {WrongUsageError} If it is neither `sqlite:PATH` nor `postgres://…`, has an unescaped "#",
 *   or has parameters that are mistyped or choose a schema in a way that has no effect.
 */
export function requireDatabaseUrl(url: string, setting: string): DatabasePlace {
  const place = parseDatabaseUrl(url);
  if (place.kind !== "invalid") return place;
  const expected = 'expected "sqlite:PATH" or "postgres://…"';
  const fault = place.fault ?? `${expected}, got "${withoutPassword(url)}"`;
  throw new WrongUsageError(`${setting}: ${fault}`);
}

/** Returns the place of a SQLite database. */
export function sqliteAt(path: string): SqlitePlace {
  const isInMemory = path === MEMORY;
  const ledgerPath = isInMemory ? MEMORY : `${path}-ledger`;
  const files = [path, ledgerPath].flatMap((file) =>
    ["", "-wal", "-shm", "-journal"].map((end) => file + end)
  );
  return {
    kind: "sqlite",
    path,
    ledgerPath,
    name: `sqlite:${path}`,
    files: isInMemory ? [] : files,
    access: isInMemory ? undefined : path.slice(0, path.lastIndexOf("/") + 1) || ".",
    address: undefined,
    certificates: [],
    warning: undefined,
  };
}

/** Returns the place of a PostgreSQL database. */
export function postgresAt(url: string): PostgresPlace {
  const parameters = parsePostgresUrl(url)?.searchParams;
  const names = ["sslrootcert", "sslcert", "sslkey"];
  return {
    kind: "postgres",
    url,
    schema: schemaIn(url),
    name: placeIn(url),
    files: [],
    access: socketIn(url),
    address: addressIn(url),
    certificates: names.flatMap((name) => parameters?.get(name) ?? []),
    warning: warningIn(url),
  };
}
