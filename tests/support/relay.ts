/** A TCP relay in front of a server, which fails on demand. */

import { within } from "./within.ts";

type End = Deno.TcpConn | undefined;

/** A connection through the relay. */
interface Link {
  readonly client: End;
  readonly server: End;
  isLost: boolean;
}

/** Forwards TCP connections to a port of this machine. Disposing of it closes them all. */
export class Relay implements AsyncDisposable {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #links = new Set<Link>();
  readonly #running = new Set<Promise<void>>();
  #target: number;
  #isLost = false;
  /** Milliseconds by which whatever is sent, either way, comes late. */
  delay = 0;
  /** Called with what a client sends, before it is forwarded. */
  onSent: (text: string) => Promise<void> | void = () => {};
  /** Called with what the server answers, before it is forwarded. */
  onReceived: (text: string) => Promise<void> | void = () => {};

  constructor(target: number) {
    this.#target = target;
    this.#run(this.#accept());
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  /** The number of open connections. */
  get connections(): number {
    return this.#links.size;
  }

  /** Drops what is sent from now on, without closing connections. New ones are still accepted. */
  lose(): void {
    this.#isLost = true;
    for (const link of this.#links) link.isLost = true;
  }

  /** Forwards new connections again; existing ones stay broken. */
  restore(): void {
    this.#isLost = false;
  }

  /** Closes every connection, and forwards new ones to another port. */
  lead(target: number): void {
    this.#target = target;
    this.#links.forEach(close);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.#links.forEach(close);
    await within("the relay's connections to close", Promise.all(this.#running));
  }

  #run(task: Promise<void>): void {
    this.#running.add(task);
    task.finally(() => this.#running.delete(task));
  }

  async #accept(): Promise<void> {
    for await (const client of this.#listener) this.#run(this.#serve(client));
  }

  async #serve(client: Deno.TcpConn): Promise<void> {
    const isLost = this.#isLost;
    const server = isLost ? undefined : await connect(this.#target);
    const link: Link = { client, server, isLost };
    this.#links.add(link);
    if (!isLost && server === undefined) close(link); // connection refused
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    const pass = async () => {
      if (this.delay > 0) await new Promise((resolve) => setTimeout(resolve, this.delay));
    };
    await Promise.all([
      forward(client, server, link, async (bytes) => {
        await this.onSent(text(bytes));
        await pass();
      }),
      forward(server, client, link, async (bytes) => {
        await this.onReceived(text(bytes));
        await pass();
      }),
    ]);
    close(link);
    this.#links.delete(link);
  }
}

async function connect(port: number): Promise<Deno.TcpConn | undefined> {
  try {
    return await Deno.connect({ hostname: "127.0.0.1", port });
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionRefused) return undefined;
    throw error;
  }
}

/** Forwards data and the close of one side, unless they are lost. */
async function forward(
  from: End,
  to: End,
  link: Link,
  onBytes: (bytes: Uint8Array) => Promise<void> | void,
): Promise<void> {
  const buffer = new Uint8Array(65_536);
  try {
    for (let length; (length = await from?.read(buffer) ?? null) !== null;) {
      await onBytes(buffer.subarray(0, length));
      for (let done = 0; !link.isLost && done < length;) {
        done += await to?.write(buffer.subarray(done, length)) ?? length;
      }
    }
  } catch (error) {
    ignoreEnd(error);
  }
  if (!link.isLost) close(link);
}

function close({ client, server }: Link): void {
  closeConnection(client);
  closeConnection(server);
}

/** Closes a connection, unless it is closed. */
export function closeConnection(connection: End): void {
  try {
    connection?.close();
  } catch (error) {
    ignoreEnd(error);
  }
}

/** Throws an error again, unless its cause is the end of a connection. */
export function ignoreEnd(error: unknown): void {
  const { BadResource, BrokenPipe, ConnectionReset, Interrupted } = Deno.errors;
  const ends = [BadResource, BrokenPipe, ConnectionReset, Interrupted];
  if (!ends.some((type) => error instanceof type)) throw error;
}
