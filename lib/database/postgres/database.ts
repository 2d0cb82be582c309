/**
 * A PostgreSQL database over three connections at most. It works with transaction poolers, because
 * it prepares no statements and changes no session settings.
 */

import { delay } from "@std/async/delay";
import { waitFor } from "../../async/abort.ts";
import { fulfilledWithin } from "../../async/deadline.ts";
import { settingOf } from "../open_options.ts";
import type { PostgresPlace } from "../place.ts";
import type {
  ColumnType,
  Database,
  Row,
  Statement,
  TransactionOptions,
  Value,
} from "../sql/database.ts";
import { creationOf, type Schema, tableOf } from "../sql/schema.ts";
import { NotCreatedError, StorageError } from "../../errors/storage_error.ts";
import { clientOf, type PostgresOptions } from "./client.ts";
import { DIALECT } from "./dialect.ts";
import { loadDriver, type Pool, type PoolClient } from "./driver.ts";

/** The timeout for connecting, and for a statement that a request waits for, in milliseconds. */
const READ_TIMEOUT_MS = 1_500;

/** The timeout for both together, in milliseconds. */
const LOOKUP_TIMEOUT_MS = 1_800;

/**
 * The timeout for any other statement, in milliseconds. Others may wait for locks or return many rows.
 */
const STATEMENT_TIMEOUT_MS = 10_000;

/** The time to keep querying whether a transaction was committed, in milliseconds. */
const OUTCOME_TIMEOUT_MS = 60_000;

/** The pause between two such queries, in milliseconds. */
const OUTCOME_RETRY_MS = 250;

/**
 * Begins a transaction. PostgreSQL aborts it, and releases its locks, after five idle seconds,
 * because connections can break silently. A statement whose rows a policy of row-level security
 * would filter fails, because a filtered result would look like an absence. Both settings end with
 * the transaction: behind a pooler, another application gets the connection next.
 */
const BEGIN = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 5000; " +
  "SET LOCAL row_security = off";

/** Runs a statement. */
type Run = (text: string, values?: Statement["values"]) => Promise<Row[]>;

/** Begins a transaction that is on disk once it is committed, whatever the user's settings say. */
const BEGIN_SYNCED = `${BEGIN}; SET LOCAL synchronous_commit = on`;

/**
 * The system and its timeline, which a promotion and a restore to a point in time change; null on a
 * replica. Any user may ask for them. The first eight digits of a WAL file's name are its timeline.
 */
const TIMELINE = `(SELECT CASE WHEN pg_is_in_recovery() THEN NULL
    ELSE system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) END
  FROM pg_control_system())`;

/**
 * The advisory lock for creating the tables. The number is arbitrary, and other programs are
 * unlikely to use it.
 */
const TABLES_LOCK = 0x6d68_6361;

/** A PostgreSQL database. Connections are opened on demand. */
export class PostgresDatabase implements Database {
  readonly currentTime = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
  readonly unlessLocked = "FOR SHARE SKIP LOCKED";
  readonly batch = 500; // each statement takes a round trip
  readonly #pool: Pool;
  readonly #options: PostgresOptions;
  readonly #place: PostgresPlace;
  #timeline = TIMELINE;
  /** The name of the database in messages. */
  readonly name: string;

  /** @param place Parameters of its URL like `sslmode` configure encryption. */
  constructor(place: PostgresPlace, options: PostgresOptions = {}) {
    const { url } = place;
    this.#place = place;
    this.#options = options;
    this.name = `the database (${settingOf(options)})`;
    const driver = loadDriver();
    this.#pool = new driver.Pool({
      Client: clientOf(driver, options),
      application_name: "media-head",
      // pg checks the certificate in all these modes, and warns that this will change.
      connectionString: url.includes("uselibpqcompat=")
        ? url
        : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, "$1verify-full"),
      connectionTimeoutMillis: READ_TIMEOUT_MS,
      keepAlive: true,
      max: 3, // one for requests, one for transactions, and one for intents
      idleTimeoutMillis: 60_000,
      allowExitOnIdle: true,
      // PostgreSQL sends integers as text, under these type ids.
      types: { getTypeParser: (oid: number) => oid === 20 || oid === 23 ? Number : String },
    });
    this.#pool.on("error", () => {}); // an idle connection broke; the next statement gets another
  }

  get timeline(): string {
    return this.#timeline;
  }

  /**
   * Creates the tables that are missing. If it creates those of the first schema, calls `onCreate`.
   *
   * @throws {StorageError} If the database fails, belongs to another release, is not in UTF-8, or
   *   lacks tables that must exist.
   */
  async createTables(schemas: readonly Schema[]): Promise<void> {
    const { warning } = this.#place;
    if (warning !== undefined) this.#options.onWarn?.(`${settingOf(this.#options)}: ${warning}`);
    (await this.#connect()).release();
    const settings =
      "SELECT current_setting('server_encoding') AS encoding, current_schema() AS schema";
    const { encoding, schema } = (await this.query({ text: settings }))[0] ?? {};
    if (encoding !== "UTF8") {
      const fault = `${this.name} has the encoding "${encoding}"; expected "UTF8"`;
      throw new StorageError("postgres", fault);
    }
    this.#requireSchema(schema as string | null);
    await this.#findTimeline();
    const [first] = schemas;
    for (const schema of schemas) {
      const name = await this.#createMissing(schema);
      if (schema === first && name !== undefined) this.#options.onCreate?.(name);
    }
  }

  /** Finds out whether the database tells its timeline. */
  async #findTimeline(): Promise<void> {
    try {
      await this.query({ text: `SELECT ${TIMELINE}` });
    } catch (error) { // as on a service whose storage has no WAL files
      if (!isRefusal(error)) throw error;
      this.#timeline = "''";
    }
  }

  /** Ensures that the schema in use is the one that the URL names. A pooler may have dropped it. */
  #requireSchema(schema: string | null): void {
    const expected = this.#place.schema ?? schema;
    if (schema !== null && schema === expected) return;
    const used = schema === null ? "no schema" : `the schema "${schema}"`;
    const wanted = expected === null ? "one that exists" : `"${expected}"`;
    throw new StorageError(
      "postgres",
      `${this.name} would use ${used}; expected ${wanted}: create it, and give the user USAGE on ` +
        "it. If a pooler drops options from the URL, leave them out, and run ALTER ROLE … SET search_path",
    );
  }

  /** Creates the tables of a schema if they are missing. Returns their name if it created them. */
  async #createMissing(schema: Schema): Promise<string | undefined> {
    let created: string | undefined;
    // Not `to_regclass`, because such functions can return stale results.
    const table = `SELECT 1 FROM pg_tables
      WHERE schemaname = current_schema() AND tablename = '${tableOf(schema)}'`;
    if ((await this.query({ text: table })).length === 0) {
      const place = await this.#requireCreation();
      const name = `the ${schema.name} in ${place} (${settingOf(this.#options)})`;
      if (this.#options.mustExist) {
        throw this.#faultOf("opened", new NotCreatedError(settingOf(this.#options)), name);
      }
      const isCreated = await this.#transaction(BEGIN, async (run) => {
        await run("SELECT pg_advisory_xact_lock($1)", [TABLES_LOCK]);
        if ((await run(table)).length > 0) return false; // another process created them
        await run(creationOf(schema, DIALECT));
        return true;
      });
      if (isCreated) created = name;
    }
    const [made] = await this.query({ text: `SELECT schema FROM ${tableOf(schema)}` });
    if (made === undefined) {
      const table = `${this.name} has a table ${
        tableOf(schema)
      } without the row of the ${schema.name}`;
      const reason = "another program's table may have its name, or row-level security hides it";
      throw new StorageError("postgres", `${table}: ${reason}`);
    }
    const version = made["schema"] as number;
    if (version === schema.version) return created;
    const remedy = version > schema.version ? "run a later one" : schema.upgrade;
    throw new StorageError(
      "postgres",
      `${this.name} has version ${version} of the ${schema.name}'s schema, but this release ` +
        `supports only ${schema.version}: ${remedy}`,
    );
  }

  /** Names the schema in use. Throws if the user may create no tables there. */
  async #requireCreation(): Promise<string> {
    const [row] = await this.query({
      text: `SELECT current_schema() AS schema, current_user AS user,
        has_schema_privilege(current_schema(), 'CREATE') AS may`,
    });
    const { schema, user, may } = row ?? {};
    const place = `schema "${schema}" of "${this.#place.name}"`;
    if (may === "t") return place;
    const fault = `the user "${user}" may not create tables in ${place}`;
    const remedy = `GRANT CREATE ON SCHEMA "${schema}" TO "${user}"`;
    throw new StorageError("postgres", `${fault}; let its owner run: ${remedy}`);
  }

  /**
   * Checks that the user may write to the tables of a schema, and that the database may be written
   * at all. Writes nothing.
   */
  async checkWriting(schema: Schema): Promise<void> {
    const names = creationOf(schema, DIALECT).match(/(?<=CREATE TABLE )\w+/g) ?? [];
    const rows = await this.query({
      text: `SELECT name, current_user AS user, current_schema() AS schema,
          current_setting('transaction_read_only') AS read_only,
          has_table_privilege(name, 'INSERT') AND has_table_privilege(name, 'UPDATE') AS may_write
        FROM unnest($1::text[]) AS name`,
      values: [names],
    });
    if (rows.some((row) => row["read_only"] !== "off")) {
      throw new StorageError("postgres", `${this.name} is read-only, or a standby`);
    }
    const refused = rows.find((row) => row["may_write"] !== "t");
    if (refused === undefined) return;
    const fault = `the user "${refused["user"]}" may not write to the table "${refused["name"]}"`;
    const grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES";
    const remedy = `${grant} IN SCHEMA "${refused["schema"]}" TO "${refused["user"]}"`;
    throw new StorageError("postgres", `${fault}; let its owner run: ${remedy}`);
  }

  listOf(columns: readonly string[]): string {
    return `coalesce(json_agg(json_build_array(${columns.join(", ")})), '[]')`;
  }

  rowsOf(
    types: readonly ColumnType[],
    rows: readonly (readonly Value[])[],
  ): Required<Statement> {
    return {
      text: `SELECT * FROM unnest(${types.map((type, at) => `$${at + 1}::${type}[]`).join(", ")})`,
      values: types.map((_, at) => rows.map((row) => row[at] ?? null)),
    };
  }

  async query({ text, values = [] }: Statement): Promise<readonly Row[]> {
    const reading = this.#onConnection("read", STATEMENT_TIMEOUT_MS, async (run) => {
      await run(BEGIN);
      const rows = await run(text, values);
      await run("COMMIT");
      return rows;
    });
    return await this.#reportWait(reading);
  }

  async write({ text, values = [] }: Statement): Promise<readonly Row[]> {
    const limit = STATEMENT_TIMEOUT_MS;
    return await this.#reportWait(this.#query(text, values, { limit, what: "written" }));
  }

  async queryAfterChanges(statement: Statement, table: string): Promise<readonly Row[]> {
    // A later statement in the same transaction sees what the changes in flight committed.
    const changes = { text: `SELECT id FROM ${table} FOR UPDATE` };
    const [, rows = []] = await this.transact([changes, statement]);
    return rows;
  }

  /**
   * Runs a statement that requests wait for, with a timeout of {@linkcode LOOKUP_TIMEOUT_MS}. It
   * takes one round trip, without a transaction. So a statement that reads tables has to ask for
   * `row_security_active()` itself.
   */
  async read(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const reading = this.#query(text, values, { limit: READ_TIMEOUT_MS, what: "read" });
    if (await fulfilledWithin(LOOKUP_TIMEOUT_MS, reading)) return await reading;
    throw new StorageError("postgres", `no answer within ${LOOKUP_TIMEOUT_MS / 1_000} s`);
  }

  async transact(
    statements: readonly Statement[],
    { isConditional = false, isSynced = false, timeout }: TransactionOptions = {},
  ): Promise<readonly (readonly Row[])[]> {
    const begin = isSynced ? BEGIN_SYNCED : BEGIN;
    const action = async (run: Run) => {
      const results: Row[][] = [];
      for (const { text, values } of statements) {
        if (isConditional && results[0]?.length === 0) break;
        results.push(await run(text, values));
      }
      return results;
    };
    const transaction = timeout === undefined
      ? this.#transaction(begin, action)
      : this.#onConnection("written", timeout, async (run) => {
        // Nobody tells PostgreSQL that a statement which waits for a lock is not waited for any more.
        await run(`${begin}; SET LOCAL lock_timeout = ${timeout}`);
        const results = await action(run);
        await run("COMMIT");
        return results;
      });
    return await this.#reportWait(transaction);
  }

  /** Waits for statements in flight, then disconnects. */
  async close(): Promise<void> {
    if (!this.#pool.ending) await this.#pool.end();
  }

  /** Waits for an operation, and reports it if it takes long. The signal does not end the wait. */
  #reportWait<T>(operation: Promise<T>): Promise<T> {
    return waitFor(this.name, operation, { ...this.#options, signal: undefined });
  }

  /** Runs a statement in one round trip, without a transaction. */
  async #query(
    text: string,
    values: readonly unknown[],
    { limit, what }: { readonly limit: number; readonly what: "read" | "written" },
  ): Promise<readonly Row[]> {
    try {
      const query = { text, values: [...values], query_timeout: limit };
      return (await this.#pool.query(query)).rows;
    } catch (cause) {
      throw this.#faultOf(what, cause);
    }
  }

  /**
   * Returns a connection for work that can wait. Each attempt is short, because requests may be
   * waiting for the same attempt.
   */
  async #connect(timeout = STATEMENT_TIMEOUT_MS): Promise<PoolClient> {
    const end = performance.now() + timeout;
    while (true) {
      try {
        return await this.#pool.connect();
      } catch (cause) {
        const isLate = cause instanceof Error && /timeout/.test(cause.message);
        if (!isLate || performance.now() >= end) throw this.#faultOf("reached", cause);
      }
    }
  }

  /** Runs a transaction. Rejects if nothing was committed, or if the outcome remains unknown. */
  async #transaction<T>(begin: string, action: (run: Run) => Promise<T>): Promise<T> {
    let result: T | undefined;
    let id: string | null = null;
    try {
      await this.#onConnection("written", STATEMENT_TIMEOUT_MS, async (run) => {
        await run(begin);
        result = await action(run);
        const [row] = await run("SELECT pg_current_xact_id_if_assigned()::text AS id");
        id = row?.["id"] as string | null;
        await run("COMMIT");
      });
    } catch (fault) {
      if (id === null || !await this.#isCommitted(id)) throw fault;
    }
    return result as T;
  }

  /**
   * Runs statements on one connection, with a timeout for each in milliseconds. After a fault, the
   * connection is discarded.
   */
  async #onConnection<T>(
    what: "read" | "written",
    timeout: number,
    action: (run: Run) => Promise<T>,
  ): Promise<T> {
    const client = await this.#connect(timeout);
    const ignore = () => {}; // the statement in flight also rejects
    client.on("error", ignore);
    let fault: StorageError | undefined;
    try {
      return await action(async (text, values = []) => {
        const query = { text, values: [...values], query_timeout: timeout };
        return (await client.query(query)).rows;
      });
    } catch (cause) {
      throw fault = this.#faultOf(what, cause);
    } finally {
      client.off("error", ignore);
      client.release(fault);
    }
  }

  /** Returns whether a transaction of unknown outcome was committed. */
  async #isCommitted(id: string): Promise<boolean> {
    let fault: unknown;
    for (const end = performance.now() + OUTCOME_TIMEOUT_MS; performance.now() < end;) {
      try {
        const [row] = await this.read("SELECT pg_xact_status($1::text::xid8) AS status", [id]);
        if (row?.["status"] !== "in progress") return row?.["status"] === "committed";
      } catch (error) {
        fault = error;
      }
      await delay(OUTCOME_RETRY_MS);
    }
    const unknown = `${this.name} does not say whether a transaction was committed`;
    throw new StorageError("postgres", unknown, { cause: fault });
  }

  #faultOf(what: string, cause: unknown, name = this.name): StorageError {
    if (cause instanceof StorageError) return cause;
    // A host name with several addresses gives an error for each address.
    const first = cause instanceof AggregateError ? cause.errors[0] : cause;
    return new StorageError("postgres", `${name} cannot be ${what}`, { cause: first });
  }
}

/**
 * Returns whether PostgreSQL refused a statement as such: not because a connection broke, for lack of
 * resources, or because it was interrupted (classes 08, 53 and 57 of its error codes).
 */
function isRefusal(error: unknown): boolean {
  const { severity, code } = Object(Object(error).cause); // the driver's, of PostgreSQL's errors
  return severity !== undefined && !/^(?:08|53|57)/.test(code);
}
