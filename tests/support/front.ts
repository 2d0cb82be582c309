/** `lifecycle front`, installed from the tarball, and run on each Node. */

import { assertEquals } from "@std/assert";
import { Child } from "./child.ts";
import { installTarball, NPM } from "./npm.ts";
import { shared } from "./permissions.ts";
import { freePort } from "./ports.ts";
import { runProgram } from "./run.ts";

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
