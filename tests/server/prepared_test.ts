import { assert, assertEquals, assertMatch } from "@std/assert";
import { assertSpyCalls, resolvesNext } from "@std/testing/mock";
import { PreparedResponses } from "../../lib/server/prepared.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { newToken } from "../../lib/storage/token.ts";
import { CachedStorage } from "../../lib/storage/cache.ts";
import { type LookupResult, type Storage, StorageError } from "../../lib/storage/storage.ts";
import { createHandler } from "../../main.ts";
import { CONFIG, publishTableItems, requestTable } from "./request_table.ts";
import { openMemory } from "../support/memory_storage.ts";
import { OneItem } from "../support/one_item.ts";

const NOW = Date.parse("2026-11-21T12:00:00Z");
const TTL = 5_000;
const HOUR = 3_600_000;

Deno.test("a prepared response equals an unprepared one, for the whole table", async () => {
  await using subject = openMemory();
  const rows = requestTable(await publishTableItems(subject));
  const common = { config: CONFIG, now: () => NOW, log() {} };
  const slow = createHandler({ ...common, storage: subject.storage });
  const cached = new CachedStorage(subject.storage, TTL);
  const fast = createHandler({ ...common, storage: cached });
  for (const { what, target, fields, status } of rows) {
    // All but faults, checks of storage, and requests too long to keep.
    const isPrepared = status < 500 && target !== "/healthz" && target.length < 1000;
    for (const method of ["HEAD", "GET"]) {
      const request = () => {
        const url = URL.canParse(target) ? target : `http://test${target}`;
        return new Request(url, { method, headers: fields ?? {} });
      };
      const expected = await slow(request());
      const content = await expected.bytes();
      let last: Response | undefined;
      for (const time of ["first", "second", "third"]) {
        const response = await fast(request());
        // A GET gets a clone of the prepared response.
        if (last && method === "HEAD") assertEquals(response === last, isPrepared, what);
        last = response;
        const { status, headers } = response;
        assertEquals(
          [status, [...headers], status < 500 ? await response.bytes() : content],
          [expected.status, [...expected.headers], content],
          `${method} ${what}, ${time}`,
        );
      }
    }
  }
});

function handlerOn(storage: Storage, config = CONFIG) {
  const clock = { now: NOW };
  const now = () => clock.now;
  const cached = new CachedStorage(storage, TTL);
  const handle = createHandler({ storage: cached, config, now, log() {} });
  const status = async (method: string, path: string, headers = {}) =>
    (await handle(new Request(`http://test${path}`, { method, headers }))).status;
  return { clock, handle, status };
}

Deno.test("a prepared response lasts no longer than its lookup", async () => {
  const storage = new OneItem();
  const { clock, status } = handlerOn(storage);
  const [media, audio] = [`/media/${storage.item.token}`, `/audio/${storage.item.token}`];
  assertEquals(await status("HEAD", media), 200);
  storage.result = { state: "unpublished", kind: "audio", unpublishedAt: NOW };

  clock.now += TTL - 1;
  assertEquals(await status("HEAD", media), 200);
  assertEquals(await status("HEAD", audio), 200); // just prepared, from the same lookup
  assertSpyCalls(storage.find, 1);
  clock.now += 1;
  assertEquals(await status("HEAD", audio), 410);
  assertEquals(await status("HEAD", media), 410);
  assertSpyCalls(storage.find, 2);
});

Deno.test("a prepared response is not used after its lookup is evicted", async () => {
  const { item, result: published } = new OneItem();
  const unpublished: LookupResult = { state: "unpublished", kind: "audio", unpublishedAt: NOW };
  const changes: [before: LookupResult, after: LookupResult][] = [
    [published, unpublished],
    [{ state: "unknown" }, published],
  ];
  for (const [before, after] of changes) {
    const storage = new OneItem({ open: () => Promise.resolve(ReadableStream.from([])) });
    const { status } = handlerOn(storage);
    storage.result = before;
    for (let count = 0; count < 12_000; count++) {
      if (count % 1_000 === 0) await status("HEAD", `/media/${item.token}`);
      await status("HEAD", `/media/${newToken()}`);
    }
    storage.result = after; // and the version is not due for a check
    const get = await status("GET", `/media/${item.token}`);
    assertEquals(await status("HEAD", `/media/${item.token}`), get);
  }
});

Deno.test("a prepared response is not used after the clock is set back", async () => {
  const storage = new OneItem();
  const { clock, status } = handlerOn(storage);
  assertEquals(await status("HEAD", `/media/${storage.item.token}`), 200);
  storage.result = { state: "unknown" };
  clock.now -= 3_600_000;
  assertEquals(await status("HEAD", `/media/${storage.item.token}`), 404);
});

Deno.test("a prepared response is used only for the same method and preconditions", async () => {
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
  assertSpyCalls(storage.find, 1);
});

Deno.test("a GET of the whole is prepared with its content, a range is not", async () => {
  const content = Uint8Array.from({ length: 1_000 }, (_, index) => index % 251);
  const { item } = new OneItem();
  const storage = new OneItem({
    open: (_, { first, last } = { first: 0, last: 999 }) => content.slice(first, last + 1),
  });
  storage.result = { state: "published", kind: "audio", item: { ...item, length: 1_000 } };
  const { handle } = handlerOn(storage);
  const etag = `"${item.digest}"`;
  const rows: [fields: Record<string, string>, status: number, first: number, end: number][] = [
    [{}, 200, 0, 1_000],
    [{ Range: "bytes=0-9" }, 206, 0, 10],
    [{ Range: "bytes=10-19" }, 206, 10, 20],
    [{ Range: "bytes=10-19", "If-Range": etag }, 206, 10, 20],
    [{ Range: "bytes=10-19", "If-Range": '"x"' }, 200, 0, 1_000],
    [{ "If-None-Match": etag }, 304, 0, 0],
  ];
  for (const time of ["first", "second", "third"]) {
    for (const [headers, status, first, end] of rows) {
      const response = await handle(new Request(`http://test/media/${item.token}`, { headers }));
      assertEquals(
        [response.status, await response.bytes()],
        [status, content.slice(first, end)],
        `${time}: ${JSON.stringify(headers)}`,
      );
    }
  }
  assertSpyCalls(storage.open, 1 + 4 * 3);
});

Deno.test("a GET is prepared only if its content is small", async () => {
  for (const [length, opens] of [[16_384, 1], [16_385, 3]] as const) {
    const { item } = new OneItem();
    const storage = new OneItem({ open: () => new Uint8Array(length) });
    storage.result = { state: "published", kind: "audio", item: { ...item, length } };
    const { handle } = handlerOn(storage);
    for (let time = 0; time < 3; time++) {
      const response = await handle(new Request(`http://test/media/${item.token}`));
      assertEquals((await response.bytes()).length, length);
    }
    assertSpyCalls(storage.open, opens);
  }
});

Deno.test("a response whose date depends on the clock is not prepared", async () => {
  const storage = new OneItem(); // the publisher's clock was ahead
  const item = { ...storage.item, publishedAt: NOW + 60_000 };
  storage.result = { state: "published", kind: "audio", item };
  const { clock, handle } = handlerOn(storage);
  const date = async () => {
    const request = new Request(`http://test/media/${item.token}`, { method: "HEAD" });
    return Date.parse((await handle(request)).headers.get("last-modified") ?? "");
  };
  assertEquals(await date(), NOW);
  clock.now += 2_000;
  assertEquals(await date(), NOW + 2_000);
});

Deno.test("responses that need no storage are prepared until the phase changes", async () => {
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
    const second = await handle(request());
    assert(second === first, path); // the same object: it was prepared
    assertEquals([first.status, second.status], [expected, expected]);
  }
  assertSpyCalls(storage.find, 0);
  clock.now += HOUR;
  const refused = await handle(new Request("http://test/audio/x", { method: "HEAD" }));
  assertEquals(refused.status, 410);
});

Deno.test("after a GET fails on its content, so does the next HEAD", async () => {
  const fault = new StorageError("test", "content is missing");
  const { item, result } = new OneItem();
  const { status } = handlerOn(new OneItem({ find: resolvesNext([result, fault]) }));
  const path = `/media/${item.token}`;
  assertEquals(await status("HEAD", path), 200);
  assertEquals(await status("GET", path), 503);
  assertEquals(await status("HEAD", path), 503);
});

Deno.test("every lookup result is prepared: published, unpublished, unknown, and the other kind", async () => {
  const results: [result: LookupResult | undefined, route: string, status: number][] = [
    [undefined, "media", 200],
    [{ state: "unknown" }, "media", 404],
    [undefined, "video", 404],
    [{ state: "unpublished", kind: "audio", unpublishedAt: NOW }, "media", 410],
  ];
  for (const [result, route, status] of results) {
    const storage = new OneItem();
    if (result !== undefined) storage.result = result;
    const { handle } = handlerOn(storage);
    const url = `http://test/${route}/${storage.item.token}`;
    const first = await handle(new Request(url, { method: "HEAD" }));
    const second = await handle(new Request(url, { method: "HEAD" }));
    assert(second === first, route); // the same object: it was prepared
    assertEquals([first.status, second.status], [status, status]);
  }
});

Deno.test("an answer belongs to the phase in which its request arrived", async () => {
  const start = NOW + HOUR;
  const policy = definePolicy({
    deprecatedAt: "2026-01-01",
    sunsetAt: "2027-01-01",
    brownouts: [`${new Date(start).toISOString()}/PT1H`],
  });
  const storage: OneItem = new OneItem({
    find() { // a slow lookup, during which the brownout begins
      clock.now = start + 1;
      return Promise.resolve(storage.result);
    },
  });
  const { clock, handle } = handlerOn(storage, { ...CONFIG, policy });
  const head = () =>
    handle(new Request(`http://test/audio/${storage.item.token}`, { method: "HEAD" }));
  clock.now = start - 1;
  const { status, headers } = await head();
  assertEquals(status, 200);
  assertMatch(headers.get("cache-control") ?? "", /^max-age=0,/);
  assertEquals((await head()).status, 410); // the earlier response was not kept
});

Deno.test("PreparedResponses keeps a limited number, and none with a long key", () => {
  const prepared = new PreparedResponses();
  const response = new Response(null);
  const keep = (request: Request) =>
    prepared.keep(request, null, {
      response,
      counter: undefined,
      freshUntil: Infinity,
      generation: 0,
    });
  const requestOf = (path: string, headers = {}) =>
    new Request(`http://test${path}`, { method: "HEAD", headers });
  const long = "x".repeat(1_024);
  for (const request of [requestOf(`/${long}`), requestOf(`/?${long}`)]) {
    keep(request);
    assertEquals(prepared.find(request, NOW), undefined);
  }
  const conditional = requestOf("/", { "If-None-Match": `"${long}"` });
  keep(conditional);
  assertEquals(prepared.find(conditional, NOW), undefined);

  const kept = () => {
    let count = 0;
    for (let index = 0; index < 20_000; index++) {
      if (prepared.find(requestOf(`/${index}`), NOW) !== undefined) count++;
    }
    return count;
  };
  for (let index = 0; index < 20_000; index++) keep(requestOf(`/${index}`));
  const count = kept();
  assert(count >= 2_500 && count <= 5_000, `${count} are kept`);
  prepared.clear();
  assertEquals(kept(), 0);
});
