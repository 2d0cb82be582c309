/** Another program that locks a SQLite database, using Python's SQLite module. */

import { within } from "./within.ts";

/** How to lock. */
export interface LockOptions {
  /** How the transaction begins. */
  readonly begin: "BEGIN IMMEDIATE" | "BEGIN EXCLUSIVE";
  /** The journal mode to set first, while no other process has the database open. */
  readonly journalMode: "WAL" | "DELETE";
}

const PROGRAM = `
import sqlite3, sys
path, mode = sys.argv[1:]
database = sqlite3.connect(path, isolation_level=None, timeout=10)
assert database.execute("PRAGMA journal_mode = " + mode).fetchone() == (mode.lower(),)
if mode == "DELETE":
    database.execute("BEGIN")
    database.execute("SELECT * FROM sqlite_master").fetchall()  # so that nobody switches it back
print("open", flush=True)
for line in sys.stdin:
    if database.in_transaction: database.execute("COMMIT")
    if line.strip(): database.execute(line)
    print("done", flush=True)
`;

/** A database open in another program. Disposing of it ends the program. */
export class LockHolder implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #output: ReadableStreamDefaultReader<string>;
  readonly #begin: string;

  private constructor(path: string, { begin, journalMode }: LockOptions) {
    this.#begin = begin;
    this.#child = new Deno.Command("python3", {
      args: ["-c", PROGRAM, path, journalMode],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.#input = this.#child.stdin.getWriter();
    this.#output = this.#child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** Opens the database, without locking it. */
  static async open(path: string, options: LockOptions): Promise<LockHolder> {
    const holder = new LockHolder(path, options);
    await holder.#answer();
    return holder;
  }

  /** Takes the lock. */
  async take(): Promise<void> {
    await this.#send(this.#begin);
  }

  /** Releases it. */
  async release(): Promise<void> {
    await this.#send("");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#input.close();
    await this.#output.cancel();
    await within("the end of the holder of the lock", this.#child.status);
  }

  async #send(line: string): Promise<void> {
    await this.#input.write(new TextEncoder().encode(`${line}\n`));
    await this.#answer();
  }

  async #answer(): Promise<void> {
    const { value } = await within("the holder of the lock", this.#output.read());
    if (value?.trim() === undefined) throw new Error("The program that holds the lock has ended");
  }
}
