/**
 * Batched lookups: a round trip to PostgreSQL takes many times longer than a lookup, so all lookups
 * requested while one batch is in flight go into the next.
 */

import { SerialQueue } from "../../async/serial_queue.ts";
import type { PostgresDatabase } from "../../database/postgres/database.ts";
import type { Row } from "../../database/sql/database.ts";
import { StorageError } from "../../errors/storage_error.ts";
import type { Token } from "../token.ts";
import { ITEM_COLUMNS, type Lookups } from "./catalogue.ts";

/**
 * Selects the state of the catalogue with each requested item; a single row if none is found, and
 * none if a policy of row-level security hides the catalogue.
 */
const FIND = `SELECT catalogue.version, (SELECT CASE
       WHEN row_security_active('media_head_item') THEN 'filtered'
       WHEN current_setting('transaction_read_only') = 'on' THEN 'read-only'
       ELSE 'whole' END) AS access, ${ITEM_COLUMNS}
   FROM media_head_catalogue AS catalogue LEFT JOIN media_head_item ON token = ANY($1::uuid[])`;

/**
 * Milliseconds for which a fault is reused, so that a request that has waited for the timeout of
 * one batch does not wait for that of the next.
 */
const FAULT_TTL_MS = 100;

/** The result of one batch, a consistent snapshot. */
interface Snapshot {
  readonly version: number;
  readonly rows: ReadonlyMap<string, Row>;
}

/** Looks up items, one batch at a time. */
export class BatchedLookups implements Lookups {
  readonly versionTtlMs = 1_000; // reading the version takes a round trip
  readonly #database: PostgresDatabase;
  readonly #queue = new SerialQueue();
  /** The batch that has not been sent yet. */
  #next: { readonly tokens: Set<Token>; readonly snapshot: Promise<Snapshot> } | undefined;
  #fault: { readonly error: unknown; readonly expiresAt: number } | undefined;

  /** @param database Closed by the caller. */
  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  async find(token: Token): Promise<Row | undefined> {
    return (await this.#query(token)).rows.get(token);
  }

  async version(): Promise<number> {
    return (await this.#query()).version;
  }

  #query(token?: Token): Promise<Snapshot> {
    const { tokens, snapshot } = this.#next ??= this.#newBatch();
    if (token !== undefined) tokens.add(token);
    return snapshot;
  }

  #newBatch() {
    const tokens = new Set<Token>();
    const snapshot = this.#queue.run(async () => {
      this.#next = undefined;
      if (this.#fault !== undefined && performance.now() < this.#fault.expiresAt) {
        throw this.#fault.error;
      }
      try {
        return await this.#lookUp([...tokens]);
      } catch (error) {
        this.#fault = { error, expiresAt: performance.now() + FAULT_TTL_MS };
        throw error;
      }
    });
    return { tokens, snapshot };
  }

  async #lookUp(tokens: Token[]): Promise<Snapshot> {
    const found = await this.#database.read(FIND, [tokens]);
    const [state] = found;
    // A policy on the table may hide items, which would look as if they had never been published.
    if (state === undefined || state["access"] === "filtered") {
      const fault = "the database (DATABASE_URL) has a policy of row-level security on the " +
        "catalogue: exempt the user from it (BYPASSRLS), or disable it on these tables";
      throw new StorageError("postgres", fault);
    }
    // A standby may lag by any amount.
    if (state["access"] === "read-only") {
      throw new StorageError("postgres", "the database (DATABASE_URL) is read-only, or a standby");
    }
    const rows = new Map(found.map((row) => [String(row["token"]), row]));
    return { version: state["version"] as number, rows };
  }
}
