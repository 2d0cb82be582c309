/** Programs that end with the tests. */

import { pathOf } from "./permissions.ts";
import { within } from "./within.ts";

/**
 * Returns the words of a command that is killed when the thread of its test file ends, however that
 * happens. Only Linux can do that.
 */
function endingWithTests(words: readonly string[]): readonly string[] {
  const setpriv = pathOf("setpriv");
  return setpriv === undefined ? words : [setpriv, "--pdeathsig=KILL", ...words];
}

/** A program that is running, and what it prints. It is killed when the tests end. */
export class Child {
  /** What it has printed so far. */
  text = "";
  hasEnded = false;
  readonly #process: Deno.ChildProcess;
  readonly #printed: Promise<void>;
  #onText = () => {};

  /**
   * @param words The program and its arguments.
   * @param output The stream that is read. The other one is discarded.
   * @param options Its folder and environment, and `limits` for `ulimit`, e.g. `-n 64`.
   */
  constructor(
    words: readonly string[],
    output: "stdout" | "stderr",
    { limits, ...options }:
      & { readonly limits?: string | undefined }
      & Pick<
        Deno.CommandOptions,
        "cwd" | "env"
      > = {},
  ) {
    const limited = ["bash", "-c", `ulimit ${limits}; exec "$@"`, "bash", ...words];
    const [program = "", ...args] = endingWithTests(limits === undefined ? words : limited);
    const streams = { stdin: "null", stdout: "null", stderr: "null", [output]: "piped" } as const;
    this.#process = new Deno.Command(program, { ...options, args, ...streams }).spawn();
    this.#process.status.then(() => this.hasEnded = true);
    this.#printed = this.#read(this.#process[output]);
  }

  async #read(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    for await (const part of stream.pipeThrough(new TextDecoderStream())) {
      this.text += part;
      this.#onText();
    }
  }

  get pid(): number {
    return this.#process.pid;
  }

  /**
   * Waits until it has printed what tells that it has started.
   *
   * @throws When it ends instead, or takes too long, with all that it has printed. Then it is killed.
   */
  async started(what: string, pattern: RegExp): Promise<RegExpExecArray> {
    const found = Promise.withResolvers<RegExpExecArray>();
    this.#onText = () => {
      const match = pattern.exec(this.text);
      if (match === null) return;
      this.#onText = () => {};
      found.resolve(match);
    };
    const ended = this.#printed.then(() => {
      throw new Error(`${what} did not start:\n${this.text}`);
    });
    const starting = Promise.race([found.promise, ended]);
    return await within(`the start of ${what}`, starting, { process: this.#process });
  }

  /** Sends a signal, unless it has ended. */
  signal(signal: Deno.Signal): void {
    try {
      this.#process.kill(signal);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
  }

  /**
   * Waits until it has ended, and all that it printed is read, and returns its exit status.
   *
   * @throws When it does not end within a minute, with what it has printed. Then it is killed.
   */
  async end(what: string): Promise<number> {
    const all = Promise.all([this.#process.status, this.#printed]);
    try {
      const [{ code }] = await within(`the end of ${what}`, all, { process: this.#process });
      return code;
    } catch (error) {
      throw new Error(`${what} did not end:\n${this.text}`, { cause: error });
    }
  }
}

/**
 * A shell script that runs the command of its arguments until the end of its own input, which comes
 * even if the tests are killed. A program that changes its user would lose the signal above. One that
 * does not end within five seconds is killed.
 */
export const UNTIL_END_OF_INPUT = `
trap '' INT QUIT
exec 3<&0
"$0" "$@" < /dev/null &
program=$!
{
  cat <&3
  kill $program
  timeout 5 tail --pid=$program --sleep-interval=0.05 -f /dev/null || kill -KILL $program
} > /dev/null 2>&1 &
wait $program`;
