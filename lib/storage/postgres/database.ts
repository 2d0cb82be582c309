/**
 * A PostgreSQL database, over few connections. It works through a pooler that gives each transaction
 * another connection: nothing is prepared, and nothing is set for a session.
 */

// @ts-types="npm:@types/pg@8.20.0"
import { Client, Pool, type PoolClient } from "pg";
import type { ColumnType, Database, Row, Statement, Value } from "../sql/database.ts";
import { StorageError } from "../storage.ts";
import { fulfilledWithin } from "../deadline.ts";
import { SerialQueue } from "../serial_queue.ts";
import { MIGRATIONS } from "./schema.ts";

/** Connections at most: one for what requests wait for, one for transactions. */
const CONNECTIONS = 2;

/** Milliseconds that connecting may take, and answering a statement that requests wait for. */
const READING = 1_500;

/** Milliseconds for both together. */
const TIMEOUT = 1_800;

/** Milliseconds that any other statement may take: it may have to wait, or have much to give. */
const WORKING = 10_000;

/** Milliseconds for which it is asked whether a transaction was committed, and between two times. */
const [SETTLING, RETRY] = [60_000, 250];

/**
 * Begins a transaction that PostgreSQL ends by itself, with its locks, five seconds after it heard
 * the last of us: a network may break without a word.
 */
const BEGIN = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 5000";

/** Milliseconds that waiting for a lock may take. */
const LOCKING = 60_000;

/** Milliseconds after which a connection that nobody needs is closed. */
const IDLE = 60_000;

/**
 * The lock of whoever makes the tables or moves them forward, and the first part of all others: any
 * number that other programs do not use.
 */
const LOCKS = 0x6d68_6361;

/** Whether there are tables. What is not asked of tables, like `to_regclass`, may be out of date. */
const TABLE =
  "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'catalogue'";

/**
 * Waits for all that has locked the row which every change of the catalogue updates. A statement
 * after it, in the same transaction, sees what they have committed.
 */
const CHANGES: Statement = { text: "SELECT id FROM catalogue FOR UPDATE" };

/** PostgreSQL's numbers for its types of integers: they come as texts. */
const INTEGERS = new Set([20, 23]);

/** A database that is connected to when that is needed. */
export class PostgresDatabase implements Database {
  readonly driver = "postgres";
  readonly batch = 500; // each statement takes a round trip
  readonly #pool: Pool;
  readonly #connection;
  readonly #queue = new SerialQueue();

  /** @param url `postgres://…`; `sslmode` and the like say how it is encrypted. */
  constructor(url: string) {
    this.#connection = {
      application_name: "media-head",
      connectionString: url,
      connectionTimeoutMillis: READING,
      keepAlive: true,
    };
    this.#pool = new Pool({
      ...this.#connection,
      max: CONNECTIONS,
      idleTimeoutMillis: IDLE,
      allowExitOnIdle: true,
      types: { getTypeParser: (oid: number) => INTEGERS.has(oid) ? Number : String },
    });
    this.#pool.on("error", () => {}); // of a connection at rest: the next statement gets another
  }

  /**
   * Makes the tables, or brings them to the version that this program knows.
   *
   * @throws {StorageError} When a later release made them, too.
   */
  async migrate(): Promise<void> {
    (await this.#connect()).release();
    if (await this.#schema() === MIGRATIONS.length) return;
    await this.#transaction(async (run) => {
      await run("SELECT pg_advisory_xact_lock($1)", [LOCKS]);
      const isMade = (await run(TABLE)).length > 0;
      const [made] = isMade ? await run("SELECT schema FROM catalogue") : [];
      const schema = Number(made?.["schema"] ?? 0);
      requireKnown(schema);
      for (const migration of MIGRATIONS.slice(schema)) await run(migration);
      await run("UPDATE catalogue SET schema = $1", [MIGRATIONS.length]);
    });
  }

  /** @inheritdoc */
  rowsOf(
    types: readonly ColumnType[],
    rows: readonly (readonly Value[])[],
  ): Required<Statement> {
    return {
      text: `SELECT * FROM unnest(${types.map((type, at) => `$${at + 1}::${type}[]`).join(", ")})`,
      values: types.map((_, at) => rows.map((row) => row[at] ?? null)),
    };
  }

  /** @inheritdoc */
  async query({ text, values = [] }: Statement): Promise<readonly Row[]> {
    return await this.#query(text, values, WORKING);
  }

  /** @inheritdoc */
  async queryAfterChanges(statement: Statement): Promise<readonly Row[]> {
    const [, rows = []] = await this.transact([CHANGES, statement]);
    return rows;
  }

  /** Runs a statement that requests wait for, for {@linkcode TIMEOUT} at most. */
  async read(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const reading = this.#query(text, values, READING);
    if (await fulfilledWithin(TIMEOUT, reading)) return await reading;
    throw new StorageError(this.driver, `no answer within ${TIMEOUT / 1_000} s`);
  }

  /** @inheritdoc */
  async transact(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    return await this.#transaction(async (run) => {
      const results = [];
      for (const { text, values } of statements) results.push(await run(text, values));
      return results;
    });
  }

  /**
   * Runs an action while a connection of its own holds locks, which end with that connection.
   *
   * @throws {StorageError} When the locks cannot be had.
   */
  exclusively<T>(keys: readonly string[], action: () => Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      const client = new Client({ ...this.#connection, connectionTimeoutMillis: WORKING });
      client.on("error", () => {}); // whatever is asked of it next fails
      try {
        await this.#lock(client, keys);
        return await action();
      } finally {
        await release(client).catch(() => {}); // the locks end with the connection, at the latest
      }
    });
  }

  /** Waits for what is in flight, and disconnects. */
  async close(): Promise<void> {
    if (!this.#pool.ending) await this.#pool.end();
  }

  async #query(text: string, values: readonly unknown[], limit: number): Promise<readonly Row[]> {
    try {
      const query = { text, values: [...values], query_timeout: limit };
      return (await this.#pool.query(query)).rows;
    } catch (cause) {
      throw this.#faultOf("read", cause);
    }
  }

  /** A connection for what can wait. Each attempt is short: requests may wait for the same one. */
  async #connect(): Promise<PoolClient> {
    const end = performance.now() + WORKING;
    while (true) {
      try {
        return await this.#pool.connect();
      } catch (cause) {
        const isLate = cause instanceof Error && /timeout/.test(cause.message);
        if (!isLate || performance.now() >= end) throw this.#faultOf("reached", cause);
      }
    }
  }

  /** Whatever breaks, a rejection means that nothing was committed, where that can be known. */
  async #transaction<T>(
    action: (run: (text: string, values?: Statement["values"]) => Promise<Row[]>) => Promise<T>,
  ): Promise<T> {
    const client = await this.#connect();
    const ignore = () => {}; // the statement that is under way tells it, too
    client.on("error", ignore);
    const run = async (text: string, values: Statement["values"] = []) => {
      const query = { text, values: [...values], query_timeout: WORKING };
      return (await client.query(query)).rows;
    };
    let result: T | undefined;
    let id: string | null = null;
    let fault: StorageError | undefined;
    try {
      await run(BEGIN);
      result = await action(run);
      const [row] = await run("SELECT pg_current_xact_id_if_assigned()::text AS id");
      id = row?.["id"] as string | null;
      await run("COMMIT");
    } catch (cause) {
      fault = this.#faultOf("written", cause);
    }
    client.off("error", ignore);
    client.release(fault); // after a fault, the connection is not used again
    if (fault !== undefined && (id === null || !await this.#isCommitted(id))) throw fault;
    return result as T;
  }

  /** Whether a transaction was committed of which PostgreSQL could not tell us so. */
  async #isCommitted(id: string): Promise<boolean> {
    let fault: unknown;
    for (const end = performance.now() + SETTLING; performance.now() < end;) {
      try {
        const [row] = await this.read("SELECT pg_xact_status($1::text::xid8) AS status", [id]);
        if (row?.["status"] !== "in progress") return row?.["status"] === "committed";
      } catch (error) {
        fault = error;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY));
    }
    const unknown = "the database (DATABASE_URL) does not tell whether something was written";
    throw new StorageError(this.driver, unknown, { cause: fault });
  }

  async #lock(client: Client, keys: readonly string[]): Promise<void> {
    // In one order everywhere, or two that want the same locks could wait for each other.
    const text = `SELECT pg_advisory_xact_lock($1, key) FROM
      (SELECT DISTINCT hashtext(name) AS key FROM unnest($2::text[]) AS name ORDER BY key) AS keys`;
    const query = { text, values: [LOCKS, keys], query_timeout: LOCKING };
    try {
      await client.connect();
      await client.query("BEGIN");
      await client.query(query);
    } catch (cause) {
      throw this.#faultOf("locked", cause);
    }
  }

  /** The version of the tables; 0 for none. */
  async #schema(): Promise<number> {
    if ((await this.query({ text: TABLE })).length === 0) return 0;
    const [made] = await this.query({ text: "SELECT schema FROM catalogue" });
    const schema = Number(made?.["schema"]);
    requireKnown(schema);
    return schema;
  }

  #faultOf(what: string, cause: unknown): StorageError {
    if (cause instanceof StorageError) return cause;
    // For a name with several addresses, there is a fault for each.
    const first = cause instanceof AggregateError ? cause.errors[0] : cause;
    const fault = `the database (DATABASE_URL) cannot be ${what}`;
    return new StorageError(this.driver, fault, { cause: first });
  }
}

/** Ends a transaction and its connection. */
async function release(client: Client): Promise<void> {
  const query = { text: "COMMIT", query_timeout: READING };
  try {
    await client.query(query);
  } finally {
    await fulfilledWithin(READING, client.end());
  }
}

/**
 * Makes sure that this program knows the tables.
 *
 * @throws {StorageError} When a later release has made them.
 */
export function requireKnown(schema: number): void {
  if (schema <= MIGRATIONS.length) return;
  const fault =
    `the database (DATABASE_URL) has version ${schema} of the schema, and this release ` +
    `knows ${MIGRATIONS.length} at most: run a later one`;
  throw new StorageError("postgres", fault);
}
