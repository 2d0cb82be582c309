/** `lifecycle front`, installed from the tarball, and run on each Node. */

import { assertEquals } from "@std/assert";
import { Child } from "./child.ts";
import { installTarball, NPM } from "./npm.ts";
import { shared } from "./permissions.ts";
import { freePort } from "./ports.ts";
import { writeAll } from "./raw_http.ts";
import { runProgram } from "./run.ts";
import { within } from "./within.ts";

/** The releases of Node on which it runs. */
export const NODES = ["22", "24", "26"];

/** A folder with the tarball, and with each Node. */
export const installedFront = () => shared(NPM, () => installTarball());

const PROGRAM = "node_modules/@media-head/lifecycle/usage/lifecycle_program.js";

/** How to run it. */
interface FrontOptions {
  /** The folder in which it is installed. */
  readonly folder: string;
  /** The release of Node. */
  readonly node?: string;
  /** Options of Node. */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A route that was deprecated long ago, with whatever else is given. */
export const deprecated = (settings: object = {}) => ({ deprecatedAt: "2020-01-01", ...settings });

/** Runs a command of `lifecycle` to its end. */
export async function runLifecycle(
  { folder, node = NODES[0], flags = [], env = {} }: FrontOptions,
  ...words: readonly string[]
) {
  const program = `${folder}/node_modules/node${node}/bin/node`;
  const args = ["--no-warnings", ...flags, PROGRAM, ...words];
  const { code, stdout: text, stderr: errors } = await runProgram(program, args, {
    cwd: folder,
    env,
  });
  return { code, text, errors };
}

/** Writes settings, and returns the name of their file. */
export async function writeSettings(folder: string, settings: object): Promise<string> {
  const name = `${crypto.randomUUID()}.json`;
  await Deno.writeTextFile(`${folder}/${name}`, JSON.stringify(settings));
  return name;
}

/** A running proxy. Disposing of it kills it. */
export class FrontProcess implements AsyncDisposable {
  private constructor(
    /** The port on which it listens; none on a socket. */
    readonly port: number,
    private readonly child: Child,
  ) {}

  /**
   * Starts it, and waits until it listens.
   *
   * @param settings Those of the file. By default it listens on a free port, retires `/v1`, and keeps
   *   a record of its own.
   */
  static async start(settings: object, options: FrontOptions): Promise<FrontProcess> {
    const { folder, node: release = NODES[0], flags = [], env = {} } = options;
    const port = freePort();
    const file = await writeSettings(folder, {
      listen: `127.0.0.1:${port}`,
      database: `sqlite:${folder}/${crypto.randomUUID()}.sqlite`,
      routes: { "/v1": deprecated() },
      ...settings,
    });
    const node = `${folder}/node_modules/node${release}/bin/node`;
    const words = [node, "--no-warnings", ...flags, PROGRAM, "front", file];
    const child = new Child(words, "stderr", { cwd: folder, env });
    await child.started("the proxy", /"event":"start"/);
    return new FrontProcess(port, child);
  }

  get pid(): number {
    return this.child.pid;
  }

  get hasEnded(): boolean {
    return this.child.hasEnded;
  }

  /** What it has logged so far. */
  get log(): string {
    return this.child.text;
  }

  /** The lines of its log with an event. */
  events(event: string): Record<string, unknown>[] {
    return this.log.split("\n").filter((line) => line.includes(`"event":"${event}"`))
      .map((line) => JSON.parse(line));
  }

  signal(signal: Deno.Signal): void {
    this.child.signal(signal);
  }

  /** Waits for its end, and returns its exit status. */
  end(): Promise<number> {
    return this.child.end("the proxy");
  }

  /** Stops it, as systemd does. */
  async stop(): Promise<void> {
    this.signal("SIGTERM");
    assertEquals(await this.end(), 0, this.log);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGKILL");
    await this.end();
  }
}

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

  /** Reads until the other side ends. */
  async all(): Promise<string> {
    let all = this.#rest;
    for (let more; (more = await within("the end", this.#read())) !== undefined;) all += more;
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
  readonly #accepting: Promise<void>;

  /** @param listener Where it listens. By default on a free port. */
  constructor(
    play: (wire: Wire, count: number) => Promise<unknown>,
    listener: Deno.Listener = Deno.listen({ hostname: "127.0.0.1", port: 0 }),
  ) {
    this.#listener = listener;
    this.#accepting = (async () => {
      const all: Promise<unknown>[] = [];
      for await (const connection of listener) {
        const wire = new Wire(connection);
        this.#open.add(wire);
        const played = play(wire, ++this.count).catch(() => {}); // it was closed
        all.push(played.finally(() => {
          this.#open.delete(wire);
          wire[Symbol.dispose]();
        }));
      }
      await Promise.all(all);
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

  /** Closes all connections. */
  closeAll(): void {
    for (const wire of this.#open) wire[Symbol.dispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.closeAll();
    await within("the end of a backend", this.#accepting);
  }
}

/** Answers each request of a connection with the same, until the other side ends. */
export async function answerAll(wire: Wire, answer: string): Promise<void> {
  while (await wire.head() !== undefined) await wire.write(answer);
}
