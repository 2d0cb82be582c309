import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Engine } from "../../../lib/storage/engine.ts";
import type { Usage } from "../../../lib/storage/ledger.ts";
import { type Kind, StorageError } from "../../../lib/storage/storage.ts";
import { newToken } from "../../../lib/storage/token.ts";
import { needing, shared } from "../../support/permissions.ts";
import { openEngine } from "../../support/postgres_engine.ts";
import { POSTGRES, PostgresServer } from "../../support/postgres.ts";
import { Relay } from "../../support/relay.ts";
import { description } from "../storage_suite.ts";

const server = shared(POSTGRES, () => PostgresServer.start());
const test = needing(...POSTGRES);

const ITEM = { digest: "ab".repeat(32), length: 1000 };
const ROW: Usage = {
  day: "2027-02-01",
  route: "/audio/:token",
  method: "HEAD",
  phase: "deprecated",
  status: "2xx",
  impact: "breaking",
  client: "curl",
  calls: 3,
  first: 1_800_000_000_000,
  last: 1_800_000_000_000,
};

/** An engine that reaches an empty database through a relay. */
interface Subject extends AsyncDisposable {
  readonly relay: Relay;
  readonly engine: Engine;
  /** Runs SQL as the superuser. */
  readonly query: (sql: string) => Promise<string[]>;
  /** Waits until one of the engine's connections is like that. */
  readonly untilSome: (condition: string) => Promise<void>;
  /** Closes the engine's connections. */
  readonly disconnect: () => void;
}

async function open(): Promise<Subject> {
  const database = await server().createDatabase();
  const relay = new Relay(server().port);
  const engine = await openEngine(server().urlOf(database, relay.port));
  const query = (sql: string) => server().query(sql, database);
  return {
    relay,
    engine,
    query,
    async untilSome(condition) {
      const text = `SELECT 1 FROM pg_stat_activity
        WHERE datname = '${database}' AND pid <> pg_backend_pid() AND ${condition}`;
      for (let tries = 0; (await query(text)).length === 0; tries++) {
        assert(tries < 200, `never ${condition}`);
        await pause(10);
      }
    },
    disconnect: () => relay.lead(server().port),
    async [Symbol.asyncDispose]() {
      await engine.close();
      await relay[Symbol.asyncDispose]();
    },
  };
}

test("a transaction that PostgreSQL refuses leaves nothing, and no connection in the midst of it", async () => {
  await using subject = await open();
  const { catalogue } = subject.engine;
  const malformed = { ...description(), ...ITEM, kind: "image" as Kind };
  for (let round = 0; round < 3; round++) {
    const version = await catalogue.version();
    await assertRejects(() => catalogue.add(malformed), StorageError);
    assertEquals(await catalogue.version(), version);
    const item = { ...description(), ...ITEM };
    await catalogue.add(item);
    assertEquals((await catalogue.find(item.token)).state, "published");
  }
  assertEquals((await catalogue.find(malformed.token)).state, "unknown");
});

test("what a request waits for fails within 2 s, and what commands read is waited for", async () => {
  await using subject = await open();
  const { catalogue } = subject.engine;
  const held = "BEGIN; LOCK TABLE item IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(4); COMMIT";
  const holding = subject.query(held);
  await subject.untilSome("query ~ 'pg_sleep'");
  const begun = performance.now();
  const reading = catalogue.isEmpty();
  await assertRejects(async () => await catalogue.find(newToken()), StorageError);
  const took = performance.now() - begun;
  assert(took < 3_500, `${took} ms`); // with slack for a machine that has other things to do
  assertEquals(await reading, true);
  assert(performance.now() - begun > 2_500, "it was not held up");
  await holding;
});

const DEFERRED = "CONSTRAINT TRIGGER slow AFTER INSERT ON usage DEFERRABLE INITIALLY DEFERRED";
const BREAKS: readonly {
  what: string;
  trigger: string;
  query: string;
  isAborted?: boolean;
}[] = [
  {
    what: "its last statement",
    trigger: "TRIGGER slow BEFORE INSERT ON usage",
    query: "INSERT",
  },
  { what: "its COMMIT", trigger: DEFERRED, query: "COMMIT" },
  { what: "a COMMIT that fails", trigger: DEFERRED, query: "COMMIT", isAborted: true },
];

for (const { what, trigger, query, isAborted } of BREAKS) {
  test(`add() is right about what it added when the connection breaks in ${what}`, async () => {
    await using subject = await open();
    const { ledger } = subject.engine;
    await subject.query(`
      CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(1); RETURN NEW; END';
      CREATE ${trigger} FOR EACH ROW EXECUTE FUNCTION slow()`);
    let told = 0;
    const adding = ledger.add([ROW], (rows) => told += rows.length).catch((error) => {
      assert(error instanceof StorageError, error);
    });
    const isAtIt = `state = 'active' AND query ~ '^${query}'`;
    await subject.untilSome(isAtIt);
    subject.disconnect();
    if (isAborted) {
      await subject.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND ${isAtIt}`);
    }
    await adding;
    await pause(1_500); // until what the connection was at would be there
    const calls = await Array.fromAsync(ledger.usage(""), ({ calls }) => calls);
    assertEquals(calls, told === 1 ? [ROW.calls] : []);
    assertEquals(told, query === "COMMIT" && !isAborted ? 1 : 0);
  });
}

test("a transaction whose connection is lost without a word does not keep others waiting for it", async () => {
  await using subject = await open();
  const { relay, engine: { ledger } } = subject;
  await subject.query(`
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END';
    CREATE TRIGGER slow BEFORE INSERT ON usage FOR EACH ROW EXECUTE FUNCTION slow()`);
  const adding = ledger.add([ROW], () => {}).catch(() => {});
  await subject.untilSome("state = 'active' AND query ~ '^INSERT'");
  relay.lose("everything");
  await subject.untilSome("state = 'idle in transaction'"); // and holds the lock of a row
  const [database] = await subject.query("SELECT current_database()");
  const other = await openEngine(server().urlOf(database as string));
  await other.ledger.add([ROW], () => {});
  await other.close();
  relay.restore();
  subject.disconnect();
  await adding;
  assertEquals(await Array.fromAsync(ledger.usage(""), ({ calls }) => calls), [ROW.calls]);
});

/** Time for things to happen in another process. */
function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
