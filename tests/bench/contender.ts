/**
 * A server under measurement: a process, its port, and what it has used.
 */

/** A running contender. Disposing of it ends it. */
export class Contender implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;

  private constructor(readonly name: string, child: Deno.ChildProcess, readonly port: number) {
    this.#child = child;
  }

  /**
   * Starts a server that says its port on standard output or error, as `"port":N`.
   *
   * @param args What follows `deno`.
   */
  static async start(
    name: string,
    args: string[],
    environment: Record<string, string> = {},
  ): Promise<Contender> {
    const child = new Deno.Command(Deno.execPath(), {
      args,
      env: { HOST: "127.0.0.1", PORT: "0", ...environment },
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    (async () => {
      let text = "";
      for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
        text = (text + chunk).slice(-10_000);
        const port = /"port":(\d+)/.exec(text)?.[1];
        if (port !== undefined) resolve(Number(port));
      }
      reject(new Error(`${name} ended:\n${text}`));
    })();
    return new Contender(name, child, await promise);
  }

  /** Nanoseconds of CPU used so far, by all threads, in user and kernel mode. */
  cpu(): number {
    let sum = 0;
    for (const { name } of Deno.readDirSync(`/proc/${this.#child.pid}/task`)) {
      const path = `/proc/${this.#child.pid}/task/${name}/schedstat`;
      sum += Number(Deno.readTextFileSync(path).split(" ", 1)[0]);
    }
    return sum;
  }

  /** Resident memory in megabytes (10^6 bytes). */
  memory(): number {
    const status = Deno.readTextFileSync(`/proc/${this.#child.pid}/status`);
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024 / 1e6;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#child.status;
  }
}
