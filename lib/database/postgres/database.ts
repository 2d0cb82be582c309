/**
 * A PostgreSQL database over two connections at most, or over one that nobody waits for. It works with
 * transaction poolers, because it prepares no statements and changes no session settings.
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
import { creationOf, type Dialect, type Schema, tableOf } from "../sql/schema.ts";
import { NotCreatedError, StorageError } from "../../errors/storage_error.ts";
import { clientOf, type PostgresOptions } from "./client.ts";
import { type Client, loadDriver, type Pool, type PoolClient } from "./driver.ts";
import { OneConnection } from "./one_connection.ts";

/**
 * The SQL that is particular to PostgreSQL. Compares texts byte by byte, regardless of the database's
 * locale. The checks use no bounded repetition, because in a regular expression it takes PostgreSQL
 * longer than the rest of an import.
 */
const DIALECT: Dialect = {
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

/** Runs statements in order, on one connection. Returns the rows of each. */
type Run = (statements: readonly Statement[]) => Promise<Row[][]>;

const COMMIT: Statement = { text: "COMMIT" };

/** Begins a transaction that waits for no standby: what a failover then loses is noticed. */
const BEGIN_LOCAL = `${BEGIN}; SET LOCAL synchronous_commit = local`;

/**
 * The advisory lock for creating the tables. The number is arbitrary, and other programs are
 * unlikely to use it.
 */
const TABLES_LOCK = 0x6d68_6361;

/** A PostgreSQL database. Connections are opened on demand. */
export class PostgresDatabase implements Database {
  readonly currentTime = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
  readonly batch = 500; // each statement takes a round trip
  readonly #connections: Pool | OneConnection;
  readonly #options: PostgresOptions;
  readonly #place: PostgresPlace;
  /** The name of the database in messages. */
  readonly name: string;

  /** @param place Parameters of its URL like `sslmode` configure encryption. */
  constructor(place: PostgresPlace, options: PostgresOptions = {}) {
    const { url } = place;
    this.#place = place;
    this.#options = options;
    this.name = `the database (${settingOf(options)})`;
    const driver = loadDriver();
    const Client = clientOf(driver, options);
    const config = {
      application_name: "media-head",
      // pg checks the certificate in all these modes, and warns that this will change.
      connectionString: url.includes("uselibpqcompat=")
        ? url
        : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, "$1verify-full"),
      keepAlive: true,
      // PostgreSQL sends integers as text, under these type ids.
      types: { getTypeParser: (oid: number) => oid === 20 || oid === 23 ? Number : String },
    };
    if (options.isPatient) {
      const piped = { ...config, pipeline: true }; // @types/pg does not know it yet
      const faultOf = (cause: unknown) => this.#faultOf("reached", cause);
      this.#connections = new OneConnection(place.name, () => new Client(piped), faultOf);
      return;
    }
    this.#connections = new driver.Pool({
      ...config,
      Client,
      connectionTimeoutMillis: READ_TIMEOUT_MS,
      max: 2, // one for requests, and one for transactions
      idleTimeoutMillis: 60_000,
      allowExitOnIdle: true,
    });
    this.#connections.on("error", () => {}); // an idle connection broke; the next statement gets another
  }

  /**
   * Creates the tables of a schema if they are missing, and calls `onCreate` if so.
   *
   * @throws {StorageError} If the database fails, belongs to another release, is not in UTF-8, or
   *   lacks tables that must exist.
   */
  async createTables(tables: Schema): Promise<void> {
    const { warning } = this.#place;
    if (warning !== undefined) this.#options.onWarn?.(`${settingOf(this.#options)}: ${warning}`);
    await this.#onConnection("reached", STATEMENT_TIMEOUT_MS, () => Promise.resolve());
    const settings =
      "SELECT current_setting('server_encoding') AS encoding, current_schema() AS schema";
    const { encoding, schema } = (await this.query({ text: settings }))[0] ?? {};
    if (encoding !== "UTF8") {
      throw refusal(`${this.name} has the encoding "${encoding}"; expected "UTF8"`);
    }
    this.#requireSchema(schema as string | null);
    const name = await this.#createMissing(tables);
    if (name !== undefined) this.#options.onCreate?.(name);
  }

  /** Ensures that the schema in use is the one that the URL names. A pooler may have dropped it. */
  #requireSchema(schema: string | null): void {
    const expected = this.#place.schema ?? schema;
    if (schema !== null && schema === expected) return;
    const used = schema === null ? "no schema" : `the schema "${schema}"`;
    const wanted = expected === null ? "one that exists" : `"${expected}"`;
    throw refusal(
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
      const isCreated = await this.#transaction(async (run, commit) => {
        const lock = { text: "SELECT pg_advisory_xact_lock($1)", values: [TABLES_LOCK] };
        const [, , found = []] = await run([{ text: BEGIN }, lock, { text: table }]);
        const isMissing = found.length === 0; // no other process created them
        await run([...isMissing ? [{ text: creationOf(schema, DIALECT) }] : [], ...commit]);
        return isMissing;
      });
      if (isCreated) created = name;
    }
    const [made] = await this.query({ text: `SELECT schema FROM ${tableOf(schema)}` });
    if (made === undefined) {
      const table = `${this.name} has a table ${
        tableOf(schema)
      } without the row of the ${schema.name}`;
      const reason = "another program's table may have its name, or row-level security hides it";
      throw refusal(`${table}: ${reason}`);
    }
    const version = made["schema"] as number;
    if (version === schema.version) return created;
    const remedy = version > schema.version ? "run a later one" : schema.upgrade;
    throw refusal(
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
    throw refusal(`${fault}; let its owner run: ${remedy}`);
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
    throw refusal(`${fault}; let its owner run: ${remedy}`);
  }

  dayOf(instant: string): string {
    return `to_char(to_timestamp(${instant} / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')`;
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

  async query(statement: Statement): Promise<readonly Row[]> {
    const reading = this.#onConnection("read", STATEMENT_TIMEOUT_MS, async (run) => {
      const [, rows = []] = await run([{ text: BEGIN }, statement, COMMIT]);
      return rows;
    });
    return await this.#reportWait(reading);
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
    const reading = this.#query(text, values);
    if (await fulfilledWithin(LOOKUP_TIMEOUT_MS, reading)) return await reading;
    throw new StorageError("postgres", `no answer within ${LOOKUP_TIMEOUT_MS / 1_000} s`);
  }

  async transact(
    statements: readonly Statement[],
    { isConditional = false, isSynced = false }: TransactionOptions = {},
  ): Promise<readonly (readonly Row[])[]> {
    const [first, ...others] = statements;
    const isPatient = this.#connections instanceof OneConnection;
    const begin = { text: isPatient && !isSynced ? BEGIN_LOCAL : BEGIN };
    const transaction = this.#transaction(async (run, commit) => {
      if (!isConditional || first === undefined) {
        return (await run([begin, ...statements, ...commit])).slice(1, 1 + statements.length);
      }
      const [, rows = []] = await run([begin, first]);
      const rest = rows.length === 0 ? [] : others;
      return [rows, ...(await run([...rest, ...commit])).slice(0, rest.length)];
    });
    return await this.#reportWait(transaction);
  }

  /** Waits for statements in flight, then disconnects. */
  async close(): Promise<void> {
    if (this.#connections instanceof OneConnection) await this.#connections.close();
    else if (!this.#connections.ending) await this.#connections.end();
  }

  /** Waits for an operation, and reports it if it takes long. The signal does not end the wait. */
  #reportWait<T>(operation: Promise<T>): Promise<T> {
    return waitFor(this.name, operation, { ...this.#options, signal: undefined });
  }

  async #query(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    if (this.#connections instanceof OneConnection) {
      const statement = { text, values } as Statement;
      const [rows = []] = await this.#onConnection("read", Infinity, (run) => run([statement]));
      return rows;
    }
    try {
      const query = { text, values: [...values], query_timeout: READ_TIMEOUT_MS };
      return (await this.#connections.query(query)).rows;
    } catch (cause) {
      throw this.#faultOf("read", cause);
    }
  }

  /**
   * Runs a transaction. Rejects if nothing was committed, or if the outcome remains unknown. With one
   * connection, whose user sends it again, an unknown outcome is not waited for.
   *
   * @param action Ends the transaction with the statements `commit`.
   */
  async #transaction<T>(
    action: (run: Run, commit: readonly Statement[]) => Promise<T>,
  ): Promise<T> {
    if (this.#connections instanceof OneConnection) {
      return await this.#onConnection("written", Infinity, (run) => action(run, [COMMIT]));
    }
    let result: T | undefined;
    let id: string | null = null;
    try {
      await this.#onConnection("written", STATEMENT_TIMEOUT_MS, async (run) => {
        result = await action(run, []);
        const [[row] = []] = await run([{
          text: "SELECT pg_current_xact_id_if_assigned()::text AS id",
        }]);
        id = row?.["id"] as string | null;
        await run([COMMIT]);
      });
    } catch (fault) {
      if (id === null || !await this.#isCommitted(id)) throw fault;
    }
    return result as T;
  }

  /**
   * Runs an action on one connection. From a pool, each statement has a timeout in milliseconds. After
   * a fault, the connection is discarded.
   */
  async #onConnection<T>(
    what: "reached" | "read" | "written",
    timeout: number,
    action: (run: Run) => Promise<T>,
  ): Promise<T> {
    try {
      if (this.#connections instanceof OneConnection) {
        return await this.#connections.use((client) => action(allAtOnce(client)));
      }
      const client = await connectionOf(this.#connections, timeout).catch((cause) => {
        throw this.#faultOf("reached", cause);
      });
      return await withConnection(client, timeout, action);
    } catch (cause) {
      throw this.#faultOf(what, cause);
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
    const isLasting = cause instanceof NotCreatedError || isRefusedForGood(first);
    return new StorageError("postgres", `${name} cannot be ${what}`, { cause: first, isLasting });
  }
}

/** Returns a fault that waiting does not mend. */
function refusal(fault: string): StorageError {
  return new StorageError("postgres", fault, { isLasting: true });
}

/** Runs an action on a connection of a pool, with a timeout for each statement in milliseconds. */
async function withConnection<T>(
  client: PoolClient,
  timeout: number,
  action: (run: Run) => Promise<T>,
): Promise<T> {
  const ignore = () => {}; // the statement in flight also rejects
  client.on("error", ignore);
  let hasFailed = true;
  try {
    const result = await action(async (statements) => {
      const results: Row[][] = [];
      for (const { text, values = [] } of statements) {
        const query = { text, values: [...values], query_timeout: timeout };
        results.push((await client.query(query)).rows);
      }
      return results;
    });
    hasFailed = false;
    return result;
  } finally {
    client.off("error", ignore);
    client.release(hasFailed);
  }
}

/**
 * Returns a connection for work that can wait. Each attempt is short, because requests may be waiting
 * for the same attempt.
 */
async function connectionOf(pool: Pool, timeout: number): Promise<PoolClient> {
  const end = performance.now() + timeout;
  while (true) {
    try {
      return await pool.connect();
    } catch (cause) {
      const isLate = cause instanceof Error && /timeout/.test(cause.message);
      if (!isLate || performance.now() >= end) throw cause;
    }
  }
}

/** Sends statements at once, in one round trip. A fault in a transaction undoes all of it. */
function allAtOnce(client: Client): Run {
  return async (statements) => {
    const sent = statements.map(({ text, values = [] }) => client.query(text, [...values]));
    const outcomes = await Promise.allSettled(sent);
    const failed = outcomes.find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
    return outcomes.map((outcome) => outcome.status === "fulfilled" ? outcome.value.rows : []);
  };
}

/**
 * Returns whether waiting mends nothing: PostgreSQL refused the user, the database or a statement
 * (classes 0A, 28, 3D, 3F and 42 of its error codes), the password is none, or encryption fails.
 */
function isRefusedForGood(error: unknown): boolean {
  const { severity, code, message } = Object(error); // the driver's, of PostgreSQL's errors
  if (severity !== undefined) return /^(?:0A|28|3D|3F|42)/.test(code);
  return error instanceof TypeError || /password: |SSL|certificate/.test(message);
}
