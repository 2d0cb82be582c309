import { assertEquals } from "@std/assert";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { creationOf, type Schema } from "../../../lib/database/sql/schema.ts";
import { DIALECT } from "../../../lib/database/sqlite/creation.ts";
import { CATALOGUE } from "../../../lib/storage/catalogue/schema.ts";
import { LEDGER } from "../../../lib/usage/record/schema.ts";
import { LINKED_ROWS } from "../linked_rows.ts";
import { COUNT } from "../../support/counted_call.ts";

type Row = Readonly<{ [column: string]: SQLInputValue | undefined }>;

/** A row of a table, and whether it is valid. */
type Case = [what: string, table: string, row: Row, isSound: boolean];

const ITEM = {
  token: "6f1d8c1e-6f0a-4d3e-9c3b-0a1b2c3d4e5f",
  kind: "audio",
  type: "audio/mpeg",
  length: 7,
  digest: "ab".repeat(32),
  published_at: 1_000_000_000_000,
};
const TOMBSTONE = { token: ITEM.token, kind: "video", unpublished_at: 5 };
const AT_URL = { ...TOMBSTONE, unpublished_at: null, location: "https://h/", published_at: 5 };
const NUL = "\0";

const ITEMS: Case[] = [
  ["an item", ITEM, true],
  ["an item with all properties", { ...ITEM, name: 'a "b".mp3', language: "de-AT" }, true],
  ["an item without content", { ...ITEM, length: 0 }, true],
  ["the largest item", { ...ITEM, length: Number.MAX_SAFE_INTEGER }, true],
  ["an item from before 1970", { ...ITEM, published_at: -1 }, true],
  ["a tombstone", TOMBSTONE, true],

  ["no token", { ...ITEM, token: null }, false],
  ["a token in upper case", { ...ITEM, token: ITEM.token.toUpperCase() }, false],
  ["a token and more", { ...ITEM, token: `${ITEM.token}${NUL}x` }, false],
  ["no kind", { ...ITEM, kind: null }, false],
  ["another kind", { ...ITEM, kind: "text" }, false],
  ["a type with a field behind NUL", { ...ITEM, type: `audio/mpeg${NUL}\r\nX: y` }, false],
  ["a type beyond ASCII", { ...ITEM, type: "audio/mpég" }, false],
  ["a fraction of a byte", { ...ITEM, length: 1.5 }, false],
  ["a length beyond what a number holds", { ...ITEM, length: 9_007_199_254_740_992n }, false],
  ["a digest that is a path", { ...ITEM, digest: "../../etc/passwd" }, false],
  ["a digest and more", { ...ITEM, digest: `${ITEM.digest}${NUL}/../x` }, false],
  ["a date beyond all dates", { ...ITEM, published_at: 8_640_000_000_000_001 }, false],
  ["a name that is bytes", { ...ITEM, name: new Uint8Array(1) }, false],
  ["no language at all", { ...ITEM, language: "" }, false],
  ["a language and more", { ...ITEM, language: `de${NUL}\r\n` }, false],
  ...(["type", "length", "digest", "published_at"] as const).map((column) =>
    [`an item without ${column}`, { ...ITEM, [column]: null }, false] as const
  ),
  ["neither item nor tombstone", { token: ITEM.token, kind: "audio" }, false],
  ["both item and tombstone", { ...ITEM, ...TOMBSTONE }, false],
  ...Object.entries({ ...ITEM, name: "x", language: "de" }).slice(2).map(([column, value]) =>
    [`a tombstone with ${column}`, { ...TOMBSTONE, [column]: value }, false] as const
  ),
  ["a URL and more", { ...AT_URL, location: `https://h/${NUL}\r\nX: y` }, false],
  ["a validator and more", { ...AT_URL, validator: `x${NUL}\n` }, false],
  ...LINKED_ROWS,
].map(([what, row, isSound]) => [what, "item", row, isSound] as Case);

const USAGE = { ...COUNT, day: "2027-02-01", client: "curl", calls: 3, last: 5 };
const CALLS = { day: 20_000, route: "/v1", client: "curl", calls: 3 };
const SESSION = {
  ...{ id: "a", opened: "o", pid: 1, process_started: 4, policies: "{}", on_demand: 0 },
  ...{ retain_days: 400, began: 5, reported: 4, written: 5, sequence: 1 },
};

const LEDGER_ROWS: Case[] = [
  ["a row", "usage", USAGE, true],
  ["no day", "usage", { ...USAGE, day: null }, false],
  ["an invalid day", "usage", { ...USAGE, day: "2027-02-29" }, false],
  ["a day with a time", "usage", { ...USAGE, day: "2027-02-28 12:00" }, false],
  ["any name of a client", "usage", { ...USAGE, client: `${NUL}\n播客${"x".repeat(99)}` }, true],
  ["a client without a name", "usage", { ...USAGE, client: null }, false],
  ["any release", "usage", { ...USAGE, release: `${NUL}\n` }, true],
  ["another impact", "usage", { ...USAGE, impact: "some" }, false],
  ["no calls", "usage", { ...USAGE, calls: 0 }, false],
  ["half a call", "usage", { ...USAGE, calls: 1.5 }, false],
  ["a row without its last instant", "usage", { ...USAGE, last: null }, false],
  ["calls on a day", "day", CALLS, true],
  ["calls on half a day", "day", { ...CALLS, day: 20_000.5 }, false],
  ["calls on a day that has no date", "day", { ...CALLS, day: 1e9 }, false],
  ["no calls on a day", "day", { ...CALLS, calls: 0 }, false],
  ["calls by nobody on a day", "day", { ...CALLS, client: null }, false],
  ["a session", "session", SESSION, true],
  ["a session that stopped", "session", { ...SESSION, ended: "stopped" }, true],
  ["a session after a loss", "session", { ...SESSION, lost: 3 }, true],
  ["a session of no process", "session", { ...SESSION, opened: "" }, false],
  ["a session without a process", "session", { ...SESSION, pid: null }, false],
  ["a session on half a demand", "session", { ...SESSION, on_demand: 2 }, false],
  ["a session that retains nothing", "session", { ...SESSION, retain_days: 0 }, false],
  ["a session that ended otherwise", "session", { ...SESSION, ended: "bored" }, false],
  ["a session of nobody", "session", { ...SESSION, id: "" }, false],
  ["a session with half a policy", "session", { ...SESSION, policies: "{" }, false],
  ["a session without a report", "session", { ...SESSION, reported: null }, false],
  ["a session that was never written", "session", { ...SESSION, written: null }, false],
  ["a session without a part", "session", { ...SESSION, sequence: 0 }, false],
  ["a loss beyond all dates", "session", { ...SESSION, lost: 9e15 }, false],
  ["a second ledger", "ledger", { id: 2, schema: 1 }, false],
];

/** Adds a row to an empty file, and returns whether that was rejected as malformed. */
function isRefused(schema: Schema, table: string, row: Row): boolean {
  using database = new DatabaseSync(":memory:");
  database.exec(creationOf(schema, DIALECT));
  const columns = Object.keys(row);
  const insert = database.prepare(
    `INSERT INTO media_head_${table} (${columns}) VALUES (${columns.map(() => "?")})`,
  );
  try {
    insert.run(...Object.values(row) as SQLInputValue[]);
    return false;
  } catch (error) {
    assertEquals(Object(error).errcode & 0xff, 19, String(error)); // SQLITE_CONSTRAINT
    return true;
  }
}

for (const [schema, rows] of [[CATALOGUE, ITEMS], [LEDGER, LEDGER_ROWS]] as const) {
  Deno.test(`the database itself rejects malformed rows of a ${schema.name}`, () => {
    for (const [what, table, row, isSound] of rows) {
      assertEquals(isRefused(schema, table, row), !isSound, what);
    }
  });
}
