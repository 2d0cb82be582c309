/** Processes that share a record, on either engine, and what the gate says of it. */

import { DatabaseSync } from "node:sqlite";
import { requireDatabaseUrl } from "../../lib/database/place.ts";
import { DENO_RUNTIME } from "../../lib/database/sqlite/deno_runtime.ts";
import { ExitError } from "../../lib/errors/exit_status.ts";
import type { PolicySettings } from "../../lib/lifecycle/policy_settings.ts";
import { openLedger } from "../../lib/usage/record/open_ledger.ts";
import { usageCommand } from "../../lib/usage/usage_command.ts";
import { fromRoot } from "./paths.ts";
import type { PostgresServer } from "./postgres.ts";
import { ServerProcess } from "./server.ts";
import { DAY, SOURCE } from "./usage_report.ts";
import { until, within } from "./within.ts";

/** The verdicts, as exit statuses of the gate. */
export const [CLEAR, CALLED, UNKNOWN] = [0, 1, 3] as const;

/**
 * The settings of a server on which every HEAD and GET of a valid token is a call that needs an
 * intent, though nothing is published: it is redirected.
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
      using database = new DatabaseSync(ledger, { timeout: 5_000 });
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

/**
 * Gives a record a past of three days, by a server like the one that runs, which stopped when that
 * one began.
 */
export async function addPast({ execute }: Pick<RecordPlace, "execute">): Promise<void> {
  // An application records what it has mounted once it runs.
  const mounted = "SELECT id FROM media_head_session WHERE CAST(policies AS text) <> '{}'";
  await until("the mounts", async () => (await execute(mounted)).length > 0);
  await execute(
    `INSERT INTO media_head_session (id, policies, may_serve_unrecorded, pid, process_started, began,
       reported, timeline, sequence, ended, retain_days)
     SELECT 'past', policies, 0, 0, process_started, began - ${
      3 * DAY
    }, began, timeline, 1, 'stopped', retain_days
     FROM media_head_session WHERE CAST(policies AS text) <> '{}' ORDER BY began LIMIT 1`,
  );
  await execute(`UPDATE media_head_ledger SET started = started - ${3 * DAY}`);
}

/**
 * Lets minutes pass on record. The processes that are given are silent meanwhile, and the others have
 * run all the time.
 */
export async function passSilently(
  { execute }: Pick<RecordPlace, "execute">,
  minutes: number,
  silent: readonly number[],
): Promise<void> {
  const back = (column: string) => `${column} = ${column} - ${minutes * 60_000}`;
  const isSilent = `pid IN (${[...silent, -1].join()})`;
  await execute(
    `UPDATE media_head_session SET ${back("began")},
     reported = CASE WHEN ${isSilent} OR ended IS NOT NULL THEN reported - ${minutes * 60_000}
                ELSE reported END`,
  );
  await execute(
    `UPDATE media_head_intent SET ${["since", "until", "settled"].map(back).join()}
     WHERE session IN (SELECT id FROM media_head_session WHERE ${isSilent})`,
  );
  await execute(`UPDATE media_head_ledger SET ${back("started")}`);
}

/** Asks the gate on one day, in this process, but without anything that belongs to it. */
export async function askVerdict(
  url: string,
  ...words: string[]
): Promise<{ readonly status: number; readonly text: string }> {
  const place = requireDatabaseUrl(url, "url");
  const { ledger, close } = await openLedger(place, { runtime: () => DENO_RUNTIME });
  let text = "";
  const command = usageCommand({
    print: (part) => Promise.resolve(void (text += `${part}\n`)),
    printError() {},
    withSource: (_, action) => action({ ...SOURCE, ledger }),
  });
  try {
    await command.parseAsync(["--gate", "1", ...words], { from: "user" });
  } catch (error) {
    if (error instanceof ExitError) return { status: error.status, text };
    throw error;
  } finally {
    await close();
  }
  throw new Error("The gate has no verdict");
}

/** A running application whose old paths under `/v1` and `/v2` are retired: `recorded_main.ts`. */
export class ApplicationProcess implements AsyncDisposable {
  private constructor(
    private readonly child: Deno.ChildProcess,
    readonly port: number,
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
    const [program = "", ...args] = [
      ...(limits === undefined ? [] : ["bash", "-c", `ulimit ${limits}; exec "$@"`, "bash"]),
      ...[Deno.execPath(), "run", "--quiet", "--no-prompt", "--allow-all", config],
      ...[fromRoot("tests/support/recorded_main.ts"), database, JSON.stringify(settings)],
    ];
    const child = new Deno.Command(program, {
      args,
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const text = child.stdout.pipeThrough(new TextDecoderStream());
    const first = async () => {
      for await (const part of text) return Number(part);
      throw new Error("The application did not start");
    };
    return new ApplicationProcess(
      child,
      await within("an application's start", first(), { process: child }),
    );
  }

  get pid(): number {
    return this.child.pid;
  }

  async stop(signal: Deno.Signal = "SIGTERM"): Promise<unknown> {
    try {
      this.child.kill(signal);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // it has already ended
    }
    return await within("the end of an application", this.child.status, { process: this.child });
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
