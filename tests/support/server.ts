/**
 * A real server process, on an ephemeral port and in a folder of its own.
 */

import { dirname, join } from "node:path";
import { fromRoot } from "./paths.ts";

/** A line of the server's log. */
export interface LogLine {
  readonly event: string;
  readonly [fact: string]: unknown;
}

/** A running server. Disposing of it stops it and removes its folder. */
export class ServerProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #stderr: Promise<string>;

  private constructor(
    child: Deno.ChildProcess,
    stderr: Promise<string>,
    /** Where it keeps its data, when the folder is its own. */
    private readonly ownFolder: string | undefined,
    readonly port: number,
  ) {
    this.#child = child;
    this.#stderr = stderr;
  }

  /**
   * Starts a server and waits until it listens.
   *
   * @param environment Variables besides those that give it a port and a folder of its own.
   * @param givenFolder Where to keep data, and not to remove it; one of its own when left out.
   * @param options `limits` for `ulimit` before, e.g. `-n 64`; the `main` module, if another; `flags`
   *   of `deno run`, if others than those of the task; and the `runner`, a program with arguments
   *   that is to run it, e.g. with fewer rights.
   */
  static async start(
    environment: Record<string, string> = {},
    givenFolder?: string,
    { limits, main = fromRoot("main.ts"), flags = taskFlags(main), runner = [] }: {
      limits?: string;
      main?: string;
      flags?: readonly string[];
      runner?: readonly string[];
    } = {},
  ): Promise<ServerProcess> {
    const folder = givenFolder ?? await Deno.makeTempDir({ prefix: "media-head-" });
    const shared = environment["REUSE_PORT"] === "true" ? ["--unstable-net"] : [];
    const [program = "", ...args] = [
      ...runner,
      ...(limits === undefined ? [] : ["bash", "-c", `ulimit ${limits}; exec "$@"`, "bash"]),
      ...[Deno.execPath(), "run", ...flags, ...shared, main],
    ];
    const child = new Deno.Command(program, {
      args,
      env: { ...storageIn(folder), HOST: "127.0.0.1", PORT: "0", ...environment },
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const started = Promise.withResolvers<number>();
    const stderr = collect(child.stderr, (text) => {
      const port = /"event":"start".*?"port":(\d+)/.exec(text)?.[1];
      if (port !== undefined) started.resolve(Number(port));
    });
    stderr.then((text) => started.reject(new Error(`The server did not start:\n${text}`)));
    const ownFolder = givenFolder === undefined ? folder : undefined;
    try {
      return new ServerProcess(child, stderr, ownFolder, await started.promise);
    } catch (error) {
      await child.status;
      if (ownFolder !== undefined) await Deno.remove(ownFolder, { recursive: true });
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /**
   * Sends a signal, waits for the end, and returns the exit code with every line of the log, and
   * all that was written to standard error.
   */
  async stop(
    signal: Deno.Signal = "SIGTERM",
  ): Promise<{ code: number; log: LogLine[]; stderr: string }> {
    try {
      this.#child.kill(signal);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // it has ended already
    }
    const { code } = await this.#child.status;
    const stderr = await this.#stderr;
    const lines = stderr.split("\n").filter((line) => line.startsWith("{"));
    return { code, log: lines.map((line) => JSON.parse(line)), stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    if (this.ownFolder !== undefined) await Deno.remove(this.ownFolder, { recursive: true });
  }
}

/** The flags of the tasks: what `deno.json` permits, for Deno does some things otherwise that may do all. */
export function taskFlags(main: string): string[] {
  return ["--quiet", "--no-prompt", "-P", `--config=${join(dirname(main), "deno.json")}`];
}

/** The variables that put storage into a folder. */
export function storageIn(folder: string): Record<"DATABASE_URL" | "CONTENT", string> {
  return { DATABASE_URL: `sqlite:${folder}/catalogue.sqlite`, CONTENT: `${folder}/files` };
}

async function collect(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  onText: (text: string) => void,
): Promise<string> {
  let text = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) onText(text += chunk);
  return text;
}
