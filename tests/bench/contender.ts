/**
 * A server under measurement: a process, its port, and what it has used.
 */

import { HEAD, prepareRequest, sendLoad } from "./load.ts";

/** How a server is started. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Where it listens; without one it says so on standard error, as `"port":N`. */
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
      told.promise.catch(() => {}); // it never says its port, and ends in the end
    }
    return new Contender(name, child, port ?? await told.promise);
  }

  /**
   * How long a server takes from nothing to its first answer, in milliseconds.
   *
   * @param path What is asked for.
   * @param status What the answer is to be.
   */
  static async timeToAnswer(launch: Launch, path: string, status: number): Promise<number> {
    const start = performance.now();
    await using contender = await Contender.start("start", launch);
    const request = () => prepareRequest(HEAD, path);
    await sendLoad(contender.port, { request, count: 1, status }, { connections: 1 });
    return performance.now() - start;
  }

  /** Nanoseconds of CPU used so far, by all threads, in user and kernel mode. */
  cpu(): number {
    for (const { name } of Deno.readDirSync(`/proc/${this.#child.pid}/task`)) {
      const path = `/proc/${this.#child.pid}/task/${name}/schedstat`;
      try {
        this.#threads.set(name, Number(Deno.readTextFileSync(path).split(" ", 1)[0]));
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error; // it has just ended
      }
    }
    // Threads come and go; what the gone ones used counts as well.
    return this.#threads.values().reduce((sum, used) => sum + used, 0);
  }

  /** Resident memory in megabytes (10^6 bytes). */
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

/** A port of this machine that nothing listens on. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

async function untilListening(port: number): Promise<void> {
  for (let attempt = 0;; attempt++) {
    try {
      (await Deno.connect({ hostname: "127.0.0.1", port })).close();
      return;
    } catch (error) {
      if (!(error instanceof Deno.errors.ConnectionRefused) || attempt === 500) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
