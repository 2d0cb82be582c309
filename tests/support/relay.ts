/** A TCP relay in front of a server, which fails on demand. */

import { within } from "./within.ts";

/**
 * What is forwarded of a connection: everything, what the client sends, or nothing. Neither side
 * learns of it.
 */
type Carried = "all" | "requests" | "nothing";

/** A connection through the relay. */
interface Link {
  readonly client: Deno.TcpConn;
  readonly server: Deno.TcpConn | undefined;
  carried: Carried;
}

/** Forwards TCP connections to a port of this machine. Disposing of it closes them all. */
export class Relay implements AsyncDisposable {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #links = new Set<Link>();
  readonly #running = new Set<Promise<void>>();
  #target: number;
  #carried: Carried = "all";

  constructor(target: number) {
    this.#target = target;
    this.#run(this.#accept());
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  /** Drops what is sent from now on, without closing connections. New ones are still accepted. */
  lose(what: "answers" | "everything"): void {
    this.#carried = what === "answers" ? "requests" : "nothing";
    for (const link of this.#links) link.carried = this.#carried;
  }

  /** Forwards new connections again; existing ones stay broken. */
  restore(): void {
    this.#carried = "all";
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
    const carried = this.#carried;
    const server = carried === "nothing" ? undefined : await connect(this.#target);
    const link: Link = { client, server, carried };
    this.#links.add(link);
    if (carried !== "nothing" && server === undefined) close(link); // connection refused
    await Promise.all([forward("requests", link), forward("answers", link)]);
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

/** Forwards data and the close of one side, unless that direction is dropped. */
async function forward(what: "requests" | "answers", link: Link): Promise<void> {
  const { client, server } = link;
  const [from, to] = what === "requests" ? [client, server] : [server, client];
  const isCarried = () => link.carried === "all" || link.carried === what;
  const buffer = new Uint8Array(65_536);
  try {
    for (let length; (length = await from?.read(buffer) ?? null) !== null;) {
      for (let done = 0; isCarried() && done < length;) {
        done += await to?.write(buffer.subarray(done, length)) ?? length;
      }
    }
  } catch (error) {
    const { BadResource, BrokenPipe, ConnectionReset, Interrupted } = Deno.errors;
    const ends = [BadResource, BrokenPipe, ConnectionReset, Interrupted];
    if (!ends.some((type) => error instanceof type)) throw error;
  }
  if (isCarried()) close(link);
}

function close({ client, server }: Link): void {
  for (const end of [client, server]) {
    try {
      end?.close();
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) throw error; // already closed
    }
  }
}
