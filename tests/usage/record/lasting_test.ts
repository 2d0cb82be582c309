/** Which faults of a ledger stop a start, because waiting does not mend them, on both engines. */

import { assert, assertEquals } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { postgresAt, sqliteAt } from "../../../lib/database/place.ts";
import { DENO_RUNTIME } from "../../../lib/database/sqlite/deno_runtime.ts";
import { nodeRuntime } from "../../../lib/database/sqlite/node_runtime.ts";
import { isLasting } from "../../../lib/errors/storage_error.ts";
import { openEngine } from "../../../lib/storage/engines/sqlite.ts";
import { type LedgerOptions, openLedger } from "../../../lib/usage/record/open_ledger.ts";
import { begin } from "../../support/ledger_rows.ts";
import { inFolder } from "../../support/media_cli.ts";
import { needing, shared } from "../../support/permissions.ts";
import { PASSWORD, POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import { freePort } from "../../support/ports.ts";
import { DISK, SmallDisk } from "../../support/small_disk.ts";

/** Opens a ledger and begins a session, as a start does. Returns the fault that it meets. */
async function startOn(
  place: Parameters<typeof openLedger>[0],
  options: Partial<LedgerOptions> = {},
  change: () => unknown = () => {},
): Promise<unknown> {
  try {
    const { ledger, close } = await openLedger(place, { runtime: () => DENO_RUNTIME, ...options });
    try {
      await change();
      await begin(ledger);
    } finally {
      await close();
    }
  } catch (error) {
    return error;
  }
}

function check(what: string, fault: unknown, lasts: boolean, message: RegExp): void {
  assert(fault !== undefined, `${what}: no fault`);
  const chain: string[] = [];
  for (let error: unknown = fault; error instanceof Error; error = error.cause) {
    chain.push(error.message);
  }
  assert(message.test(chain.join(", ")), `${what}: ${chain.join(", ")}`);
  assertEquals(isLasting(fault), lasts, `${what}: ${chain.join(", ")}`);
}

function sql(path: string, statements: string): void {
  using database = new DatabaseSync(path);
  database.exec(statements);
}

/** Faults of a file: how to make it, and what it comes to. */
const FILES: [
  what: string,
  make: (path: string, folder: string) => unknown,
  lasts: boolean,
  message: RegExp,
][] = [
  ["another program's", (path) => sql(path, "CREATE TABLE other (a)"), true, /is not a ledger of/],
  [
    "a catalogue",
    async (path) => await (await openEngine(sqliteAt(path))).close(),
    true,
    /not a ledger/,
  ],
  [
    "of a later release",
    async (path) => {
      await startOn(sqliteAt(path));
      sql(path, "PRAGMA user_version = 99");
    },
    true,
    /version 99 .* supports only \d+: run a later one$/,
  ],
  [
    "of an earlier release",
    async (path) => {
      await startOn(sqliteAt(path));
      sql(path, "PRAGMA user_version = 11");
    },
    true,
    /version 11 .*: stop the servers, and move it away$/,
  ],
  [
    "no database",
    (path) => Deno.writeTextFile(path, "no database, and no short text"),
    true,
    /not a d/,
  ],
  ["a folder", (path) => Deno.mkdir(path), true, /unable to open database file/],
  [
    "in a folder that is a file",
    (_, folder) => Deno.writeTextFile(`${folder}/x`, ""),
    true,
    /File exists/,
  ],
];

needing("files")("on SQLite, a start fails for files that are not the ledger", async () => {
  for (const [what, make, lasts, message] of FILES) {
    await inFolder(async (folder) => {
      const path = what.includes("that is a file") ? `${folder}/x/y.sqlite` : `${folder}/y.sqlite`;
      await make(path, folder);
      check(what, await startOn(sqliteAt(path)), lasts, message);
    });
  }
});

needing("files")(
  "on SQLite, a start fails for a path that is not there or may not be written",
  async () => {
    check("/proc", await startOn(sqliteAt("/proc/ledger.sqlite")), true, /unable to open/);
    const runtime = () => nodeRuntime(); // which makes no folders
    check("none", await startOn(sqliteAt("/none/x"), { runtime }), true, /"\/none" does not exist/);
  },
);

needing("files")(
  "on SQLite, a start does not fail for a ledger that is locked",
  () =>
    inFolder(async (folder) => {
      const path = `${folder}/ledger.sqlite`;
      await startOn(sqliteAt(path));
      using holder = new DatabaseSync(path);
      const lock = () => holder.exec("BEGIN EXCLUSIVE");
      check("locked", await startOn(sqliteAt(path), {}, lock), false, /database is locked/);
    }),
);

needing(...DISK)(
  "on SQLite, a start fails beside a disk that may not be written, and not beside a full one",
  async () => {
    for (const kilobytes of [4, 16, 40, 60, 80, 100]) { // where the file, its log or the index has no room
      await using disk = await SmallDisk.mount(kilobytes);
      const fill = () => Deno.writeFile(`${disk.folder}/rest`, new Uint8Array(1e6)).catch(() => {});
      const fault = await startOn(sqliteAt(`${disk.folder}/ledger.sqlite`), {}, fill);
      check(`${kilobytes} kB`, fault, false, /full|no space/i);
    }
    await using disk = await SmallDisk.mount(500);
    await startOn(sqliteAt(`${disk.folder}/ledger.sqlite`));
    await disk.makeReadOnly();
    for (const name of ["ledger", "new"]) {
      const fault = await startOn(sqliteAt(`${disk.folder}/${name}.sqlite`));
      check(name, fault, true, /unable to open|readonly/);
    }
  },
);

const server = shared(POSTGRES, () => PostgresServer.start());

/** Faults of a database: the change of a good one, or its URL, and what it comes to. */
const DATABASES: [
  what: string,
  change: (database: string) => string,
  lasts: boolean,
  message: RegExp,
][] = [
  ["of a later release", () => "UPDATE media_head_ledger SET schema = 99", true, /version 99/],
  [
    "of an earlier release",
    () => "UPDATE media_head_ledger SET schema = 11",
    true,
    /version 11 .*: stop the servers, and move it away/,
  ],
  ["without a table", () => "DROP TABLE media_head_session", true, /does not exist/],
  [
    "that the user may not write",
    () => `
    REASSIGN OWNED BY ${USER} TO postgres; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${USER}`,
    true,
    /denied/,
  ],
  [
    "in which the user may make no tables",
    (name) => `
    DROP TABLE media_head_ledger; ALTER DATABASE ${name} OWNER TO postgres`,
    true,
    /may not create tables/,
  ],
  [
    "that is read-only, as a standby is",
    (name) => `ALTER DATABASE ${name} SET default_transaction_read_only = on`,
    false,
    /read-only transaction/,
  ],
  [
    "with no connection left",
    (name) => `ALTER DATABASE ${name} CONNECTION LIMIT 0`,
    false,
    /too many/,
  ],
  ["that is locked", () => "", false, /lock timeout/],
];

needing(...POSTGRES)(
  "on PostgreSQL, a start fails for what waiting does not mend in the database",
  async () => {
    for (const [what, change, lasts, message] of DATABASES) {
      const name = await server().createDatabase();
      const place = postgresAt(server().urlOf(name));
      assertEquals(await startOn(place), undefined);
      if (what === "that is locked") {
        const release = await server().keep(name, "LOCK TABLE media_head_session");
        await server().query(`ALTER DATABASE ${name} SET lock_timeout = 1`);
        check(what, await startOn(place), lasts, message);
        await release();
        continue;
      }
      await server().query(change(name), name);
      check(what, await startOn(place), lasts, message);
    }
  },
);

/** URLs and options that lead to no database, and what they come to. */
const PLACES: [
  what: string,
  of: (url: URL) => unknown,
  lasts: boolean,
  message: RegExp,
  options?: Partial<LedgerOptions>,
][] = [
  ["a wrong password", (url) => url.password = "wrong", true, /authentication failed/],
  ["a wrong user", (url) => url.username = "nobody", true, /authentication failed/],
  ["no password", (url) => url.password = "", true, /it asks for a password/],
  ["a missing database", (url) => url.pathname = "/missing", true, /does not exist/],
  ["a missing schema", (url) => url.search = "?options=-csearch_path%3Dnone", true, /no schema/],
  ["no encryption", (url) => url.search = "?sslmode=require", true, /does not support SSL/],
  ["a port that is closed", (url) => url.port = String(freePort()), false, /ECONNREFUSED/],
  ["a socket that is missing", (url) => url.search = "?host=/none", false, /ENOENT/],
  [
    "a password that is none",
    () => {},
    true,
    /expected a function that returns the password, got n/,
    {
      password: () => 5 as unknown as string,
    },
  ],
  ["passwords that are away", () => {}, false, /the option password failed: Error: no token/, {
    password: () => Promise.reject(new Error("no token")),
  }],
];

needing(...POSTGRES)(
  "on PostgreSQL, a start fails for what waiting does not mend on the way there",
  async () => {
    const name = await server().createDatabase();
    for (const [what, of, lasts, message, options] of PLACES) {
      const url = new URL(server().urlOf(name));
      assertEquals(url.password, PASSWORD);
      of(url);
      check(what, await startOn(postgresAt(url.href), options), lasts, message);
    }
  },
);

/** How PostgreSQL refuses a connection for a while: the code of the error. */
const REFUSALS: [code: string, message: string][] = [
  ["57P03", "the database system is starting up"],
  ["57P03", "the database system is shutting down"],
  ["53300", "sorry, too many clients already"],
  ["53100", "could not extend file: No space left on device"],
  ["08006", "no server is available"], // of a pooler
];

needing("environment", "network")(
  "on PostgreSQL, a start does not fail for a server that refuses connections for a while",
  async () => {
    for (const [code, text] of REFUSALS) {
      using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      const answering = (async () => {
        using connection = await listener.accept();
        await connection.read(new Uint8Array(1_000));
        const fields = new TextEncoder().encode(`SFATAL\0VFATAL\0C${code}\0M${text}\0\0`);
        const head = new DataView(new ArrayBuffer(5));
        head.setUint8(0, "E".charCodeAt(0));
        head.setUint32(1, fields.length + 4);
        await connection.write(new Uint8Array([...new Uint8Array(head.buffer), ...fields]));
      })();
      const url = `postgres://u:p@127.0.0.1:${listener.addr.port}/d`;
      check(code, await startOn(postgresAt(url)), false, new RegExp(text));
      await answering;
    }
  },
);
