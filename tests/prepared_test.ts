import { assert, assertEquals } from "@std/assert";
import { definePolicy } from "../lib/lifecycle/policy.ts";
import { newToken } from "../lib/http/token.ts";
import { CachedStorage } from "../lib/storage/cache.ts";
import { type Finding, type Storage, StorageError } from "../lib/storage/storage.ts";
import { createHandler } from "../main.ts";
import { CONFIG, publishTableItems, requestTable } from "./request_table.ts";
import { description } from "./storage_suite.ts";
import { openLocal } from "./support/local_storage.ts";

const NOW = Date.parse("2026-11-21T12:00:00Z");
const TTL = 5_000;
const HOUR = 3_600_000;

Deno.test("a prepared response says what the long way says, over the whole table", async () => {
  await using subject = await openLocal();
  const rows = requestTable(await publishTableItems(subject));
  const common = { config: CONFIG, now: () => NOW, log() {} };
  const slow = createHandler({ ...common, storage: subject.storage });
  const cached = new CachedStorage(subject.storage, { ttl: TTL, now: () => NOW });
  const fast = createHandler({ ...common, storage: cached });
  let prepared = 0;
  for (const { what, target, fields } of rows) {
    const request = () => {
      const url = URL.canParse(target) ? target : `http://test${target}`;
      return new Request(url, { method: "HEAD", headers: fields ?? {} });
    };
    const expected = await slow(request());
    for (const time of ["first", "second", "third"]) {
      const response = fast(request());
      if (response instanceof Response) prepared++;
      const { status, headers, body } = await response;
      assertEquals(
        [status, [...headers], body],
        [expected.status, [...expected.headers], null],
        `${what}, ${time}`,
      );
    }
  }
  assertEquals(prepared > rows.length / 2, true, `${prepared} answers were prepared`);
});

/** Storage with one item, whose state and faults a test sets. */
class OneItem implements Storage {
  readonly item = { ...description(), digest: "ab".repeat(32), length: 7 };
  finding: Finding = { state: "published", kind: "audio", item: this.item };
  finds = 0;

  find(): Promise<Finding> {
    this.finds++;
    return Promise.resolve(this.finding);
  }
  open = () => Promise.reject(new StorageError("test", "content is missing"));
  check = () => Promise.resolve();
  close() {}
}

function handlerOn(storage: Storage, config = CONFIG) {
  const clock = { now: NOW };
  const now = () => clock.now;
  const cached = new CachedStorage(storage, { ttl: TTL, now });
  const handle = createHandler({ storage: cached, config, now, log() {} });
  const status = async (method: string, path: string, headers = {}) =>
    (await handle(new Request(`http://test${path}`, { method, headers }))).status;
  return { clock, handle, status };
}

Deno.test("a prepared response lasts no longer than the look-up it comes from", async () => {
  const storage = new OneItem();
  const { clock, status } = handlerOn(storage);
  const [media, audio] = [`/media/${storage.item.token}`, `/audio/${storage.item.token}`];
  assertEquals(await status("HEAD", media), 200);
  storage.finding = { state: "unpublished", kind: "audio", unpublishedAt: NOW };

  clock.now += TTL - 1;
  assertEquals(await status("HEAD", media), 200);
  assertEquals(await status("HEAD", audio), 200); // prepared just now, from the same look-up
  assertEquals(storage.finds, 1);
  clock.now += 1;
  assertEquals(await status("HEAD", audio), 410);
  assertEquals(await status("HEAD", media), 410);
  assertEquals(storage.finds, 2);
});

Deno.test("a prepared response does not outlive a clock that is set back", async () => {
  const storage = new OneItem();
  const { clock, status } = handlerOn(storage);
  assertEquals(await status("HEAD", `/media/${storage.item.token}`), 200);
  storage.finding = { state: "unknown" };
  clock.now -= 3_600_000;
  assertEquals(await status("HEAD", `/media/${storage.item.token}`), 404);
});

Deno.test("a prepared response answers the same conditions only, and never a GET", async () => {
  const storage = new OneItem();
  const { status } = handlerOn(storage);
  const path = `/media/${storage.item.token}`;
  const [past, present] = [NOW - 60_000, NOW].map((instant) => new Date(instant).toUTCString());
  const rows: [fields: Record<string, string>, status: number][] = [
    [{}, 200],
    [{ "If-None-Match": "*" }, 304],
    [{ "If-None-Match": "" }, 200],
    [{ "If-None-Match": '"x"' }, 200],
    [{ "If-None-Match": `"x", "${storage.item.digest}"` }, 304],
    [{ "If-Match": '"x"' }, 412],
    [{ "If-Match": `"${storage.item.digest}"` }, 200],
    [{ "If-Unmodified-Since": "Sun, 09 Sep 2001 01:46:39 GMT" }, 412],
    [{ "If-Modified-Since": String(present) }, 304],
    [{ "If-Modified-Since": String(past), "If-None-Match": "*" }, 304],
    [{ Range: "bytes=0-0" }, 200],
  ];
  for (const time of ["first", "second", "third"]) {
    for (const [fields, expected] of rows) {
      assertEquals(await status("HEAD", path, fields), expected, JSON.stringify([time, fields]));
      assertEquals(await status("OPTIONS", path, fields), 204);
    }
  }
  assertEquals(await status("GET", path), 503);
  assertEquals(storage.finds, 1);
});

Deno.test("nothing is prepared whose date goes with the time", async () => {
  const storage = new OneItem(); // published by a clock that is ahead
  const item = { ...storage.item, publishedAt: NOW + 60_000 };
  storage.finding = { state: "published", kind: "audio", item };
  const { clock, handle } = handlerOn(storage);
  const date = async () => {
    const request = new Request(`http://test/media/${item.token}`, { method: "HEAD" });
    return Date.parse((await handle(request)).headers.get("last-modified") ?? "");
  };
  assertEquals(await date(), NOW);
  clock.now += 2_000;
  assertEquals(await date(), NOW + 2_000);
});

Deno.test("what needs no storage is prepared, until the phase changes", async () => {
  const storage = new OneItem();
  const policy = definePolicy({
    deprecatedAt: "2026-01-01",
    sunsetAt: "2027-01-01",
    brownouts: [`${new Date(NOW + HOUR).toISOString()}/PT1H`],
  });
  const { clock, handle } = handlerOn(storage, { ...CONFIG, policy });
  const paths = {
    "/audio/x": 400,
    "/media/x": 400,
    "/audio/": 404,
    [`/media/${newToken()}/`]: 404,
  };
  for (const [path, expected] of Object.entries(paths)) {
    const request = () => new Request(`http://test${path}`, { method: "HEAD" });
    const first = await handle(request());
    const second = handle(request());
    assert(second instanceof Response, path); // no promise: it was there
    assertEquals([first.status, second.status], [expected, expected]);
  }
  assertEquals(storage.finds, 0);
  clock.now += HOUR;
  const refused = await handle(new Request("http://test/audio/x", { method: "HEAD" }));
  assertEquals(refused.status, 410);
});

Deno.test("a fault that a GET finds is told to the next HEAD", async () => {
  const storage = new OneItem();
  const { status } = handlerOn(storage);
  const path = `/media/${storage.item.token}`;
  assertEquals(await status("HEAD", path), 200);
  storage.find = () => Promise.reject(new StorageError("test", "content is missing"));
  assertEquals(await status("GET", path), 503);
  assertEquals(await status("HEAD", path), 503);
});

Deno.test("responses are prepared for unknown tokens too", async () => {
  const storage = new OneItem();
  storage.finding = { state: "unknown" };
  const { status } = handlerOn(storage);
  const path = `/media/${newToken()}`;
  for (let count = 0; count < 3; count++) assertEquals(await status("HEAD", path), 404);
  assertEquals(storage.finds, 1);
});
