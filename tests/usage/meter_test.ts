import { assert, assertEquals, assertMatch } from "@std/assert";
import { assertSpyCalls } from "@std/testing/mock";
import { newToken } from "../../lib/storage/token.ts";
import { MAX_NEW_NAMES_A_DAY } from "../../lib/usage/client_names.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { AnswerClass } from "../../lib/server/counting.ts";
import { impactOf, UsageMeter } from "../../lib/usage/meter.ts";
import { OTHER } from "../../lib/http/client_name.ts";
import type { Impact } from "../../lib/storage/ledger/records.ts";
import { CachedStorage } from "../../lib/storage/cache.ts";
import { servedHandler } from "../support/handlers.ts";
import { CONFIG, publishTableItems } from "../server/request_table.ts";
import { openMemory } from "../support/memory_storage.ts";
import { failing } from "../support/one_item.ts";
import { ANSWER, countOne, HOUR, NOON, ROW } from "../support/counted_call.ts";

Deno.test("impactOf() is breaking exactly for calls that the removal breaks", () => {
  const rows: [change: Partial<AnswerClass>, impact: "breaking" | "none"][] = [
    ...[200, 206, 304, 307, 412, 416, 500, 502, 503].map((status) =>
      [{ status }, "breaking"] as [Partial<AnswerClass>, "breaking"]
    ),
    ...[404, 410].map((status) => [{ status }, "none"] as [Partial<AnswerClass>, "none"]),
    [{ method: "GET" }, "breaking"],
    [{ method: "OPTIONS" }, "none"],
    [{ method: "POST", status: 405 }, "none"],
    [{ status: 400, hasToken: false }, "none"],
    [{ phase: "announced" }, "breaking"],
    [{ phase: "brownout", status: 503 }, "breaking"],
    [{ phase: "brownout", status: 410 }, "breaking"],
    [{ phase: "brownout", status: 503, hasToken: false }, "none"],
    [{ phase: "brownout", method: "OPTIONS" }, "none"],
    [{ phase: "removed", status: 410 }, "breaking"],
    [{ phase: "removed", status: 308 }, "breaking"],
    [{ phase: "removed", status: 410, hasToken: false }, "none"],
    [{ phase: "removed", status: 405, method: "POST" }, "none"],
  ];
  for (const [change, impact] of rows) {
    assertEquals(impactOf({ ...ANSWER, ...change }), impact, JSON.stringify(change));
  }
});

Deno.test("UsageMeter counts by day, route, method, phase, status, impact and client", () => {
  const meter = new UsageMeter();
  countOne(meter, { userAgent: "curl/1" }, NOON);
  countOne(meter, { userAgent: "curl/2" }, NOON + 5);
  countOne(meter, { userAgent: "curl/2", status: 206 }, NOON + 9);
  countOne(meter, { userAgent: null, status: 404 }, NOON + 1);
  countOne(meter, { userAgent: null, status: 412 }, NOON + 2);
  countOne(meter, { userAgent: null, method: "BREW", status: 405 }, NOON + 3);
  countOne(meter, { userAgent: "curl/2", phase: "brownout" }, NOON + 12 * HOUR);
  const sorted = meter.take(NOON).rows.toSorted((a, b) => a.first - b.first);
  const at = (first: number, last = first) => ({ first, last });
  const none = { ...ROW, client: "(no User-Agent)", status: "4xx", calls: 1 } as const;
  assertEquals(sorted, [
    { ...ROW, client: "app curl", calls: 3, ...at(NOON, NOON + 9) },
    { ...none, impact: "none", ...at(NOON + 1) },
    { ...none, ...at(NOON + 2) },
    { ...none, impact: "none", method: "(other)", ...at(NOON + 3) },
    {
      ...{ ...ROW, client: "app curl", phase: "brownout", day: "2027-02-02", calls: 1 },
      ...at(NOON + 12 * HOUR),
    },
  ]);
  assertEquals(meter.take(NOON), { rows: [], releases: [] });
});

Deno.test("UsageMeter bounds its memory of hostile names", () => {
  const meter = new UsageMeter();
  const hostile = (index: number) =>
    [
      `client-${index}/1`,
      `\x1b]0;${index}\x07`,
      `<img src=x onerror=${index}>`,
      `c${index}${"x".repeat(8000)}`,
      `=cmd|'/c calc'!A${index}`,
    ][index % 5] as string;
  for (let index = 0; index < 100_000; index++) {
    const method = index % 7 === 0 ? `METHOD${index}` : "GET";
    countOne(meter, { method, userAgent: hostile(index) }, NOON);
  }
  for (const method of ["GET", "METHOD"]) { // before a flush
    const { rows } = meter.counterOf({ ...ANSWER, method });
    assert(rows.size <= 2_002, `${rows.size} rows`);
  }
  const { rows } = meter.take(NOON);
  assert(rows.length <= 2 * (MAX_NEW_NAMES_A_DAY + 2), `${rows.length} rows`);
  assertEquals(rows.reduce((sum, { calls }) => sum + calls, 0), 100_000);
  for (const { client } of rows) assertMatch(client, /^[\x20-\x7e]{1,68}$/);
});

Deno.test("UsageMeter counts the releases of apps, in calls that the removal breaks", () => {
  const meter = new UsageMeter("x-consumer");
  for (const userAgent of ["App/2", "App/1", "App/2", "Pod-491511/1", "Mozilla/5.0 (X11)"]) {
    countOne(meter, { userAgent }, NOON);
  }
  countOne(meter, { userAgent: "App/3", status: 404 }, NOON);
  countOne(meter, { userAgent: "App/2", status: 206, method: "GET" }, NOON + 9);
  const browser = { "User-Agent": "Mozilla/5.0 Chrome/120.0", Origin: "https://a.test" };
  meter.counterOf(ANSWER).count(new Headers(browser), NOON);
  const consumer = { "User-Agent": "App/4", "X-Consumer": "team" };
  meter.counterOf(ANSWER).count(new Headers(consumer), NOON);
  const { day } = ROW;
  assertEquals(meter.take(NOON).releases, [
    { day, client: "app App", release: "2", calls: 3, last: NOON + 9 },
    { day, client: "app App", release: "1", calls: 1, last: NOON },
    { day, client: "app Mozilla", release: "5.0", calls: 1, last: NOON },
  ]);
});

Deno.test("UsageMeter bounds what it records of many names with a release each", () => {
  const meter = new UsageMeter();
  const day = { rows: new Set<string>(), releases: new Set<string>() };
  for (let index = 0; index < 120_000; index++) {
    countOne(meter, { userAgent: `App${index % 97}-${index}/${index % 1000}.${index}` }, NOON);
    if (index % 10_000 < 9_999) continue;
    const { rows, releases } = meter.take(NOON);
    const names = new Set(rows.map(({ client }) => client));
    for (const { client, release } of releases) {
      assert(names.has(client) && client !== OTHER, client);
      day.releases.add(`${client} ${release}`);
    }
    for (const { client } of rows) day.rows.add(client);
  }
  assert(day.rows.size <= MAX_NEW_NAMES_A_DAY + 1, `${day.rows.size} names`);
  assert(day.releases.size <= MAX_NEW_NAMES_A_DAY, `${day.releases.size} releases`);
  assert(day.releases.size > 100, "there are some");
});

Deno.test("createHandler() counts every answer of the deprecated routes, prepared ones included", async () => {
  await using subject = await openMemory();
  const { audio, video, linkedAudio, unpublished } = await publishTableItems(subject);
  const meter = new UsageMeter();
  // Responses are prepared for lookup results that the cache may reuse.
  const storage = new CachedStorage(subject.storage, subject.storage.catalogue);
  const handle = servedHandler({ storage, config: CONFIG, clock: () => NOON, log() {}, meter });
  const known = newToken();
  const requests: [method: string, path: string, count: number][] = [
    ["HEAD", `/audio/${audio.token}`, 5],
    ["GET", `/audio/${audio.token}`, 2],
    ["HEAD", `/audio/${linkedAudio.token}`, 4],
    ["GET", `/audio/${linkedAudio.token}`, 1],
    ["HEAD", `/media/${linkedAudio.token}`, 1],
    ["HEAD", `/video/${video.token}`, 1],
    ["OPTIONS", `/video/${video.token}`, 1],
    ["POST", "/video/x", 1],
    ["HEAD", "/video/x", 3],
    ["HEAD", `/audio/${known}`, 3],
    ["HEAD", `/audio/${unpublished}`, 2],
    ["HEAD", `/media/${audio.token}`, 9],
    ["GET", "/deprecation", 9],
    ["GET", "/nowhere", 9],
  ];
  const responses = new Map<Response, number>();
  for (const [method, path, count] of requests) {
    for (let sent = 0; sent < count; sent++) {
      const headers = { "User-Agent": "test/1" };
      const response = await handle(new Request(`http://test${path}`, { method, headers }));
      await response.body?.cancel();
      responses.set(response, (responses.get(response) ?? 0) + 1);
    }
  }
  // Equal HEADs share one object from the second on, because they were prepared.
  assertEquals([...responses.values()].filter((count) => count > 1).toSorted(), [2, 2, 3, 4, 8]);
  const counted = meter.take(NOON).rows.map(({ route, method, status, impact, calls }) =>
    `${method} ${route} ${status} ${impact}: ${calls}`
  );
  assertEquals(counted.toSorted(), [
    "(other) /video/:token 4xx none: 1",
    "GET /audio/:token 2xx breaking: 2",
    "GET /audio/:token 3xx breaking: 1",
    "HEAD /audio/:token 2xx breaking: 5",
    "HEAD /audio/:token 3xx breaking: 4",
    "HEAD /audio/:token 4xx none: 5",
    "HEAD /video/:token 2xx breaking: 1",
    "HEAD /video/:token 4xx none: 3",
    "OPTIONS /video/:token 2xx none: 1",
  ]);
});

Deno.test("createHandler() counts every valid token in a brownout, and looks nothing up", async () => {
  for (const brownoutStatus of [503, 410] as const) {
    const meter = new UsageMeter();
    const policy = definePolicy({
      deprecatedAt: "2027-01-01",
      sunsetAt: "2027-06-01",
      brownouts: ["2027-02-01T11:00Z/PT2H"],
      brownoutStatus,
    });
    const storage = failing(new Error("Not needed"));
    const options = { config: { ...CONFIG, policy }, clock: () => NOON, log() {}, meter };
    const handle = servedHandler({ storage: new CachedStorage(storage, storage), ...options });
    const token = newToken();
    const rows: [target: string, impact: Impact][] = [
      [token, "breaking"],
      [token.toUpperCase(), "breaking"],
      ["malformed", "none"],
    ];
    for (const [target, impact] of rows) {
      for (const method of ["HEAD", "HEAD", "HEAD", "GET"]) { // prepared responses among them
        const response = await handle(new Request(`http://test/audio/${target}`, { method }));
        assertEquals(response.status, brownoutStatus, target);
        assertMatch(response.headers.get("Retry-After") ?? "", / 13:00:00 GMT$/);
        await response.body?.cancel();
      }
      const counted = meter.take(NOON).rows.map(({ phase, status, impact, method, calls }) =>
        `${phase} ${status} ${impact} ${method} ${calls}`
      );
      const status = `${brownoutStatus}`.replace(/..$/, "xx");
      const expected = ["GET 1", "HEAD 3"].map((calls) => `brownout ${status} ${impact} ${calls}`);
      assertEquals(counted.toSorted(), expected, target);
    }
    for (const method of [storage.find, storage.open, storage.check]) assertSpyCalls(method, 0);
  }
});
