/** Processes that share a record, on either engine. */

import { DatabaseSync } from "node:sqlite";
import type { PolicySettings } from "../../lib/lifecycle/policy_settings.ts";
import { Child } from "./child.ts";
import { fromRoot } from "./paths.ts";
import type { PostgresServer } from "./postgres.ts";
import { ServerProcess } from "./server.ts";
import { until } from "./within.ts";

const DAY = 86_400_000;

/**
 * The settings of a server on which every HEAD and GET of a valid token is a call, though nothing is
 * published: it is redirected.
 */
export const REDIRECTING = {
  DEPRECATED_AT: "1999-01-01",
  SUNSET_AT: "2000-01-01",
  AFTER_SUNSET: "redirect",
};

/** A record on one of the engines. */
export interface RecordPlace {
  /** The URL of the record. */
  readonly url: string;
  /** The settings of a server that uses it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs a statement, and returns its rows, with their columns separated by `|`. */
  readonly execute: (sql: string) => Promise<string[]>;
}

/** Returns the place of the record of a server that keeps its data in a folder. */
export function recordOnSqlite(folder: string): RecordPlace {
  const ledger = `${folder}/catalogue.sqlite-ledger`;
  return {
    url: `sqlite:${ledger}`,
    environment: {},
    execute(sql) {
      using database = new DatabaseSync(ledger, { timeout: 60_000 });
      const rows = database.prepare(sql).all();
      return Promise.resolve(rows.map((row) => Object.values(row).join("|")));
    },
  };
}

/** Returns the place of a record in a new database. */
export async function recordOnPostgres(server: PostgresServer): Promise<RecordPlace> {
  const name = await server.createDatabase();
  const url = server.urlOf(name);
  return {
    url,
    environment: { DATABASE_URL: url },
    execute: (sql) => server.query(sql, name),
  };
}

/** Returns the number of calls on record. */
export async function callsIn({ execute }: Pick<RecordPlace, "execute">): Promise<number> {
  const sum = "SELECT coalesce(CAST(sum(calls) AS bigint), 0) FROM media_head_usage";
  const [calls] = await execute(`${sum} WHERE impact = 'breaking'`);
  return Number(calls);
}

/**
 * Gives a record a past of three days, by a process like the one that runs, which stopped when that
 * one began.
 */
export async function addPast({ execute }: Pick<RecordPlace, "execute">): Promise<void> {
  // An application records what it has mounted once it runs.
  const mounted = "SELECT id FROM media_head_session WHERE CAST(policies AS text) <> '{}'";
  await until("the mounts", async () => (await execute(mounted)).length > 0);
  await execute(
    `INSERT INTO media_head_session (id, opened, pid, process_started, policies, on_demand,
       retain_days, began, reported, written, sequence, ended)
     SELECT 'past', 'past', 0, process_started, policies, on_demand, retain_days, began - ${
      3 * DAY
    }, began, began, 1, 'stopped'
     FROM media_head_session WHERE CAST(policies AS text) <> '{}' ORDER BY began LIMIT 1`,
  );
}

/** Lets processes be silent for so long that their sessions are over. */
export async function fallSilent(
  { execute }: Pick<RecordPlace, "execute">,
  pids: readonly number[],
): Promise<void> {
  const list = [...pids, -1].join();
  await execute(`UPDATE media_head_session SET written = written - 120000 WHERE pid IN (${list})`);
}

/** A running application whose old paths under `/v1` and `/v2` are retired: `recorded_main.ts`. */
export class ApplicationProcess implements AsyncDisposable {
  private constructor(
    readonly port: number,
    private readonly child: Child,
  ) {}

  /**
   * Starts it on a record, and waits until it listens.
   *
   * @param options `limits` for `ulimit`, as for a server, and the `settings` of the policy.
   */
  static async start(
    database: string,
    { limits, settings = { deprecatedAt: "2026-01-01" } }: {
      readonly limits?: string | undefined;
      readonly settings?: PolicySettings;
    } = {},
  ): Promise<ApplicationProcess> {
    const config = `--config=${fromRoot("deno.json")}`;
    const words = [
      ...[Deno.execPath(), "run", "--quiet", "--no-prompt", "--allow-all", config],
      ...[fromRoot("tests/support/recorded_main.ts"), database, JSON.stringify(settings)],
    ];
    const child = new Child(words, "stdout", { limits });
    const [port] = await child.started("an application", /^\d+(?=\n)/);
    return new ApplicationProcess(Number(port), child);
  }

  get pid(): number {
    return this.child.pid;
  }

  async stop(signal: Deno.Signal = "SIGTERM"): Promise<unknown> {
    this.child.signal(signal);
    return await this.child.end("an application");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Starts a server on a record. */
export function startRecorded(
  folder: string,
  { environment }: Pick<RecordPlace, "environment">,
  settings: Readonly<Record<string, string>> = REDIRECTING,
  options: Parameters<typeof ServerProcess.start>[2] = {},
): Promise<ServerProcess> {
  return ServerProcess.start({ ...settings, ...environment }, folder, options);
}
