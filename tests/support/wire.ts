/** Connections that tests play by hand, of either side. */

import { writeAll } from "./raw_http.ts";
import { within } from "./within.ts";

/** Decodes each byte as one character; those of the range 80 to 9F are not used in tests. */
const latin1 = new TextDecoder("latin1");

/** A connection on which a backend, or a client, is played by hand. Text stands for bytes. */
export class Wire {
  #rest = "";

  constructor(readonly connection: Deno.Conn) {}

  /** Connects to a port, or to a socket. */
  static async to(place: number | string): Promise<Wire> {
    return new Wire(
      typeof place === "string"
        ? await Deno.connect({ transport: "unix", path: place })
        : await Deno.connect({ hostname: "127.0.0.1", port: place }),
    );
  }

  async write(text: string): Promise<void> {
    await this.send(
      /^[\0-\x7f]*$/.test(text)
        ? new TextEncoder().encode(text)
        : Uint8Array.from(text, (char) => char.charCodeAt(0)),
    );
  }

  send(bytes: Uint8Array): Promise<void> {
    return writeAll(this.connection, bytes);
  }

  /** Reads something; nothing at the end, and once it is broken off. */
  async #read(): Promise<string | undefined> {
    const buffer = new Uint8Array(65_536);
    const count = await this.connection.read(buffer).catch(() => null);
    if (count === null) return undefined;
    return latin1.decode(buffer.subarray(0, count));
  }

  /** Reads as many bytes, or up to the end, and returns how many there were. */
  async skip(length: number): Promise<number> {
    const buffer = new Uint8Array(1_000_000);
    let left = length - this.#rest.length;
    this.#rest = "";
    while (left > 0) {
      const count = await this.connection.read(buffer.subarray(0, left)).catch(() => null);
      if (count === null) break;
      left -= count;
    }
    return length - left;
  }

  /** Reads up to a text and beyond; `undefined` if the other side ends before. */
  async until(text: string): Promise<string | undefined> {
    for (let all = this.#rest;;) {
      const end = all.indexOf(text);
      if (end >= 0) {
        this.#rest = all.slice(end + text.length);
        return all.slice(0, end + text.length);
      }
      const more = await within(`"${text}"`, this.#read());
      if (more === undefined) return undefined;
      all += more;
    }
  }

  /** Reads a head. */
  head(): Promise<string | undefined> {
    return this.until("\r\n\r\n");
  }

  /** Reads until the other side ends, or what has come is enough. */
  async all(isEnough: (all: string) => boolean = () => false): Promise<string> {
    let all = this.#rest;
    this.#rest = "";
    while (all === "" || !isEnough(all)) {
      const more = await within("the end", this.#read());
      if (more === undefined) break;
      all += more;
    }
    return all;
  }

  [Symbol.dispose](): void {
    try {
      this.connection.close();
    } catch { // it was closed before
    }
  }
}

/** Sends a request, and returns all that comes until the connection is closed. */
export async function ask(place: number | string, request: string): Promise<string> {
  using wire = await Wire.to(place);
  await wire.write(request).catch(() => {}); // it may be refused before its end
  return await wire.all();
}

/** A backend, each of whose connections is played by a function, and closed at its end. */
export class HandBackend implements AsyncDisposable {
  /** How many connections there were. */
  count = 0;
  readonly #listener: Deno.Listener;
  readonly #open = new Set<Wire>();
  readonly #played: Promise<unknown>[] = [];
  readonly #accepting: Promise<void>;

  /** @param listener Where it listens. By default on a free port. */
  constructor(
    play: (wire: Wire, count: number) => Promise<unknown>,
    listener: Deno.Listener = Deno.listen({ hostname: "127.0.0.1", port: 0 }),
  ) {
    this.#listener = listener;
    this.#accepting = (async () => {
      for await (const connection of listener) {
        const wire = new Wire(connection);
        this.#open.add(wire);
        const played = play(wire, ++this.count).catch(() => {}); // it was closed
        this.#played.push(played.finally(() => {
          this.#open.delete(wire);
          wire[Symbol.dispose]();
        }));
      }
    })();
  }

  get port(): number {
    return (this.#listener.addr as Deno.NetAddr).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** How many connections are open. */
  get open(): number {
    return this.#open.size;
  }

  /** Waits for the end of all connections so far. */
  async rest(): Promise<void> {
    await within("the end of connections", Promise.all(this.#played));
  }

  /** Closes all connections. */
  closeAll(): void {
    for (const wire of this.#open) wire[Symbol.dispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.closeAll();
    await within("the end of a backend", this.#accepting);
    await this.rest();
  }
}

/** Answers each request of a connection with the same, until the other side ends. */
export async function answerAll(wire: Wire, answer: string): Promise<void> {
  while (await wire.head() !== undefined) await wire.write(answer);
}
