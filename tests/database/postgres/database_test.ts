import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { postgresAt } from "../../../lib/database/place.ts";
import type { Schema } from "../../../lib/database/sql/schema.ts";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import type { CatalogueRecord } from "../../../lib/storage/catalogue/catalogue.ts";
import { CATALOGUE } from "../../../lib/storage/catalogue/schema.ts";
import type { Engine } from "../../../lib/storage/engines/engine.ts";
import { entryOf } from "../../../lib/storage/item.ts";
import { newToken } from "../../../lib/storage/token.ts";
import { LEDGER } from "../../../lib/usage/record/schema.ts";
import { LINKED_RECORDS } from "../linked_rows.ts";
import { newMetadata } from "../../storage/storage_suite.ts";
import { COUNT } from "../../support/counted_call.ts";
import { addRows, begin } from "../../support/ledger_rows.ts";
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
const NOW = 1_800_000_000_000;
const ROW = { ...COUNT, client: "curl", calls: 3, last: NOW };

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
    const entries = Array.from({ length: 400 }, (): CatalogueRecord => {
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

test("a later release's schema is refused", async () => {
  const database = await server().createDatabase();
  const open = () => openEngine(server().urlOf(database));
  await (await open()).close();
  await server().query("UPDATE media_head_catalogue SET schema = 10", database);
  const message =
    "(DATABASE_URL) has version 10 of the catalogue's schema, but this release supports only 9: run";
  await assertRejects(open, StorageError, message);
});

test("a table whose row is gone or hidden is refused by that", async () => {
  const message = "media_head_catalogue without the row of the catalogue: another program's table";
  for (
    const change of [
      "DELETE FROM media_head_catalogue",
      "ALTER TABLE media_head_catalogue ENABLE ROW LEVEL SECURITY; " +
      "ALTER TABLE media_head_catalogue FORCE ROW LEVEL SECURITY",
    ]
  ) {
    const database = await server().createDatabase();
    const open = () => openEngine(server().urlOf(database));
    await (await open()).close();
    await server().query(change, database);
    await assertRejects(open, StorageError, message);
  }
});

test("tables of an earlier release are refused by name, and nothing is created", async () => {
  const rows: [schema: Schema, columns: string, advice: string][] = [
    [CATALOGUE, "version bigint, content text", "export it with the earlier release"],
    [LEDGER, "started bigint", "stop the servers, and move it away"],
  ];
  const { PostgresDatabase } = await import("../../../lib/database/postgres/database.ts");
  for (const [schema, columns, advice] of rows) {
    const { name: table } = schema;
    const database = await server().createDatabase();
    await server().query(`CREATE TABLE ${table} (id bigint, schema bigint, ${columns})`, database);
    const message = `has the ${table} of an earlier release, in the table "${table}": ${advice}`;
    for (const mustExist of [false, true]) {
      const opened = new PostgresDatabase(postgresAt(server().urlOf(database)), { mustExist });
      const opening = () => opened.createTables([schema]).finally(() => opened.close());
      await assertRejects(opening, StorageError, message);
    }
    const found = await server().query("SELECT tablename FROM pg_tables", database);
    assertEquals(found.filter((name) => name.includes(table)), [table]);
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
  await addRows(engine.ledger, [ROW]);
  assertEquals(await Array.fromAsync(engine.ledger.usage(""), ({ calls }) => calls), [ROW.calls]);
  assert(await engine.catalogue.isEmpty());
  await engine.close();
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
  "CONSTRAINT TRIGGER hold AFTER INSERT ON media_head_usage DEFERRABLE INITIALLY DEFERRED";
const BREAKS: [what: string, trigger: string, query: string, isAborted: boolean][] = [
  ["its last statement", "TRIGGER hold BEFORE INSERT ON media_head_usage", "INSERT", false],
  ["its COMMIT", DEFERRED, "COMMIT", false],
  ["a COMMIT that fails", DEFERRED, "COMMIT", true],
];

for (const [what, trigger, query, isAborted] of BREAKS) {
  test(`add() knows what it added when the connection breaks in ${what}`, async () => {
    await using subject = await open();
    const { ledger } = subject.engine;
    const session = await begin(ledger);
    const release = await server().hold(subject.database, trigger);
    const part = { counts: [ROW], at: NOW };
    const adding = ledger.add(part, session).catch((error) => {
      assert(error instanceof StorageError, error);
    });
    const isAtIt = `query ~ '^${query}' AND state = 'active'`;
    await subject.until(1, isAtIt);
    subject.disconnect();
    if (isAborted) {
      await server().query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${isAtIt}
        AND pid <> pg_backend_pid()`);
    }
    await release();
    const isAdded = await adding;
    await subject.until(0, isAtIt);
    const isCommitted = query === "COMMIT" && !isAborted;
    assertEquals(isAdded, isCommitted ? true : undefined);
    const calls = () => Array.fromAsync(ledger.usage(""), ({ calls }) => calls);
    assertEquals(await calls(), isCommitted ? [ROW.calls] : []);
    // Whatever its outcome was, sent again it is recorded once.
    assertEquals(await ledger.add(part, session), !isCommitted);
    assertEquals([await calls(), (await ledger.session(session.id))?.sequence], [[ROW.calls], 1]);
  });
}

test("a transaction whose connection breaks silently does not block others", async () => {
  await using subject = await open();
  const { database, relay, engine: { ledger } } = subject;
  const release = await server().hold(database, "TRIGGER hold BEFORE INSERT ON media_head_usage");
  const adding = addRows(ledger, [ROW]).catch(() => {});
  await subject.until(1, "query ~ '^INSERT' AND state = 'active'");
  relay.lose();
  await release();
  await subject.until(1, "state = 'idle in transaction'"); // and holds a row lock
  const other = await openEngine(server().urlOf(database));
  await addRows(other.ledger, [ROW]);
  await other.close();
  relay.restore();
  subject.disconnect();
  await adding;
  assertEquals(await Array.fromAsync(ledger.usage(""), ({ calls }) => calls), [ROW.calls]);
});

test("PostgreSQL itself rejects malformed items at URLs", async () => {
  await using database = await openDatabase(server().urlOf(await server().createDatabase()));
  for (const [what, record, isSound] of LINKED_RECORDS) {
    const values = Object.values(record);
    const text = `INSERT INTO media_head_item (${Object.keys(record)})
      VALUES (${values.map((_, index) => `$${index + 1}`)})`;
    const said = await database.query({ text, values })
      .then(() => "taken", ({ cause }) => String(cause));
    assertMatch(said, isSound ? /^taken$/ : /violates check constraint/, what);
    if (isSound) await database.query({ text: "DELETE FROM media_head_item" });
  }
});

test("a server process under load opens two connections to PostgreSQL at most", async () => {
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
  assert(counts.every((count) => count <= 2), `${counts}`);
  assert(counts.some((count) => count > 0), `${counts}`);
});
