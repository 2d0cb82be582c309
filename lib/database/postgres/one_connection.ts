/** One connection, without timeouts, for what nobody waits for. */

import type { Socket } from "node:net";
import type { Client } from "./driver.ts";

/** How long a use of the connection may last before the connection is replaced, in milliseconds. */
const REPLACE_AFTER_MS = 60_000;

/** How long it may last after a replacement, in milliseconds. */
const REPLACE_AGAIN_AFTER_MS = 600_000;

/** When a connection to a server was replaced. A ledger that cannot be opened is opened anew. */
const replacedAt = new Map<string, number>();

/**
 * One connection, which is opened on demand. A connection that is discarded leaves its backend
 * working, with its locks, until the server notices. So a use that takes long is waited for, and the
 * connection is replaced only after a minute, because the way to the server may hang rather than the
 * server; and after that once in ten minutes.
 */
export class OneConnection {
  readonly #server: string;
  readonly #connect: () => Promise<Client>;
  #client: Client | undefined;
  /** The client of a use that has not returned, even while it connects. */
  #used: Client | undefined;

  /**
   * @param server The name of the server and database. Their connection is replaced once in ten
   *   minutes, whichever object has it.
   * @param create Returns a client that is not connected yet.
   * @param faultOf Returns what to throw if it cannot connect.
   */
  constructor(server: string, create: () => Client, faultOf: (cause: unknown) => Error) {
    this.#server = server;
    this.#connect = async () => {
      const client = this.#used = create();
      client.on("error", () => this.#discard(client)); // it broke while it was idle
      unref(client);
      await new Promise<void>((resolve, reject) =>
        client.connect((error: Error | null) => error ? reject(faultOf(error)) : resolve())
      );
      unref(client); // TLS has another socket
      return this.#client = client;
    };
  }

  /** Runs an action on the connection, one at a time. After a fault, the connection is discarded. */
  async use<Result>(action: (client: Client) => Promise<Result>): Promise<Result> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const hanging = new Promise<never>((_, reject) => {
      const now = performance.now();
      const replaced = replacedAt.get(this.#server) ?? -Infinity;
      const due = Math.max(now + REPLACE_AFTER_MS, replaced + REPLACE_AGAIN_AFTER_MS);
      timer = setTimeout(() => {
        replacedAt.set(this.#server, performance.now());
        reject(new Error(`no answer within ${Math.round((due - now) / 1_000)} s`));
      }, due - now);
      timer.unref();
    });
    try {
      const acting = (async () => {
        const client = this.#used = this.#client ?? await this.#connect();
        return await action(client);
      })();
      acting.catch(() => {}); // once it is given up, nobody else handles its rejection
      return await Promise.race([acting, hanging]);
    } catch (error) {
      if (this.#used !== undefined) this.#discard(this.#used);
      throw error;
    } finally {
      clearTimeout(timer);
      this.#used = undefined;
    }
  }

  /** Disconnects. Does not wait for a use that has not returned. */
  async close(): Promise<void> {
    const client = this.#client;
    if (this.#used !== undefined) this.#discard(this.#used);
    else if (client !== undefined) {
      this.#client = undefined;
      await client.end().catch(() => {});
    }
  }

  /** Does not wait for a statement under way, as `end()` would. */
  #discard(client: Client): void {
    if (this.#client === client) this.#client = undefined;
    client.connection.stream.destroy();
  }
}

/** Lets the process end though the connection is open. */
function unref(client: Client): void {
  (client.connection.stream as Socket).unref();
}
