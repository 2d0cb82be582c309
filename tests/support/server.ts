/** A real server process, on an ephemeral port and in a temporary folder. */

import { dirname, join } from "node:path";
import { Child } from "./child.ts";
import { fromRoot } from "./paths.ts";
import { MAIN } from "./routes.ts";
import { type CommandResult, runProgram } from "./run.ts";

/** A line of the server's log. */
export interface LogLine {
  readonly event: string;
  readonly [fact: string]: unknown;
}

/** A running server. Disposing of it stops it and removes its folder. */
export class ServerProcess implements AsyncDisposable {
  private constructor(
    readonly port: number,
    private readonly child: Child,
    /** Where it keeps its data, if the folder is temporary. */
    private readonly ownFolder: string | undefined,
  ) {}

  /**
   * Starts a server and waits until it listens.
   *
   * @param environment Variables besides those that set its port and folder.
   * @param givenFolder Where to keep data, not removed at the end; a temporary folder if left out.
   * @param options `limits` for `ulimit`, e.g. `-n 64`; the `main` module to run instead; `flags`
   *   of `deno run` instead of the task's for that folder; the `runner`, a program with arguments
   *   that runs it, e.g. with fewer privileges; and `deno`, the program of another release.
   */
  static async start(
    environment: Record<string, string> = {},
    givenFolder?: string,
    { limits, main = MAIN, flags, runner = [], deno = Deno.execPath() }: {
      limits?: string;
      main?: string;
      flags?: readonly string[];
      runner?: readonly string[];
      deno?: string | undefined;
    } = {},
  ): Promise<ServerProcess> {
    const folder = givenFolder ?? await Deno.makeTempDir({ prefix: "media-head-" });
    const shared = environment["REUSE_PORT"] === "true" ? ["--unstable-net"] : [];
    const words = [deno, "run", ...flags ?? taskFlags(main, folder), ...shared, main];
    const env = { ...storageIn(folder), HOST: "127.0.0.1", PORT: "0", ...environment };
    const child = new Child([...runner, ...words], "stderr", { limits, env });
    const ownFolder = givenFolder === undefined ? folder : undefined;
    try {
      const [, port] = await child.started("a server", /"event":"start".*?"port":(\d+)/);
      return new ServerProcess(Number(port), child, ownFolder);
    } catch (error) {
      await child.end("a server");
      if (ownFolder !== undefined) await Deno.remove(ownFolder, { recursive: true });
      throw error;
    }
  }

  get pid(): number {
    return this.child.pid;
  }

  /** Whether a line of the log has some text by now. */
  hasLogged(text: string): boolean {
    return this.child.text.includes(text);
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /**
   * Sends a signal, waits for the process to end, and returns its exit code, every line of the log,
   * and all of standard error.
   *
   * @throws When it does not end within a minute, with its standard error; then it is killed.
   */
  async stop(
    signal: Deno.Signal = "SIGTERM",
  ): Promise<{ code: number; log: LogLine[]; stderr: string }> {
    this.child.signal(signal);
    const code = await this.child.end("a server");
    const stderr = this.child.text;
    const lines = stderr.split("\n").filter((line) => line.startsWith("{"));
    return { code, log: lines.map((line) => JSON.parse(line)), stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    if (this.ownFolder !== undefined) await Deno.remove(this.ownFolder, { recursive: true });
  }
}

/**
 * The tasks' flags, with only the permissions in `deno.json`, and those for files, in a folder if one
 * is given: Deno behaves differently with all permissions.
 */
export function taskFlags(main: string, folder?: string): string[] {
  const at = (name: string) => main === MAIN ? fromRoot(name) : join(dirname(main), name);
  const place = folder === undefined ? "" : `=${folder}`;
  const files = [`--allow-read${place}`, `--allow-write${place}`];
  const ours = `--deny-read=${at(".env")}`; // which may be for another server than the tests'
  return ["--quiet", "--no-prompt", "-P", ...files, ours, `--config=${at("deno.json")}`];
}

/** Runs `main.ts` with arguments to its end, on storage in a folder, which it may write. */
export function runMain(
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const env = { ...storageIn(folder), NO_COLOR: "1", ...environment };
  return runProgram(Deno.execPath(), ["run", ...taskFlags(MAIN, dirname(folder)), MAIN, ...args], {
    env,
  });
}

/** Returns the variables that put storage into a folder, and the one that a server then needs. */
export function storageIn(folder: string): Record<string, string> {
  return {
    DATABASE_URL: `sqlite:${folder}/catalogue.sqlite`,
    CONTENT: `${folder}/files`,
    DEPRECATED_AT: "2026-11-21",
  };
}
