/**
 * PgBouncer as packaged by Debian, in front of a PostgreSQL: a transaction pooler like those of
 * hosting platforms.
 */

import { Daemon } from "./daemon.ts";
import { type Need, program } from "./permissions.ts";
import { PASSWORD, POSTGRES, type PostgresServer, USER } from "./postgres.ts";

/** What tests on PostgreSQL behind PgBouncer need. */
export const PGBOUNCER: readonly Need[] = [...POSTGRES, program("pgbouncer")];

/**
 * Starts PgBouncer in front of a server.
 *
 * @param settings More lines of its configuration.
 */
export function startPgBouncer(server: PostgresServer, settings = ""): Promise<Daemon> {
  return Daemon.start("pgbouncer", ({ port, folder }) => ({
    args: [...Deno.uid() === 0 ? ["--user=postgres"] : [], `${folder}/pgbouncer.ini`],
    files: {
      users: `"${USER}" "${PASSWORD}"\n`,
      "pgbouncer.ini": `[databases]
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
        ${settings}
        `,
    },
  }));
}
