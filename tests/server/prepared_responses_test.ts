import { assert, assertEquals } from "@std/assert";
import { assertSpyCalls, resolvesNext } from "@std/testing/mock";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { conditionsIn, prepareResponses } from "../../lib/server/prepared_responses.ts";
import { CachedStorage } from "../../lib/storage/cache.ts";
import { Generations, PERIOD_MS } from "../../lib/storage/generations.ts";
import type { Versioned } from "../../lib/storage/generations.ts";
import type { LookupResult } from "../../lib/storage/item.ts";
import type { CacheableStorage } from "../../lib/storage/storage.ts";
import { newToken } from "../../lib/storage/token.ts";
import { plainHandler, servedHandler } from "../support/handlers.ts";
import { openMemory } from "../support/memory_storage.ts";
import { OneItem } from "../support/one_item.ts";
import { underPolicy } from "../support/routes.ts";
import { CONFIG, publishTableItems, requestTable } from "./request_table.ts";

const NOW = Date.parse("2026-11-21T12:00:00Z");
const HOUR = 3_600_000;

Deno.test("a prepared response equals an unprepared one, for the whole table", async () => {
  await using subject = await openMemory();
  const rows = requestTable(await publishTableItems(subject));
  const common = { config: CONFIG, clock: () => NOW, log() {} };
  const slow = plainHandler({ ...common, storage: subject.storage });
  const cached = new CachedStorage(subject.storage, subject.storage.catalogue, common.clock);
  const fast = servedHandler({ ...common, storage: cached });
  for (const { what, target, fields, status } of rows) {
    // All but faults, checks of storage, documents, and requests that are too long.
    const isMade = ["/healthz", "/deprecation", "/openapi.json"].includes(target);
    const isPrepared = status < 500 && !isMade && target.length < 1000;
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
        // Reused from the second on; a GET gets a clone.
        if (time === "third" && method === "HEAD") {
          assertEquals(response === last, isPrepared, what);
        }
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

function handlerOn(storage: CacheableStorage & Versioned, config = CONFIG) {
  const clock = { now: NOW };
  const now = () => clock.now;
  const cached = new CachedStorage(storage, storage, now);
  const handle = servedHandler({ storage: cached, config, clock: now, log() {} });
  const status = async (method: string, path: string) =>
    (await handle(new Request(`http://test${path}`, { method }))).status;
  return { clock, handle, status };
}

Deno.test("a prepared response ends with the generation of its lookup", async () => {
  const storage = new OneItem();
  const { clock, status } = handlerOn(storage);
  const [media, audio] = [`/media/${storage.item.token}`, `/audio/${storage.item.token}`];
  assertEquals(await status("HEAD", media), 200);
  storage.result = { state: "unpublished", kind: "audio", unpublishedAt: NOW };

  clock.now += PERIOD_MS - 1;
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

Deno.test("a GET is prepared only if its content is small", async () => {
  for (const [length, opens] of [[16_384, 2], [16_385, 3]] as const) {
    const { item } = new OneItem();
    const storage = new OneItem({ open: () => Promise.resolve(new Uint8Array(length)) });
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
  for (const _ of ["first", "second", "prepared"]) assertEquals(await date(), NOW);
  clock.now += 2_000;
  assertEquals(await date(), NOW + 2_000);
});

Deno.test("after a GET fails on its content, so does the next HEAD", async () => {
  const fault = new StorageError("test", "content is missing");
  const { item, result } = new OneItem();
  const { status } = handlerOn(new OneItem({ find: resolvesNext<LookupResult>([result, fault]) }));
  const path = `/media/${item.token}`;
  for (const _ of ["first", "second", "prepared"]) assertEquals(await status("HEAD", path), 200);
  assertEquals(await status("GET", path), 503);
  assertEquals(await status("HEAD", path), 503);
});

Deno.test("an answer belongs to the phase in which its request arrived, but is fresh from when it is sent", async () => {
  const start = NOW + HOUR;
  const policy = definePolicy({
    deprecatedAt: "2026-01-01",
    sunsetAt: "2027-01-01",
    brownouts: [`${new Date(start).toISOString()}/PT1H`],
    brownoutStatus: 503,
  });
  for (const [arrived, sent, age] of [[-10_000, -2_000, 1], [-1, 1, 0]] as const) {
    const storage: OneItem = new OneItem({
      find() { // a slow lookup
        clock.now = start + sent;
        return Promise.resolve(storage.result);
      },
    });
    const { clock, handle } = handlerOn(storage, { ...CONFIG, ...underPolicy(policy) });
    const head = () =>
      handle(new Request(`http://test/audio/${storage.item.token}`, { method: "HEAD" }));
    clock.now = start + arrived;
    const { status, headers } = await head();
    assertEquals([status, headers.get("cache-control")?.split(",")[0]], [200, `max-age=${age}`]);
    clock.now = start + 1;
    assertEquals((await head()).status, 503); // the earlier response is not reused
  }
});

/** A handler whose responses depend on nothing but their generation. */
function preparedOn(
  source: Versioned = new OneItem(),
  clock = { now: NOW },
  respond = (_request: Request, _generations: Generations) => new Response(null),
) {
  const runs = { count: 0 };
  const generations = new Generations(source);
  const handle = prepareResponses((request) => {
    runs.count++;
    const response = respond(request, generations);
    return Promise.resolve({ response, reusableUntil: Infinity, counter: undefined });
  }, { generations, clock: () => clock.now });
  const head = async (path = "/", headers = {}) =>
    await handle(new Request(`http://test${path}`, { method: "HEAD", headers }));
  /** Returns whether the response to a HEAD was reused. */
  const isReused = async (path: string, headers = {}) => {
    const before = runs.count;
    await head(path, headers);
    return runs.count === before;
  };
  return { runs, handle, head, isReused };
}

Deno.test("prepareResponses() reuses a response after a pause, once it is known to be valid", async () => {
  const [source, clock] = [new OneItem(), { now: NOW }];
  const { runs, head } = preparedOn(source, clock);
  for (let sent = 0; sent < 3; sent++) {
    await head();
    clock.now += source.versionTtlMs;
  }
  assertEquals(runs.count, 2); // reused from the second on
  await Promise.all(Array.from({ length: 10 }, () => head())); // all at once after a pause
  assertEquals(runs.count, 2);
  source.currentVersion++;
  clock.now += source.versionTtlMs;
  await head();
  assertEquals(runs.count, 3);
});

Deno.test("prepareResponses() makes a new request wait for no storage that its response does not need", async () => {
  const version = () => new Promise<number>(() => {}); // storage that never answers
  const { head } = preparedOn({ versionTtlMs: 1_000, version });
  assertEquals((await head()).status, 200);
});

Deno.test("prepareResponses() reuses nothing from before the clock was set back", async () => {
  const [source, clock] = [new OneItem(), { now: NOW }];
  const { runs, head } = preparedOn(source, clock);
  for (const _ of ["first", "second", "prepared"]) await head();
  assertEquals(runs.count, 2);
  clock.now += source.versionTtlMs;
  source.currentVersion++;
  const later = head(); // waits for the version
  clock.now -= HOUR;
  const [afterwards] = await Promise.all([later, head()]);
  assert(await head() !== afterwards);
  const before = runs.count;
  clock.now += source.versionTtlMs; // what was made at the earlier time is reused
  await head();
  assertEquals(runs.count, before);
});

Deno.test("prepareResponses() reuses no response whose generation ended while it was made", async () => {
  const { isReused } = preparedOn(new OneItem(), { now: NOW }, (_request, generations) => {
    generations.end();
    return new Response(null);
  });
  for (const _ of ["first", "second", "third"]) assertEquals(await isReused("/"), false);
});

Deno.test("prepareResponses() reuses a limited number of responses, and none with a long key", async () => {
  const { isReused } = preparedOn();
  const long = "x".repeat(1_024);
  for (const _ of ["first", "second", "third"]) {
    assertEquals(await isReused(`/${long}`), false);
    assertEquals(await isReused("/", { "If-None-Match": `"${long}"` }), false);
  }
  const twice = [await isReused("/"), await isReused("/")];
  assertEquals([...twice, await isReused("/")], [false, false, true]);
  for (let index = 0; index < 20_000; index++) {
    await isReused(`/${index}`);
    await isReused(`/${index}`);
  }
  let count = 0;
  for (let index = 20_000; index-- > 0 && await isReused(`/${index}`);) count++; // the latest first
  assert(count >= 2_500 && count <= 5_000, `${count} are reused`);
});

Deno.test("prepareResponses() distinguishes requests by everything that they depend on", async () => {
  const textOf = ({ method, url, headers }: Request) =>
    JSON.stringify([method, headers.get("host"), url, headers.get("if-match")]);
  const { runs, handle } = preparedOn(
    new OneItem(),
    { now: NOW },
    (request) => new Response(null, { headers: { "X-Text": textOf(request) } }),
  );
  const requests: [method: string, url: string, fields: Record<string, string>][] = [
    ["GET", "http://a/b", { Host: "a" }],
    ["GET", "http://a/b", { Host: "a/b" }], // from which Deno makes the same URL
    ["GET", "http://a/b", { Host: "a", "If-Match": "*" }],
    ["GET", "http://a/b?c", { Host: "a" }],
    ["HEAD", "http://a/b", { Host: "a" }],
  ];
  const send = async () => {
    for (const [method, url, fields] of requests) {
      const request = new Request(url, { method });
      // The constructor leaves out Host, which Deno.serve does not.
      Object.defineProperty(request, "headers", { value: new Headers(fields) });
      assertEquals((await handle(request)).headers.get("X-Text"), textOf(request));
    }
  };
  await send();
  await send();
  const before = runs.count;
  await send();
  assertEquals(runs.count, before); // all of them are reused
});

Deno.test("conditionsIn() returns the same key for the same conditions only", () => {
  const [date, later] = ["Fri, 20 Nov 2026 00:00:00 GMT", "Fri, 20 Nov 2026 00:00:01 GMT"];
  const kinds: Record<string, string>[] = [
    {},
    { "If-None-Match": "" },
    { "If-None-Match": "null" },
    { "If-None-Match": '"a"' },
    { "If-None-Match": '"a", "b"' },
    { "If-Match": '"a"' },
    { "If-Match": '"a"', "If-None-Match": '"a"' },
    { "If-Match": '"a" 0 "b"' },
    { "If-Modified-Since": date },
    { "If-Modified-Since": later },
    { "If-Unmodified-Since": date },
    { "If-Modified-Since": date, "If-Unmodified-Since": date },
    { "If-Modified-Since": date, "If-None-Match": "" },
    { "If-Modified-Since": date, "If-None-Match": "*" },
    { "If-None-Match": `*if-modified-since ${date}` }, // one condition that imitates two
  ];
  const texts = kinds.map((fields) => conditionsIn(new Headers(fields)));
  assertEquals(new Set(texts).size, kinds.length);
  assertEquals(texts[0], "");

  // If-Range applies to Range, which a HEAD ignores (RFC 9110 §14.2).
  const others = { "If-Range": '"x"', Range: "bytes=0-1", Accept: "*/*" };
  for (const [index, fields] of kinds.entries()) {
    const again = new Headers([...Object.entries(others), ...Object.entries(fields).toReversed()]);
    assertEquals(conditionsIn(again), texts[index]);
  }
});
