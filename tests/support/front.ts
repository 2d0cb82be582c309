/** `lifecycle front`, installed from the tarball, and run on each Node. */

import { assertEquals } from "@std/assert";
import { Child } from "./child.ts";
import { installTarball, NPM, run } from "./npm.ts";
import { LINUX, needing, shared } from "./permissions.ts";
import { freePort } from "./ports.ts";
import { sideBySide } from "./side_by_side.ts";
import { ask } from "./wire.ts";

/** Registers a test of the proxy. */
export const test = needing(...NPM, LINUX);

/** The releases of Node on which it runs. */
export const NODES = ["22", "24", "26"];

/** A folder with the tarball, and with each Node. */
export const installed = shared(NPM, () => installTarball());

/** Does something on every Node, side by side. */
export const onEachNode = (use: (options: FrontOptions) => Promise<void>) =>
  sideBySide(NODES.map((node) => [`Node ${node}`, { node }] as const), ([, node]) => use(node));

/** Returns a request without content, whose connection is closed after it. */
export const requestOf = (method: string, path: string, more = "") =>
  `${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${more}\r\n`;

export const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

const PROGRAM = "node_modules/@media-head/lifecycle/usage/lifecycle_program.js";

/** How to run it. */
export interface FrontOptions {
  /** The release of Node. */
  readonly node?: string;
  /** Options of Node. */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A route that was deprecated long ago, with whatever else is given. */
export const deprecated = (settings: object = {}) => ({ deprecatedAt: "2020-01-01", ...settings });

const nodeOf = (node = NODES[0]) => `${installed().folder}/node_modules/node${node}/bin/node`;

/** Runs a command of `lifecycle` to its end. */
export function runLifecycle(words: readonly string[], node?: string) {
  return run(installed().folder, nodeOf(node), "--no-warnings", PROGRAM, ...words);
}

/** Writes settings, and returns the name of their file. */
export async function writeSettings(settings: object): Promise<string> {
  const name = `${crypto.randomUUID()}.json`;
  await Deno.writeTextFile(`${installed().folder}/${name}`, JSON.stringify(settings));
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
  static async start(
    settings: object,
    { node, flags = [], env = {} }: FrontOptions = {},
  ): Promise<FrontProcess> {
    const { folder } = installed();
    const port = freePort();
    const file = await writeSettings({
      listen: `127.0.0.1:${port}`,
      database: `sqlite:${folder}/${crypto.randomUUID()}.sqlite`,
      routes: { "/v1": deprecated() },
      ...settings,
    });
    const words = [nodeOf(node), "--no-warnings", ...flags, PROGRAM, "front", file];
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

  /** Sends a request without content, and returns all that comes until the connection is closed. */
  ask(method: string, path: string, more = ""): Promise<string> {
    return ask(this.port, requestOf(method, path, more));
  }

  /** How many descriptors it has open. */
  get descriptors(): number {
    return [...Deno.readDirSync(`/proc/${this.pid}/fd`)].length;
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
