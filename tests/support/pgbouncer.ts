/**
 * PgBouncer as packaged by Debian, in front of a PostgreSQL: a transaction pooler like those of
 * hosting platforms.
 */

import { type Need, program } from "./permissions.ts";
import { accepts, freePort } from "./ports.ts";
import { command, PASSWORD, POSTGRES, type PostgresServer, USER } from "./postgres.ts";
import { until, within } from "./within.ts";

/** What tests on PostgreSQL behind PgBouncer need. */
export const PGBOUNCER: readonly Need[] = [...POSTGRES, program("pgbouncer")];

/** A running PgBouncer. Disposing of it ends it. */
export class PgBouncer implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #log: Promise<string>;

  private constructor(process: Deno.ChildProcess, readonly port: number) {
    this.#process = process;
    this.#log = new Response(process.stderr).text();
  }

  /** Starts it in a server's folder, and waits until it accepts connections. */
  static async start(server: PostgresServer): Promise<PgBouncer> {
    const [port, folder] = [freePort(), server.folder];
    await Deno.writeTextFile(`${folder}/users`, `"${USER}" "${PASSWORD}"\n`);
    await Deno.writeTextFile(
      `${folder}/pgbouncer.ini`,
      `[databases]
      * = host=127.0.0.1 port=${server.port}
      [pgbouncer]
      listen_addr = 127.0.0.1
      listen_port = ${port}
      unix_socket_dir =
      auth_type = scram-sha-256
      auth_file = ${folder}/users
      pool_mode = transaction
      min_pool_size = 2
      default_pool_size = 4
      server_round_robin = 1
      `,
    );
    const file = `${folder}/pgbouncer.ini`;
    const process = command("pgbouncer", [file], { stderr: "piped" }).spawn();
    const bouncer = new PgBouncer(process, port);
    let hasEnded = false;
    process.status.then(() => hasEnded = true);
    await until("PgBouncer to listen", async () => hasEnded || await accepts(port));
    if (hasEnded) throw new Error(`PgBouncer ended:\n${await bouncer.#log}`);
    return bouncer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGTERM");
    await within("the end of PgBouncer", this.#process.status, { process: this.#process });
    await this.#log;
  }
}
