/** The gate's exit status is a verdict, or 2 for a command line or setting that is wrong. */

import { definePolicy } from "@media-head/lifecycle";
import { assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { exitStatusAfter } from "../../lib/errors/exit_status.ts";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { openUsage } from "../../lib/usage/mod.ts";
import { copyProject } from "../support/copy.ts";
import { lifecycle } from "../support/lifecycle_cli.ts";
import { openLedgerIn, openLocal } from "../support/local_storage.ts";
import { inFolder, mediaHere, testsInFolder } from "../support/media_cli.ts";
import { run } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import type { CommandResult } from "../support/run.ts";
import { ServerProcess } from "../support/server.ts";

const test = testsInFolder("processes");

const [WRONG_USAGE, UNKNOWN] = [2, 3];

/** A way of failing: words after `--gate 1`, settings, the status, and what is said. */
type Failure = readonly [words: string[], status: number, said: RegExp, settings?: object];

/** Words that are wrong, whatever the record. */
const WRONG_WORDS: readonly Failure[] = [
  [["--gate", "0"], WRONG_USAGE, /'0' is invalid/],
  [["--gait"], WRONG_USAGE, /unknown option '--gait'/],
  [["--ignore", "(other)"], WRONG_USAGE, /'\(other\)' is invalid/],
  [["--client", "app curl"], WRONG_USAGE, /cannot be used with option/],
  [["--also", "mysql://h/d"], WRONG_USAGE, /--also: expected/],
  [["now"], WRONG_USAGE, /too many arguments/],
];

/** The same, where the record has routes. */
const UNKNOWN_ROUTE: Failure = [["--route", "/audio"], WRONG_USAGE, /route "\/audio"/];

/** Runs `lifecycle usage` in this process. */
const lifecycleUsage = (...words: string[]) => lifecycle("usage", ...words);

function check({ code, stdout, stderr }: CommandResult, [words, status, said]: Failure): void {
  assertEquals(code, status, `${words.join(" ")}: ${stdout}${stderr}`);
  assertMatch(`${stdout}${stderr}`, said);
}

needing("processes")(
  "media usage --gate fails with 2 where it is wrong, and with 3 where nothing can be known",
  async () => {
    await using subject = await openLocal();
    const { folder } = subject;
    const ledger = `${folder}/catalogue.sqlite-ledger`;
    await (await openLedgerIn(folder)).close();
    const nowhere = `postgres://127.0.0.1:${freePort()}/media`;
    const rows: Failure[] = [
      ...WRONG_WORDS,
      [[], WRONG_USAGE, /DATABASE_URL/, { DATABASE_URL: "postgres://h:port/d" }],
      [[], WRONG_USAGE, /SUNSET_AT/, { SUNSET_AT: "soon" }],
      [[], UNKNOWN, /^media: .*\/none" .*cannot be opened/, {
        DATABASE_URL: `sqlite:${folder}/none`,
      }],
      [[], UNKNOWN, /^media: .*127\.0\.0\.1/, { DATABASE_URL: nowhere, CONTENT: "none" }],
      [["--route", "/audio/:token"], UNKNOWN, /^Unknown: /],
    ];
    const gate = async ([words, , , settings]: Failure) =>
      await mediaHere(folder, ["usage", "--gate", "1", ...words], { ...settings });
    for (const row of rows) check(await gate(row), row);
    const execute = (sql: string) => {
      using database = new DatabaseSync(ledger);
      database.exec(sql);
    };
    execute(
      `INSERT INTO media_head_session (id, opened, policies, pid, process_started, on_demand, retain_days,
       began, reported, written, sequence)
     VALUES ('a', 'a', '{"/audio/:token":{"deprecatedAt":0,"brownouts":[]}}', 1, 0, 0, 400, 0, 0, 0, 1)`,
    );
    check(await gate(UNKNOWN_ROUTE), UNKNOWN_ROUTE);
    const damaged: [sql: string, said: RegExp][] = [
      ["DROP TABLE media_head_usage", /^media: sqlite: .*no such table: media_head_usage/],
      ["PRAGMA user_version = 99", /^media: .*release/],
    ];
    for (const [sql, said] of damaged) {
      execute(sql);
      check(await gate([[], UNKNOWN, said]), [[sql], UNKNOWN, said]);
    }
  },
);

test("lifecycle usage --gate fails with 2 where it is wrong, and with 3 where nothing can be known", async (folder) => {
  const record = (name: string) => ["--database", `sqlite:${folder}/${name}`];
  const policy = definePolicy({ deprecatedAt: "2026-11-21" });
  const usage = await openUsage(`sqlite:${folder}/calls`, {
    routes: { "/v1": policy, "/v3": policy },
    log() {},
  });
  for (const route of ["/v1", "/v3"]) usage.retire(route);
  await usage.close();
  await Deno.mkdir(`${folder}/folder`);
  await Deno.writeTextFile(`${folder}/text`, "no database, but text".repeat(99));
  await Deno.copyFile(`${folder}/calls`, `${folder}/empty`);
  {
    using database = new DatabaseSync(`${folder}/empty`);
    database.exec("DELETE FROM media_head_session");
  }
  const nowhere = `postgres://127.0.0.1:${freePort()}/calls`;
  const rows: Failure[] = [
    ...WRONG_WORDS.map(([words, ...rest]): Failure => [[...record("calls"), ...words], ...rest]),
    [[], WRONG_USAGE, /required option '--database <url>'/],
    [["--database", "calls"], WRONG_USAGE, /--database: expected/],
    [["--database", "postgres://h:port/d"], WRONG_USAGE, /--database: expected/],
    [[...record("calls"), ...UNKNOWN_ROUTE[0]], ...UNKNOWN_ROUTE.slice(1) as [number, RegExp]],
    [[...record("calls"), "--probe", "ftp://a"], WRONG_USAGE, /starts with "https:/],
    [[...record("calls"), "--header", "a b: c"], WRONG_USAGE, /"NAME: VALUE"/],
    [record("none"), UNKNOWN, /\/none" .*cannot be opened/],
    [record("folder"), UNKNOWN, /^lifecycle: /],
    [record("text"), UNKNOWN, /^lifecycle: sqlite: /],
    [["--database", nowhere], UNKNOWN, /^lifecycle: .*127\.0\.0\.1/],
    [["--database", `${nowhere}?sslrootcert=${folder}/none`], UNKNOWN, /none/],
    [[...record("empty"), "--route", "/v1"], UNKNOWN, /^Unknown: /],
    [[...record("empty"), "--probe", "http://a/v1"], UNKNOWN, /^Unknown: /],
  ];
  for (const row of rows) check(await lifecycleUsage("--gate", "1", ...row[0]), row);
});

needing(...POSTGRES)(
  "a replica, which may be behind, gets neither a verdict nor a report",
  () =>
    inFolder(async (folder) => {
      await using database = await PostgresServer.start();
      const url = database.urlOf(await database.createDatabase());
      const environment = { DEPRECATED_AT: "1999-01-01", DATABASE_URL: url };
      await (await ServerProcess.start(environment, folder)).stop();
      await database.stop();
      await Deno.writeTextFile(`${database.folder}/data/standby.signal`, "");
      await database.launch();
      const commands: [name: string, run: (...words: string[]) => Promise<CommandResult>][] = [
        ["media usage", (...words) => mediaHere(folder, ["usage", ...words], environment)],
        ["lifecycle usage", (...words) => lifecycleUsage("--database", url, ...words)],
      ];
      for (const [name, run] of commands) {
        for (const [words, status] of [[["--gate", "1"], UNKNOWN], [[], 1]] as const) {
          const { code, stdout, stderr } = await run(...words);
          assertEquals([code, stdout], [status, ""], name);
          assertMatch(stderr, /^(?:media|lifecycle): .*replica.*\n$/);
        }
      }
    }),
);

test("lifecycle usage --gate fails with 3, and check with 2, where even the command cannot be loaded", async (folder) => {
  const deno = ["run", "--no-config", "--no-lock", "--allow-all"]; // and so without packages
  const program = [...deno, fromRoot("lib/usage/lifecycle_program.ts")];
  const rows: [words: string[], status: number][] = [
    [["usage", "--gate", "1"], UNKNOWN],
    [["usage", "--gate=1"], UNKNOWN],
    [["usage"], 1],
    [["check", "http://a"], 2], // 1 would be a fault that was found
  ];
  for (const [words, status] of rows) {
    const { code, errors } = await run(folder, Deno.execPath(), ...program, ...words);
    assertEquals(code, status, errors);
    assertMatch(errors, /"commander"/);
  }
});

test("media usage --gate fails with 3 where even the command cannot be loaded", async (folder) => {
  copyProject(folder);
  await Deno.remove(`${folder}/lib/usage/output/text.ts`); // as in a checkout that is damaged
  const program = ["run", "--quiet", "--no-prompt", "--frozen", "-P", "main.ts", "media"];
  const rows: [words: string[], status: number][] = [
    [["usage", "--gate", "1"], UNKNOWN],
    [["usage", "--gate=1"], UNKNOWN],
    [["usage"], 1],
    [["list"], 1],
  ];
  for (const [words, status] of rows) {
    const { code, errors } = await run(folder, Deno.execPath(), ...program, ...words);
    assertEquals(code, status, errors);
    assertMatch(errors, /usage\/output\/text\.ts/);
  }
});

Deno.test("a gate that cannot be asked is unknown, whatever the error", () => {
  const errors = [
    new RefusedError("PostgreSQL needs the package pg"),
    new StorageError("sqlite", "down"),
    new TypeError("a bug"),
  ];
  for (const error of errors) {
    assertEquals(exitStatusAfter(error, ["usage", "--gate", "1"]), UNKNOWN);
    assertEquals(exitStatusAfter(error, ["usage"]), 1);
    assertEquals(exitStatusAfter(error, ["--", "check", "http://a"]), 2);
  }
});

const HELP = [
  ...[["usage", "--gate", "1", "--help"], ["usage", "-h", "--gate"], ["help", "usage", "--gate=1"]],
  ...[["--help", "usage", "--gate"], ["--version", "usage", "--gate"], ["-V", "usage", "--gate"]],
];

test("a gate that prints help or the version fails with 2, because 0 would mean clear", async (folder) => {
  for (const words of HELP) {
    for (
      const { code, stdout, stderr } of [
        await lifecycle(...words),
        await mediaHere(folder, words),
      ]
    ) {
      assertEquals([code, stderr], [WRONG_USAGE, ""], words.join(" "));
      assertMatch(stdout, /^Usage: |^(?:media-head )?\d+\.\d+\.\d+\n$/);
    }
  }
});
