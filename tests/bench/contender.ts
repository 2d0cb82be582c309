/** A server under measurement: its process, its port, and its resource usage. */

import { Child } from "../support/child.ts";
import { accepts } from "../support/ports.ts";
import { until } from "../support/within.ts";

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
  readonly #threads = new Map<string, number>();

  private constructor(
    readonly name: string,
    private readonly child: Child,
    readonly port: number,
  ) {}

  /** Starts a server and waits until it listens. */
  static async start(name: string, { command, args, env, port }: Launch): Promise<Contender> {
    const variables = { HOST: "127.0.0.1", PORT: "0", ...env };
    const child = new Child([command, ...args], "stderr", { env: variables });
    if (port === undefined) {
      const [, told] = await child.started(name, /"port":(\d+)/);
      return new Contender(name, child, Number(told));
    }
    await until(`${name} to listen`, async () => child.hasEnded || await accepts(port));
    if (child.hasEnded) throw new Error(`${name} ended:\n${child.text}`);
    return new Contender(name, child, port);
  }

  /** Returns the CPU time used so far by all threads, in user and kernel mode, in nanoseconds. */
  cpu(): number {
    for (const { name } of Deno.readDirSync(`/proc/${this.child.pid}/task`)) {
      const path = `/proc/${this.child.pid}/task/${name}/schedstat`;
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
    const status = Deno.readTextFileSync(`/proc/${this.child.pid}/status`);
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024 / 1e6;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.signal("SIGTERM");
    await this.child.end(this.name);
  }
}
