import { assert, assertEquals, assertMatch } from "@std/assert";
import { assertSpyCalls } from "@std/testing/mock";
import { OTHER } from "../../../lib/lifecycle/user_agent.ts";
import type { Moment } from "../../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { CachedStorage } from "../../../lib/storage/cache.ts";
import { newToken } from "../../../lib/storage/token.ts";
import { MAX_NEW_NAMES_A_DAY, MAX_PROBES_A_DAY } from "../../../lib/usage/record/client_names.ts";
import { UsageMeter } from "../../../lib/usage/record/meter.ts";
import type { Impact, UsageCount } from "../../../lib/usage/record/records.ts";
import { CONFIG, publishTableItems } from "../../server/request_table.ts";
import { COUNT, countOne, NOON } from "../../support/counted_call.ts";
import { servedHandler } from "../../support/handlers.ts";
import { openMemory } from "../../support/memory_storage.ts";
import { failing } from "../../support/one_item.ts";
import { underPolicy } from "../../support/routes.ts";

const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-01",
  brownouts: ["2027-02-01T09:00Z/PT1H", "2027-02-01T11:00Z/PT2H"],
});
const BROWNOUT: Moment = { phase: "brownout", until: NOON };

Deno.test("UsageMeter counts by route, method, phase, brownout, status, impact and client", () => {
  const meter = new UsageMeter();
  const [first, second] = POLICY.brownouts.map(({ end }) => ({ phase: "brownout", until: end }));
  countOne(meter, { userAgent: "curl/1" });
  countOne(meter, { userAgent: "curl/1" });
  countOne(meter, { userAgent: "curl/1", status: 206 });
  countOne(meter, { userAgent: null, status: 404, breaks: false });
  countOne(meter, { userAgent: null, status: 412 });
  countOne(meter, { userAgent: null, method: "BREW", status: 405, breaks: false });
  countOne(meter, { userAgent: "curl/1", moment: first as Moment, policy: POLICY });
  countOne(meter, { userAgent: "curl/1", moment: second as Moment, policy: POLICY });
  countOne(meter, { userAgent: "curl/1", route: "/video/:token" });
  const none = { ...COUNT, client: "(no User-Agent)", status: "404", calls: 1 } as const;
  const curl = { ...COUNT, client: "app curl", release: "1", calls: 1 } as const;
  const brownout = { ...curl, phase: "brownout" } as const;
  assertEquals(meter.take(NOON), [
    { ...curl, calls: 3 },
    { ...none, impact: "none" },
    { ...none, status: "4xx" },
    { ...none, status: "405", impact: "none", method: "(other)" },
    { ...brownout, brownout: "2027-02-01T09:00:00Z" },
    { ...brownout, brownout: "2027-02-01T11:00:00Z" },
    { ...curl, route: "/video/:token" },
  ]);
  assertEquals(meter.take(NOON), []);
});

Deno.test("UsageMeter records the release of an app, or the app of a site or id, where removal breaks a call", () => {
  const meter = new UsageMeter("x-consumer");
  for (const userAgent of ["App/2", "App/1", "App/2", "Pod-491511/1"]) {
    countOne(meter, { userAgent });
  }
  countOne(meter, { userAgent: "App/3", status: 404, breaks: false });
  countOne(meter, { userAgent: "App/2", method: "GET" });
  countOne(meter, { userAgent: "Mozilla/5.0 Chrome/120.0" }, { Origin: "https://a.test" });
  countOne(meter, { userAgent: "okhttp/4.9" }, { "X-Consumer": "team" });
  const counted = meter.take(NOON).map(({ client, release, calls }) => [client, release, calls]);
  assertEquals(counted, [
    ["app App", "2", 2],
    ["app App", "1", 1],
    ["(other)", "", 1],
    ["site a.test", "Chrome", 1],
    ["id team", "okhttp", 1],
    ["app App", "", 1],
    ["app App", "2", 1],
  ]);
});

Deno.test("UsageMeter counts probes as no calls, and as no new names", () => {
  const meter = new UsageMeter();
  for (let index = 0; index < 1_000; index++) {
    const name = index.toString(16).padStart(16, "0");
    countOne(meter, { userAgent: `App-${index}/1` }, { "Lifecycle-Probe": name });
  }
  countOne(meter, { userAgent: "curl" }, { "Lifecycle-Probe": "anything" });
  countOne(meter, { userAgent: "media-head-check", moment: BROWNOUT, status: 503 });
  for (let index = 0; index < MAX_NEW_NAMES_A_DAY; index++) {
    countOne(meter, { userAgent: `New-${index}` });
  }
  const counts = meter.take(NOON);
  const probes = counts.filter(({ client }) => client.startsWith("probe "));
  assert(probes.every(({ impact, release }) => impact === "none" && release === ""));
  assertEquals(probes.length, MAX_PROBES_A_DAY + 2);
  const callsOf = (name: string) => probes.find(({ client }) => client === name)?.calls;
  assertEquals(
    ["0".repeat(16), "(other)", "media-head-check"].map((name) => callsOf(`probe ${name}`)),
    [
      1,
      1_000 - MAX_PROBES_A_DAY + 1,
      1,
    ],
  );
  assertEquals(counts.length - probes.length, MAX_NEW_NAMES_A_DAY);
});

Deno.test("UsageMeter bounds its memory of hostile names and releases", () => {
  const meter = new UsageMeter();
  const hostile = (index: number) =>
    [
      `client-${index}/1`,
      `\x1b]0;${index}\x07`,
      `<img src=x onerror=${index}>`,
      `c${index}${"x".repeat(8000)}`,
      `App${index % 97}/${index % 1000}.${index}`,
    ][index % 5] as string;
  for (let index = 0; index < 20_000; index++) {
    const method = index % 7 === 0 ? `METHOD${index}` : "GET";
    countOne(meter, { method, userAgent: hostile(index) });
  }
  const counts = meter.take(NOON);
  assert(counts.length <= 2 * 4_002, `${counts.length} rows`);
  assertEquals(counts.reduce((sum, { calls }) => sum + calls, 0), 20_000);
  const distinct = (of: (count: UsageCount) => string) => new Set(counts.map(of));
  const names = distinct(({ client }) => client);
  assert(names.size <= MAX_NEW_NAMES_A_DAY + 1, `${names.size} names`);
  for (const name of names) assertMatch(name, /^[\x20-\x7e]{1,68}$/);
  const pairs = distinct(({ client, release }) => `${client} ${release}`);
  assert(pairs.size > names.size + 100, "there are some releases");
  assert(counts.every(({ client, release }) => client !== OTHER || release === ""));
});

Deno.test("createHandler() counts every answer of the deprecated routes, prepared ones included", async () => {
  await using subject = await openMemory();
  const { audio, video, linkedAudio, unpublished } = await publishTableItems(subject);
  const meter = new UsageMeter();
  const recorder = { meter, fault: undefined };
  // Responses are prepared for lookup results that the cache may reuse.
  const storage = new CachedStorage(subject.storage, subject.storage.catalogue, Date.now);
  const handle = servedHandler({ storage, config: CONFIG, clock: () => NOON, log() {}, recorder });
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
  const counted = meter.take(NOON).map(({ route, method, status, impact, calls }) =>
    `${method} ${route} ${status} ${impact}: ${calls}`
  );
  assertEquals(counted.toSorted(), [
    "GET /audio/:token 2xx breaking: 2",
    "GET /audio/:token 3xx breaking: 1",
    "HEAD /audio/:token 2xx breaking: 5",
    "HEAD /audio/:token 3xx breaking: 4",
    "HEAD /audio/:token 404 none: 3",
    "HEAD /audio/:token 410 none: 2",
    "HEAD /video/:token 2xx breaking: 1",
    "HEAD /video/:token 400 none: 3",
    "OPTIONS /video/:token 2xx none: 1",
    "POST /video/:token 405 none: 1",
  ]);
});

Deno.test("createHandler() counts every valid token in a brownout, and looks nothing up", async () => {
  for (const brownoutStatus of [503, 410] as const) {
    const meter = new UsageMeter();
    const recorder = { meter, fault: undefined };
    const brownouts = POLICY.brownouts.map((one) => ({ ...one, status: brownoutStatus }));
    const policy = { ...POLICY, brownouts };
    const storage = failing(new Error("Not needed"));
    const options = {
      config: { ...CONFIG, ...underPolicy(policy) },
      clock: () => NOON,
      log() {},
      recorder,
    };
    const handle = servedHandler({
      storage: new CachedStorage(storage, storage, Date.now),
      ...options,
    });
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
      const counted = meter.take(NOON).map(({ brownout, status, impact, method, calls }) =>
        `${brownout} ${status} ${impact} ${method} ${calls}`
      );
      const isExact = brownoutStatus === 410 && impact === "none";
      const status = isExact ? "410" : `${brownoutStatus}`.replace(/..$/, "xx");
      const expected = ["GET 1", "HEAD 3"].map((calls) =>
        `2027-02-01T11:00:00Z ${status} ${impact} ${calls}`
      );
      assertEquals(counted.toSorted(), expected, target);
    }
    for (const method of [storage.find, storage.open, storage.check]) assertSpyCalls(method, 0);
  }
});
