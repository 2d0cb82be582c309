import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { messageOf } from "../../../lib/input/printable.ts";
import type { TokenEntry } from "../../../lib/storage/catalogue/catalogue.ts";
import { CATALOGUE } from "../../../lib/storage/catalogue/schema.ts";
import type { Engine } from "../../../lib/storage/engines/engine.ts";
import { entryOf } from "../../../lib/storage/item.ts";
import { newToken } from "../../../lib/storage/token.ts";
import { Ledger } from "../../../lib/usage/record/ledger.ts";
import { LEDGER } from "../../../lib/usage/record/schema.ts";
import { LINKED_ROWS } from "../linked_rows.ts";
import { newMetadata } from "../../storage/storage_suite.ts";
import { begin } from "../../support/ledger_rows.ts";
import { openLocal } from "../../support/local_storage.ts";
import { needing, shared } from "../../support/permissions.ts";
import { POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import { openDatabase, openEngine } from "../../support/postgres_engine.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { Relay } from "../../support/relay.ts";
import { ServerProcess } from "../../support/server.ts";
import { until } from "../../support/within.ts";

const server = shared(POSTGRES, () => PostgresServer.start());
const test = needing(...POSTGRES);

const ITEM = { digest: "ab".repeat(32), length: 1000 };

/** An engine connected to an empty database through a relay. */
interface Subject extends AsyncDisposable {
  readonly database: string;
  readonly relay: Relay;
  readonly engine: Engine;
  /** Waits until that many connections of the database match. */
  readonly until: (count: 0 | 1, condition: string) => Promise<void>;
  /** Closes the engine's connections. */
  readonly disconnect: () => void;
}

async function open(): Promise<Subject> {
  const database = await server().createDatabase();
  const relay = new Relay(server().port);
  const engine = await openEngine(server().urlOf(database, relay.port));
  return {
    database,
    relay,
    engine,
    async until(count, condition) {
      const text = `SELECT 1 FROM pg_stat_activity WHERE datname = '${database}' AND ${condition}`;
      await until(condition, async () => (await server().query(text)).length === count);
    },
    disconnect: () => relay.lead(server().port),
    async [Symbol.asyncDispose]() {
      await engine.close();
      await relay[Symbol.asyncDispose]();
    },
  };
}

test("two processes that add the same items in opposite orders do not deadlock", async () => {
  const url = server().urlOf(await server().createDatabase());
  const engines = [await openEngine(url), await openEngine(url)];
  for (let round = 0; round < Number(Deno.env.get("ROUNDS") ?? 6); round++) {
    const entries = Array.from({ length: 400 }, (): TokenEntry => {
      const item = { ...newMetadata(), ...ITEM };
      return [item.token, entryOf(item)];
    });
    const adding = engines.map(({ catalogue }, index) =>
      catalogue.addAll(index === 0 ? entries : entries.toReversed())
    );
    const added = await Promise.all(adding);
    assertEquals(added.reduce((sum, { size }) => sum + size, 0), entries.length);
  }
  for (const engine of engines) await engine.close();
});

test("lookups of requests fail within 2 s; starts and commands wait longer", async () => {
  await using subject = await open();
  const { catalogue } = subject.engine;
  const lock = "LOCK TABLE media_head_item, media_head_catalogue IN ACCESS EXCLUSIVE MODE";
  const release = await server().keep(subject.database, lock);
  const opening = openEngine(server().urlOf(subject.database));
  await subject.until(1, "wait_event_type = 'Lock'");
  const begun = performance.now();
  const reading = catalogue.isEmpty();
  await assertRejects(async () => await catalogue.find(newToken()), StorageError);
  const took = performance.now() - begun;
  assert(took < 5_000, `${took} ms`); // with slack for a busy machine
  await release();
  assertEquals(await reading, true);
  await (await opening).close();
});

test("processes that start together create one catalogue, and one of them says so", async () => {
  const url = server().urlOf(await server().createDatabase());
  const created: string[] = [];
  const onCreate = (what: string) => created.push(what);
  const engines = await Promise.all(Array.from({ length: 6 }, () => openEngine(url, { onCreate })));
  for (const engine of engines) await engine.close();
  assertEquals(created.length, 1);
});

test("a database whose encoding is not UTF8 is refused, and nothing is created in it", async () => {
  await server().query(`CREATE DATABASE latin OWNER ${USER} ENCODING LATIN1 TEMPLATE template0`);
  const opening = () => openEngine(server().urlOf("latin"));
  await assertRejects(opening, StorageError, 'has the encoding "LATIN1"; expected "UTF8"');
  const tables = "SELECT 1 FROM pg_tables WHERE tablename LIKE 'media_head_%'";
  assertEquals(await server().query(tables, "latin"), []);
});

test("a table whose row is gone, hidden or of a later release is refused by that", async () => {
  const rows: [change: string, message: RegExp][] = [
    [
      "UPDATE media_head_catalogue SET schema = 10",
      /\(DATABASE_URL\) has version 10 of the catalogue's schema, but this release supports only 9: run/,
    ],
    [
      "DELETE FROM media_head_catalogue",
      /media_head_catalogue without the row of the catalogue: another program's table/,
    ],
    [
      "ALTER TABLE media_head_catalogue ENABLE ROW LEVEL SECURITY; " +
      "ALTER TABLE media_head_catalogue FORCE ROW LEVEL SECURITY",
      /cannot be read .*row-level security policy for table "media_head_catalogue"/,
    ],
  ];
  for (const [change, message] of rows) {
    const database = await server().createDatabase();
    const open = () => openEngine(server().urlOf(database));
    await (await open()).close();
    await server().query(change, database);
    const fault = await assertRejects(open, StorageError);
    assertMatch(messageOf(fault), message);
  }
});

test("tables of other programs are left alone, whatever their names", async () => {
  const names = ["session", "usage", "ledger", "catalogue", "item"];
  const database = await server().createDatabase();
  for (const name of names) {
    await server().query(
      `CREATE TABLE ${name} (id bigint, sess json); INSERT INTO ${name} VALUES (7, '{}');
       CREATE INDEX ${name}_by_digest ON ${name} (id)`,
      database,
    );
  }
  const engine = await openEngine(server().urlOf(database));
  assert(await engine.catalogue.isEmpty());
  await engine.close();
  await using opened = await openDatabase(server().urlOf(database), LEDGER);
  const ledger = new Ledger(opened);
  const session = await begin(ledger);
  assertEquals(await ledger.sessions(), [session]);
  for (const name of names) {
    assertEquals(await server().query(`SELECT * FROM ${name}`, database), ["7|{}"]);
  }
});

test("a start waits for a PostgreSQL that is slow to accept connections", async () => {
  const url = server().urlOf(await server().createDatabase());
  server().freeze();
  const opening = openEngine(url);
  try {
    await new Promise((resolve) => setTimeout(resolve, 3_000)); // longer than a request would wait
  } finally {
    server().thaw();
  }
  await (await opening).close();
});

const DEFERRED =
  "CONSTRAINT TRIGGER hold AFTER INSERT ON media_head_item DEFERRABLE INITIALLY DEFERRED";

/** The statement in which a connection breaks, and whether the transaction is committed. */
const BREAKS: [what: string, trigger: string, query: string, isCommitted: boolean][] = [
  ["its last statement", "TRIGGER hold BEFORE INSERT ON media_head_item", "INSERT", false],
  ["its COMMIT", DEFERRED, "COMMIT", true],
  ["a COMMIT that fails", DEFERRED, "COMMIT", false],
];

for (const [what, trigger, query, isCommitted] of BREAKS) {
  test(`a transaction knows its outcome when its connection breaks in ${what}`, async () => {
    await using subject = await open();
    const { catalogue } = subject.engine;
    const release = await server().hold(subject.database, trigger);
    const item = { ...newMetadata(), ...ITEM };
    const adding = catalogue.add(item).then(() => true, (error) => {
      assert(error instanceof StorageError, error);
      return false;
    });
    const isAtIt = `query ~ '^${query}' AND state = 'active'`;
    await subject.until(1, isAtIt);
    subject.disconnect();
    if (!isCommitted) {
      await server().query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${isAtIt}
        AND pid <> pg_backend_pid()`);
    }
    await release();
    assertEquals(await adding, isCommitted);
    assertEquals(await catalogue.isEmpty(), !isCommitted);
  });
}

test("a transaction whose connection breaks silently does not block others", async () => {
  await using subject = await open();
  const { database, relay, engine: { catalogue } } = subject;
  const release = await server().hold(database, "TRIGGER hold BEFORE INSERT ON media_head_item");
  const adding = catalogue.add({ ...newMetadata(), ...ITEM }).catch(() => {});
  await subject.until(1, "query ~ '^INSERT' AND state = 'active'");
  relay.lose();
  await release();
  await subject.until(1, "state = 'idle in transaction'"); // and holds a row lock
  const other = await openEngine(server().urlOf(database));
  await other.catalogue.add({ ...newMetadata(), ...ITEM });
  await other.close();
  relay.restore();
  subject.disconnect();
  await adding;
  assertEquals((await Array.fromAsync(catalogue.list())).length, 1);
});

test("PostgreSQL itself rejects malformed items at URLs", async () => {
  const url = server().urlOf(await server().createDatabase());
  await using database = await openDatabase(url, CATALOGUE);
  for (const [what, row, isSound] of LINKED_ROWS) {
    const values = Object.values(row);
    const text = `INSERT INTO media_head_item (${Object.keys(row)})
      VALUES (${values.map((_, index) => `$${index + 1}`)})`;
    const said = await database.query({ text, values })
      .then(() => "taken", ({ cause }) => String(cause));
    assertMatch(said, isSound ? /^taken$/ : /violates check constraint/, what);
    if (isSound) await database.query({ text: "DELETE FROM media_head_item" });
  }
});

test("a server process under load opens three connections to PostgreSQL at most", async () => {
  const database = await server().createDatabase();
  const DATABASE_URL = server().urlOf(database);
  await using subject = await openLocal(openEngine(DATABASE_URL));
  const { token } = await subject.publish(newMetadata(), new Uint8Array(1000));
  await subject.close();
  await using process = await ServerProcess.start({ DATABASE_URL }, subject.folder);
  const counts: number[] = [];
  const asking = Array.from({ length: 50 }, async (_, index) => {
    while (counts.length < 8) {
      const path = index % 3 === 0 ? "/healthz" : `/audio/${index % 3 === 1 ? token : newToken()}`;
      const { status } = await requestRaw(process.port, "HEAD", path);
      assertEquals(status, index % 3 === 2 ? 404 : 200);
    }
  });
  const count = `SELECT count(*) FROM pg_stat_activity WHERE datname = '${database}'`;
  while (counts.length < 8) counts.push(Number((await server().query(count))[0]));
  await Promise.all(asking);
  assert(counts.every((count) => count <= 3), `${counts}`);
  assert(counts.some((count) => count > 0), `${counts}`);
});
