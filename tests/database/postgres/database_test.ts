import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { messageOf } from "../../../lib/input/printable.ts";
import type { TokenEntry } from "../../../lib/storage/catalogue/catalogue.ts";
import type { Engine } from "../../../lib/storage/engines/engine.ts";
import { entryOf } from "../../../lib/storage/item.ts";
import { newToken } from "../../../lib/storage/token.ts";
import { Ledger } from "../../../lib/usage/record/ledger.ts";
import type { Session } from "../../../lib/usage/record/records.ts";
import { LINKED_ROWS } from "../linked_rows.ts";
import { newMetadata } from "../../storage/storage_suite.ts";
import { COUNT } from "../../support/counted_call.ts";
import { addRows, begin, FOREVER } from "../../support/ledger_rows.ts";
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
  const rows: [change: string, message: RegExp][] = [
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
    const adding = ledger.add(part, session, FOREVER).then(() => true, (error) => {
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
    assertEquals(await ledger.add(part, session, FOREVER) === undefined, isCommitted);
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

const HEARTBEAT = { counts: [], at: NOW, heartbeat: { intents: undefined, isStopped: false } };

test("an idle process sends a heartbeat in one round trip, once, whatever becomes of its connection", async () => {
  await using subject = await open();
  const { relay, engine: { ledger } } = subject;
  const session = await begin(ledger);
  const sent: string[] = [];
  relay.onSent = (text) => void sent.push(text);
  assert(await ledger.add(HEARTBEAT, session, FOREVER));
  assertEquals(sent.length, 1, sent.join());
  assertStringIncludes(sent[0] ?? "", "UPDATE media_head_session");
  const next = { ...session, sequence: 1 };
  relay.onReceived = () => subject.disconnect(); // after the change was committed
  await assertRejects(
    () => ledger.add(HEARTBEAT, next, FOREVER),
    StorageError,
    "cannot be written",
  );
  relay.onReceived = () => {};
  assertEquals(await ledger.add(HEARTBEAT, next, FOREVER), undefined);
  assertEquals((await ledger.session(session.id))?.sequence, 2);
});

test("an intent is void at once while a flush is under way, and a flush waits for one that is written", async () => {
  await using subject = await open();
  const { database, engine: { ledger } } = subject;
  const session = await begin(ledger);
  const intent = { id: "late", route: ROW.route };
  const part = { ...HEARTBEAT, counts: [ROW] };
  const release = await server().hold(database, "TRIGGER hold BEFORE INSERT ON media_head_usage");
  const adding = ledger.add(part, session, FOREVER);
  await subject.until(1, "query ~ '^INSERT' AND wait_event_type = 'Lock'");
  assertEquals(await ledger.intend(intent, session), undefined);
  await release();
  assert(await adding);
  assertEquals(await ledger.intents(), []);

  const next = { ...session, sequence: 1 };
  await server().query("DROP FUNCTION hold CASCADE", database);
  const write = await server().hold(database, "TRIGGER hold BEFORE INSERT ON media_head_intent");
  const intending = ledger.intend(intent, next);
  const isWriting = "query ~ '^INSERT INTO media_head_intent' AND wait_event_type = 'Lock'";
  await subject.until(1, isWriting);
  const { now: at } = await ledger.time();
  const intents = { at, sequence: 1, kept: [], settled: [], renewed: [] };
  const stopping = ledger.add(
    { ...HEARTBEAT, heartbeat: { intents, isStopped: true } },
    next,
    FOREVER,
  );
  await subject.until(1, "query ~ '^UPDATE media_head_session' AND wait_event_type = 'Lock'");
  await write();
  assert(await intending);
  assert(await stopping);
  assertEquals(await ledger.intents(), [], "the last heartbeat deletes it");
});

test("what is synced survives a crash at once, whatever the user's settings say", async () => {
  const settings = { wal_writer_delay: "10s", autovacuum: "off" };
  await using crashing = await PostgresServer.start({ settings });
  await crashing.query(`ALTER ROLE ${USER} SET synchronous_commit = off`);
  const name = await crashing.createDatabase();
  const url = crashing.urlOf(name);
  let known: Session | undefined;
  const crash = async (act: (ledger: Ledger) => Promise<unknown>) => {
    await using database = await openDatabase(url);
    await act(new Ledger(database));
    await crashing.stop("SIGQUIT"); // as at once as possible
    await crashing.launch();
  };
  const read = async () => {
    await using database = await openDatabase(url);
    const ledger = new Ledger(database);
    const sessions = (await ledger.sessions()).map(({ sequence, ended }) => [sequence, ended]);
    return [sessions, (await ledger.intents()).map(({ id }) => id), await ledger.started()];
  };
  const intent = { id: "i", route: ROW.route };
  let started: number | undefined;
  await crash(async (ledger) => {
    known = await begin(ledger);
    started = await ledger.started();
  });
  const session = known as Session;
  assertEquals(await read(), [[[0, undefined]], [], started]);
  await crash((ledger) => ledger.intend(intent, session));
  assertEquals(await read(), [[[0, undefined]], ["i"], started]);
  await crash(async (ledger) => started = await ledger.restart());
  assertEquals(await read(), [[[0, undefined]], ["i"], started]);
  await crash(async (ledger) => {
    const next = await begin(ledger);
    await ledger.add(
      { ...HEARTBEAT, heartbeat: { intents: undefined, isStopped: true } },
      next,
      FOREVER,
    );
  });
  assertEquals((await read())[0], [[0, undefined], [1, "stopped"]]);
});

/** Returns the timeline that an ordinary user is told, and whether a session can begin. */
async function timelineAt(at: PostgresServer, database: string) {
  await using opened = await openDatabase(at.urlOf(database));
  const ledger = new Ledger(opened);
  const [row] = await opened.query({ text: `SELECT ${opened.timeline} AS timeline` });
  const refusal = await ledger.timeline().then(() => undefined, (error) => error);
  return { timeline: row?.["timeline"], refusal, told: opened.timeline !== "''" };
}

test("a user is told the system and its timeline, which a promotion and a restore change", async () => {
  await using primary = await PostgresServer.start();
  const database = await primary.createDatabase();
  const before = await timelineAt(primary, database);
  assertMatch(String(before.timeline), /^[0-9]+\/00000001$/);
  assertEquals(await timelineAt(primary, database), before, "always the same");
  await primary.stop();
  await primary.launch();
  assertEquals(await timelineAt(primary, database), before, "a restart is no change");

  await using standby = await PostgresServer.copy(primary, "standby");
  const following = await timelineAt(standby, database);
  assertEquals(following.timeline, null);
  assert(following.refusal instanceof RefusedError, String(following.refusal));
  await standby.query("SELECT pg_promote()");
  await until("the promotion", async () => {
    return (await standby.query("SELECT pg_is_in_recovery()"))[0] === "f";
  });
  const next = String(before.timeline).replace(/1$/, "2");
  assertEquals((await timelineAt(standby, database)).timeline, next);
  assertEquals(await timelineAt(primary, database), before);

  await using restored = await PostgresServer.copy(primary, "restored");
  await until("the end of the recovery", async () => {
    return (await restored.query("SELECT pg_is_in_recovery()"))[0] === "f";
  });
  assertEquals((await timelineAt(restored, database)).timeline, next);
});

test("a database that does not tell its timeline has none, but a fault is no such answer", async () => {
  for (const name of ["pg_control_system()", "pg_walfile_name(pg_lsn)", "pg_current_wal_lsn()"]) {
    const database = await server().createDatabase();
    await server().query(`REVOKE EXECUTE ON FUNCTION ${name} FROM PUBLIC`, database);
    await using opened = await openDatabase(server().urlOf(database));
    const ledger = new Ledger(opened);
    assertEquals(await ledger.timeline(), "", name);
    const session = await begin(ledger);
    assertEquals(session.timeline, "");
    assert(await ledger.add(HEARTBEAT, session, FOREVER));
    assert(await ledger.intend({ id: "i", route: ROW.route }, { ...session, sequence: 1 }));
  }
  const database = await server().createDatabase();
  await using relay = new Relay(server().port);
  relay.onSent = (text) => {
    if (text.includes("pg_control_system")) relay.lead(server().port); // once, and it is over
  };
  const opening = () => openDatabase(server().urlOf(database, relay.port));
  await assertRejects(opening, StorageError, "cannot be read");
});

test("PostgreSQL itself rejects malformed items at URLs", async () => {
  await using database = await openDatabase(server().urlOf(await server().createDatabase()));
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
