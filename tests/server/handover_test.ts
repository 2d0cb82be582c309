/** One server process takes over from another on a shared port, under load. */

import { assert, assertEquals } from "@std/assert";
import { delay } from "@std/async/delay";
import { newMetadata } from "../storage/storage_suite.ts";
import { openLedgerIn, openLocal } from "../support/local_storage.ts";
import { LINUX, needing } from "../support/permissions.ts";
import { field, parseResponse, type RawResponse, requestHead } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";

const SHARED = { REUSE_PORT: "true" };
const END_OF_HEAD = "\r\n\r\n";
const CONTENT = new Uint8Array(10_000).fill(7);

/** Thrown when a connection ends before the first byte of the response. */
class UnansweredError extends Error {}

/** A client's connection, kept alive until the server asks to close it. */
class Connection implements Disposable {
  /** The number of responses received. */
  answers = 0;
  readonly #connection: Deno.TcpConn;
  readonly #buffer = new Uint8Array(20_000);

  private constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  /** @throws {UnansweredError} If the connection is reset, but not if it is refused. */
  static async open(port: number): Promise<Connection> {
    try {
      return new Connection(await Deno.connect({ hostname: "127.0.0.1", port }));
    } catch (error) {
      // Deno asks for the peer's address, which a connection that was reset at once no longer has.
      const { ConnectionReset, NotConnected } = Deno.errors;
      const isReset = error instanceof ConnectionReset || error instanceof NotConnected;
      throw isReset ? new UnansweredError() : error;
    }
  }

  /**
   * Sends a request and reads the whole response.
   *
   * @throws {UnansweredError} If the connection ends before the response begins.
   */
  async ask(method: "GET" | "HEAD", path: string): Promise<RawResponse> {
    let length = 0;
    try {
      await this.#connection.write(requestHead(method, path));
      const contentLength = method === "GET" ? CONTENT.length : 0;
      for (let end = -1; end < 0 || length < end + contentLength;) {
        const count = await this.#connection.read(this.#buffer.subarray(length));
        if (count === null) throw new Deno.errors.UnexpectedEof();
        length += count;
        const text = new TextDecoder().decode(this.#buffer.subarray(0, length));
        end = text.includes(END_OF_HEAD) ? text.indexOf(END_OF_HEAD) + END_OF_HEAD.length : -1;
      }
    } catch (error) {
      if (length > 0 || !isEnd(error)) throw error;
      throw new UnansweredError();
    }
    this.answers++;
    return parseResponse(this.#buffer.slice(0, length));
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }
}

/** Tests whether an error means that the server closed the connection. */
function isEnd(error: unknown): boolean {
  const { BrokenPipe, ConnectionReset, UnexpectedEof } = Deno.errors;
  return [BrokenPipe, ConnectionReset, UnexpectedEof].some((type) => error instanceof type);
}

/** Sends requests on several connections, one at a time on each. */
class Load {
  /** The number of complete responses. */
  answers = 0;
  /** Connections that ended without a response, by whether they had one before. */
  readonly unanswered = { kept: 0, new: 0 };
  readonly #port: number;
  readonly #path: string;
  readonly #clients: Promise<void>[];
  #isOver = false;

  /** Starts sending. */
  constructor(port: number, path: string, clients: { kept: number; new: number }) {
    this.#port = port;
    this.#path = path;
    this.#clients = [
      ...Array.from({ length: clients.kept }, () => this.#send(Infinity)),
      ...Array.from({ length: clients.new }, () => this.#send(1)),
    ];
  }

  /** Waits for `count` more responses; rejects if the load fails. */
  async more(count: number): Promise<void> {
    const enough = this.answers + count;
    const failure = Promise.all(this.#clients);
    while (this.answers < enough) await Promise.race([failure, delay(10)]);
  }

  /** Stops after every request is answered. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  /** Sends at most `most` requests on each of successive connections. */
  async #send(most: number): Promise<void> {
    let isAgain = false;
    while (!this.#isOver || isAgain) {
      let connection: Connection | undefined;
      try {
        using opened = connection = await Connection.open(this.#port);
        for (let isLast = false; !isLast && (!this.#isOver || isAgain);) {
          const method = this.answers % 2 === 0 ? "HEAD" : "GET";
          const response = await opened.ask(method, this.#path);
          assertEquals(response.status, 200);
          this.answers++;
          isAgain = false;
          isLast = opened.answers === most || field(response, "connection") === "close";
          await delay(2);
        }
      } catch (error) {
        // A client may retry an idempotent request (RFC 9112 §9.3.1): once, here.
        if (!(error instanceof UnansweredError) || isAgain) {
          this.#isOver = true; // for the other clients, which would disturb the next test
          throw error;
        }
        isAgain = true;
        this.unanswered[(connection?.answers ?? 0) > 0 ? "kept" : "new"]++;
      }
    }
  }
}

// Elsewhere, only one process at a time gets the connections of a shared port.
needing("processes", LINUX)(
  "a server process takes over from another under load, with every request answered and counted once",
  async () => {
    await using subject = await openLocal();
    const { token } = await subject.publish(newMetadata(), CONTENT);
    const path = `/audio/${token}`;
    const old = await ServerProcess.start(SHARED, subject.folder);
    const { port } = old;
    const environment = { ...SHARED, PORT: String(port) };
    const other = await ServerProcess.start(environment, subject.folder);
    const clients = { kept: 12, new: 4 };
    const load = new Load(port, path, clients);
    await load.more(500);
    const next = await ServerProcess.start(environment, subject.folder);
    await load.more(500);
    const ends = [await old.stop()];
    await load.more(500);
    ends.push(await other.stop());
    await load.more(500);
    await load.stop();
    ends.push(await next.stop());

    for (const { code, log } of ends) {
      assertEquals([code, ...log.map(({ event }) => event)], [0, "start", "stop"]);
    }
    assertEquals(load.unanswered.kept, 0);
    // Deno closes new connections before their first request, and Linux resets those in its queue:
    // at each of the two stops, at most one for each client.
    const most = 2 * (clients.kept + clients.new);
    assert(load.unanswered.new <= most, `${load.unanswered.new} new connections unanswered`);
    await using opened = await openLedgerIn(subject.folder);
    const rows = await Array.fromAsync(opened.ledger.usage("2000-01-01"));
    assertEquals(rows.reduce((sum, { calls }) => sum + calls, 0), load.answers);
    const sessions = (await opened.ledger.sessions()).map(({ id, ended }) => [id, ended]);
    const stopped = ends.map(({ log }) => [log[1]?.["session"], "stopped"]);
    assertEquals(sessions.toSorted(), stopped.toSorted());
  },
);
