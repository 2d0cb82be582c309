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

/** Makes a ledger whose schema has another version. */
async function makeVersion(path: string, version: number): Promise<void> {
  await startOn(sqliteAt(path));
  sql(path, `PRAGMA user_version = ${version}`);
}

/** Paths to no ledger: what is made before, in a folder, and what the start says. */
const FILES: [what: string, make: (folder: string) => unknown, path: string, message: RegExp][] = [
  ["another's", (at) => sql(`${at}/x`, "CREATE TABLE other (a)"), "x", /is not a ledger of/],
  [
    "a catalogue",
    async (at) => await (await openEngine(sqliteAt(`${at}/x`))).close(),
    "x",
    /not a ledger/,
  ],
  ["later", (at) => makeVersion(`${at}/x`, 99), "x", /99 .* supports only \d+: run a later one$/],
  [
    "earlier",
    (at) => makeVersion(`${at}/x`, 11),
    "x",
    /11 .*: stop the servers, and move it away$/,
  ],
  ["a text", (at) => Deno.writeTextFile(`${at}/x`, "no database, and not short"), "x", /not a d/],
  ["a folder", (at) => Deno.mkdir(`${at}/x`), "x", /unable to open database file/],
  ["below a file", (at) => Deno.writeTextFile(`${at}/x`, ""), "x/y", /File exists/],
];

needing("files")("on SQLite, a start fails for paths to no ledger", async () => {
  for (const [what, make, path, message] of FILES) {
    await inFolder(async (folder) => {
      await make(folder);
      check(what, await startOn(sqliteAt(`${folder}/${path}`)), true, message);
    });
  }
  check("/proc", await startOn(sqliteAt("/proc/ledger.sqlite")), true, /unable to open/);
  const runtime = () => nodeRuntime(); // which makes no folders
  check("none", await startOn(sqliteAt("/none/x"), { runtime }), true, /"\/none" does not exist/);
});

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

const EARLIER = "UPDATE media_head_ledger SET schema = 11";
const READ_ONLY = `REASSIGN OWNED BY ${USER} TO postgres;
                   GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${USER}`;

/** Changes of a good database, whether the fault lasts, and what it says. */
const DATABASES: [what: string, lasts: boolean, RegExp, change: (database: string) => string][] = [
  ["later", true, /version 99/, () => "UPDATE media_head_ledger SET schema = 99"],
  ["earlier", true, /version 11 .*: stop the servers, and move it away/, () => EARLIER],
  ["without a table", true, /does not exist/, () => "DROP TABLE media_head_session"],
  ["not to be written", true, /denied/, () => READ_ONLY],
  ["not the user's", true, /may not create tables/, (name) => {
    return `DROP TABLE media_head_ledger; ALTER DATABASE ${name} OWNER TO postgres`;
  }],
  ["a standby", false, /read-only transaction/, (name) => {
    return `ALTER DATABASE ${name} SET default_transaction_read_only = on`;
  }],
  ["full", false, /too many/, (name) => `ALTER DATABASE ${name} CONNECTION LIMIT 0`],
];

needing(...POSTGRES)(
  "on PostgreSQL, a start fails for what waiting does not mend in the database",
  async () => {
    for (const [what, lasts, message, change] of DATABASES) {
      const name = await server().createDatabase();
      const place = postgresAt(server().urlOf(name));
      assertEquals(await startOn(place), undefined);
      await server().query(change(name), name);
      check(what, await startOn(place), lasts, message);
    }
    const name = await server().createDatabase();
    const place = postgresAt(server().urlOf(name));
    assertEquals(await startOn(place), undefined);
    const release = await server().keep(name, "LOCK TABLE media_head_session");
    await server().query(`ALTER DATABASE ${name} SET lock_timeout = 1`);
    check("locked", await startOn(place), false, /lock timeout/);
    await release();
  },
);

/** What is wrong on the way to the database, whether that lasts, and what the fault says. */
const PLACES: [what: string, lasts: boolean, RegExp, change: (url: URL) => unknown][] = [
  ["a wrong password", true, /authentication failed/, (url) => url.password = "wrong"],
  ["a wrong user", true, /authentication failed/, (url) => url.username = "nobody"],
  ["no password", true, /it asks for a password/, (url) => url.password = ""],
  ["a missing database", true, /does not exist/, (url) => url.pathname = "/missing"],
  ["no schema", true, /no schema/, (url) => url.search = "?options=-csearch_path%3Dnone"],
  ["no encryption", true, /does not support SSL/, (url) => url.search = "?sslmode=require"],
  ["a closed port", false, /ECONNREFUSED/, (url) => url.port = String(freePort())],
  ["no socket", false, /ENOENT/, (url) => url.search = "?host=/none"],
];

/** Passwords that are none, and whether that lasts. */
const PASSWORDS: [lasts: boolean, RegExp, password: () => unknown][] = [
  [true, /expected a function that returns the password, got n/, () => 5],
  [false, /the option password failed: Error: no token/, () => Promise.reject(Error("no token"))],
];

needing(...POSTGRES)(
  "on PostgreSQL, a start fails for what waiting does not mend on the way there",
  async () => {
    const { href } = new URL(server().urlOf(await server().createDatabase()));
    for (const [what, lasts, message, change] of PLACES) {
      const url = new URL(href);
      assertEquals(url.password, PASSWORD);
      change(url);
      check(what, await startOn(postgresAt(url.href)), lasts, message);
    }
    for (const [lasts, message, password] of PASSWORDS) {
      const options = { password: password as () => string };
      check(`${message}`, await startOn(postgresAt(href), options), lasts, message);
    }
  },
);

/** Codes by which PostgreSQL, or a pooler, refuses a connection for a while. */
const REFUSALS = ["57P03", "53300", "53100", "08006"];

needing("environment", "network")(
  "on PostgreSQL, a start does not fail for a server that refuses connections for a while",
  async () => {
    for (const code of REFUSALS) {
      using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      const answering = (async () => {
        using connection = await listener.accept();
        await connection.read(new Uint8Array(1_000));
        const fields = new TextEncoder().encode(`SFATAL\0VFATAL\0C${code}\0Mnot now\0\0`);
        const length = fields.length + 4;
        await connection.write(new Uint8Array(["E".charCodeAt(0), 0, 0, 0, length, ...fields]));
      })();
      const url = `postgres://u:p@127.0.0.1:${listener.addr.port}/d`;
      check(code, await startOn(postgresAt(url)), false, /not now/);
      await answering;
    }
  },
);
