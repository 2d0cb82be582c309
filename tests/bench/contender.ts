/** A server under measurement: its process, its port, and its resource usage. */

import { accepts } from "../support/ports.ts";

/** How to start a server. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Its port; if left out, it prints one to standard error, as `"port":N`. */
  readonly port?: number;
}

/** A running contender. Disposing of it ends it. */
export class Contender implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #threads = new Map<string, number>();

  private constructor(readonly name: string, child: Deno.ChildProcess, readonly port: number) {
    this.#child = child;
  }

  /** Starts a server and waits until it listens. */
  static async start(name: string, { command, args, env, port }: Launch): Promise<Contender> {
    const child = new Deno.Command(command, {
      args: [...args],
      env: { HOST: "127.0.0.1", PORT: "0", ...env },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const told = Promise.withResolvers<number>();
    (async () => {
      let text = "";
      for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
        text = (text + chunk).slice(-10_000);
        const port = /"port":(\d+)/.exec(text)?.[1];
        if (port !== undefined) told.resolve(Number(port));
      }
      told.reject(new Error(`${name} ended:\n${text}`));
    })();
    if (port !== undefined) {
      await Promise.race([untilListening(port), told.promise]);
      told.promise.catch(() => {}); // rejects if it exits without printing its port
    }
    return new Contender(name, child, port ?? await told.promise);
  }

  /** Returns the CPU time used so far by all threads, in user and kernel mode, in nanoseconds. */
  cpu(): number {
    for (const { name } of Deno.readDirSync(`/proc/${this.#child.pid}/task`)) {
      const path = `/proc/${this.#child.pid}/task/${name}/schedstat`;
      try {
        this.#threads.set(name, Number(Deno.readTextFileSync(path).split(" ", 1)[0]));
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error; // the thread has just ended
      }
    }
    // Threads come and go; the time of ended threads counts as well.
    return this.#threads.values().reduce((sum, used) => sum + used, 0);
  }

  /** Returns the resident memory in megabytes (10^6 bytes). */
  memory(): number {
    const status = Deno.readTextFileSync(`/proc/${this.#child.pid}/status`);
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024 / 1e6;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 5_000);
    await this.#child.status;
    clearTimeout(timer);
  }
}

async function untilListening(port: number): Promise<void> {
  for (let attempt = 0; !await accepts(port); attempt++) {
    if (attempt === 500) throw new Error(`Nothing listens on port ${port}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
