/** PostgreSQL as packaged by Debian, in a temporary folder and on a free port. */

import { madeOnce, makeFolder } from "./made_once.ts";
import { LINUX, type Need, pathOf, program } from "./permissions.ts";
import { freePort } from "./ports.ts";
import { resultOf } from "./run.ts";
import { until, within } from "./within.ts";

/** What tests on PostgreSQL need. */
export const POSTGRES: readonly Need[] = [
  "processes",
  LINUX,
  program("initdb"),
  program("psql"),
  program("setpriv"),
];

/** The owner of the databases, and the password, which must not be logged. */
export const [USER, PASSWORD] = ["media", "keep-this-out-of-logs"];

/** Changed defaults: no test here is about power failures. */
const SETTINGS = {
  fsync: "off",
  full_page_writes: "off",
  listen_addresses: "127.0.0.1",
  max_connections: "100",
  shared_buffers: "16MB",
};

/** How to start a server. */
export interface PostgresOptions {
  /** Configuration parameters besides those above. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The names and addresses in its certificate; without any, it uses no TLS. */
  readonly certifiedFor?: readonly string[];
}

/** A running PostgreSQL. Disposing of it ends it and removes its folder. */
export class PostgresServer implements AsyncDisposable {
  readonly #settings: Readonly<Record<string, string>>;
  #process: Deno.ChildProcess | undefined;
  #log: Promise<string> | undefined;
  #frozen: number[] = [];
  #databases = 0;

  private constructor(
    /** Holds its data, its socket and its certificate. */
    readonly folder: string,
    readonly port: number,
    settings: Readonly<Record<string, string>>,
  ) {
    this.#settings = settings;
  }

  /** Starts a server without our databases, and waits until it is ready. */
  static async start({ settings, certifiedFor }: PostgresOptions = {}): Promise<PostgresServer> {
    const folder = await makeFolder("postgres-");
    await Deno.chmod(folder, 0o777); // PostgreSQL has another user than root
    const template = await madeOnce("postgres", initialize);
    await run("cp", ["-a", `${template}/data`, folder]);
    const encrypted = certifiedFor === undefined ? {} : await certify(folder, certifiedFor);
    const server = new PostgresServer(folder, freePort(), { ...settings, ...encrypted });
    await server.launch();
    return server;
  }

  /**
   * Starts a copy of a server: a standby that follows it, or one that is restored from a backup to the
   * point in time at which that was complete.
   */
  static async copy(of: PostgresServer, how: "standby" | "restored"): Promise<PostgresServer> {
    const folder = await makeFolder("postgres-");
    await Deno.chmod(folder, 0o777);
    const data = `${folder}/data`;
    await run("pg_basebackup", [
      ...["--pgdata", data, "--host", of.folder, "--port", String(of.port)],
      ...["--username", "postgres", "--checkpoint", "fast", "--no-sync"],
      ...(how === "standby" ? ["--write-recovery-conf"] : []),
    ]);
    const restoring = {
      restore_command: `cp ${of.folder}/data/pg_wal/%f %p`,
      recovery_target: "immediate",
      recovery_target_action: "promote",
    };
    const settings = how === "standby" ? {} : restoring;
    const server = new PostgresServer(folder, freePort(), { ...of.#settings, ...settings });
    if (how === "restored") await run("touch", [`${data}/recovery.signal`]);
    await server.launch();
    if (how === "restored") {
      const isRestored = async () => (await server.query("SELECT pg_is_in_recovery()"))[0] === "f";
      await until("the end of the recovery", isRestored);
    }
    return server;
  }

  /** The path of the certificate to trust. */
  get certificate(): string {
    return `${this.folder}/certificate.pem`;
  }

  /** Creates an empty database, and returns its name. */
  async createDatabase(): Promise<string> {
    const name = `test_${++this.#databases}`;
    await this.query(`CREATE DATABASE ${name} OWNER ${USER}`);
    return name;
  }

  /** Returns the URL of a database, at this server's port or a proxy's. */
  urlOf(database: string, port = this.port): string {
    return `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/${database}`;
  }

  /**
   * Runs SQL as the superuser, for whom a connection is always reserved; returns the rows as text.
   */
  async query(sql: string, database = "postgres"): Promise<string[]> {
    const text = await run("psql", [
      ...["--host", this.folder, "--port", String(this.port), "--username", "postgres"],
      ...["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", database],
      ...["--command", sql],
    ]);
    return text.split("\n").slice(0, -1);
  }

  /**
   * Blocks statements that fire a trigger.
   *
   * @param event The trigger's event, e.g. `TRIGGER hold BEFORE INSERT ON media_head_usage`.
   * @returns A function that unblocks them for good. Ending the server does, too.
   */
  async hold(database: string, event: string): Promise<() => Promise<void>> {
    await this.query(
      `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END';
       CREATE ${event} FOR EACH ROW EXECUTE FUNCTION hold()`,
      database,
    );
    return await this.keep(database, "SELECT pg_advisory_lock(1)");
  }

  /** Runs SQL that takes locks, which are held until the returned function is called. */
  async keep(database: string, sql: string): Promise<() => Promise<void>> {
    const keeping = this.query(`BEGIN; ${sql}; SELECT pg_sleep(600)`, database).catch(() => {});
    const keepers = `FROM pg_stat_activity WHERE datname = '${database}' AND usename = 'postgres'
      AND wait_event = 'PgSleep'`;
    const isKept = async () => (await this.query(`SELECT 1 ${keepers}`)).length > 0;
    await until("PostgreSQL's locks", isKept);
    return async () => {
      await this.query(`SELECT pg_terminate_backend(pid) ${keepers}`);
      await keeping;
    };
  }

  /** Restarts it after {@linkcode PostgresServer.stop}. */
  async launch(): Promise<void> {
    const all = { ...SETTINGS, unix_socket_directories: this.folder, ...this.#settings };
    const settings = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const place = ["-D", `${this.folder}/data`, "-p", String(this.port)];
    const process = command("postgres", [...place, ...settings], { stderr: "piped" }).spawn();
    this.#process = process;
    this.#log = new Response(process.stderr).text();
    let hasEnded = false;
    process.status.then(() => hasEnded = true);
    const isReady = () => this.query("SELECT 1").then(() => true, () => false);
    await until("PostgreSQL's start", async () => hasEnded || await isReady());
    if (hasEnded) throw new Error(`PostgreSQL ended:\n${await this.#log}`);
  }

  /** Stops it, and closes every connection. */
  async stop(signal: "SIGINT" | "SIGQUIT" = "SIGINT"): Promise<void> {
    const [process, log] = [this.#process, this.#log];
    this.#process = undefined;
    if (process === undefined) return;
    process.kill(signal);
    await within("the end of PostgreSQL", Promise.all([process.status, log]), { process });
  }

  /** Suspends every process of the server. The kernel still accepts connections. */
  freeze(): void {
    const { pid } = this.#process as Deno.ChildProcess;
    Deno.kill(pid, "SIGSTOP"); // first, so that it starts no more children
    this.#frozen = [...childrenOf(pid), pid];
    for (const child of this.#frozen) Deno.kill(child, "SIGSTOP");
  }

  /** Resumes a frozen server. */
  thaw(): void {
    for (const pid of this.#frozen) Deno.kill(pid, "SIGCONT");
    this.#frozen = [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.thaw();
    await this.stop("SIGQUIT");
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** Returns the children of a process. */
function childrenOf(pid: number): number[] {
  const text = Deno.readTextFileSync(`/proc/${pid}/task/${pid}/children`).trim();
  return text === "" ? [] : text.split(" ").map(Number);
}

/** Makes the data of a server that has the owner of the databases, but no database of ours. */
async function initialize(folder: string): Promise<void> {
  await Deno.chmod(folder, 0o777);
  const data = `${folder}/data`;
  await run("initdb", [
    ...["--pgdata", data, "--username", "postgres", "--encoding", "UTF8"],
    ...["--locale", "C", "--auth-local", "trust", "--auth-host", "scram-sha-256", "--no-sync"],
  ]);
  const role = `CREATE ROLE ${USER} LOGIN PASSWORD '${PASSWORD}'`;
  const script = 'echo "$0" | "$1" --single -D "$2" -c fsync=off postgres';
  await run("sh", ["-c", script, role, pathOf("postgres") ?? "postgres", data]);
}

/** Makes a self-signed certificate, and returns the settings for it. */
async function certify(folder: string, names: readonly string[]): Promise<Record<string, string>> {
  const [ssl_cert_file, ssl_key_file] = [`${folder}/certificate.pem`, `${folder}/key.pem`];
  await run("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
    ...["-keyout", ssl_key_file, "-out", ssl_cert_file, "-days", "2", "-subj", "/CN=test"],
    ...["-addext", `subjectAltName=${names.join(",")}`],
  ]);
  const access = `${folder}/data/pg_hba.conf`;
  const lines = await Deno.readTextFile(access);
  await Deno.writeTextFile(access, lines.replaceAll(/^host /gm, "hostssl "));
  return { ssl: "on", ssl_cert_file, ssl_key_file };
}

/** Runs a program that must succeed, and returns its output. */
async function run(name: string, args: readonly string[]): Promise<string> {
  const piped = { stdout: "piped", stderr: "piped" } as const;
  const { code, stdout, stderr } = await resultOf(command(name, args, piped).spawn());
  if (code !== 0) throw new Error(`${name}: ${stderr}`);
  return stdout;
}

/**
 * Returns a command of a user that may run PostgreSQL, since root may not. It has an empty
 * environment, and is signalled when this process ends.
 */
export function command(
  name: string,
  args: readonly string[],
  output: Pick<Deno.CommandOptions, "stdout" | "stderr"> = {},
): Deno.Command {
  const user = ["--reuid=postgres", "--regid=postgres", "--init-groups"];
  return new Deno.Command(pathOf("setpriv") ?? "setpriv", {
    args: [
      ...(Deno.uid() === 0 ? user : []),
      ...["--pdeathsig=QUIT", pathOf(name) ?? name, ...args],
    ],
    cwd: "/",
    clearEnv: true,
    stdin: "null",
    stdout: "null",
    stderr: "null",
    ...output,
  });
}
