import { metrics } from "@opentelemetry/api";
import { assert, assertEquals, assertMatch } from "@std/assert";
import fc from "../support/fast_check.ts";
import { newToken } from "../../lib/storage/token.ts";
import { clientOf, MAX_NEW_CLIENTS } from "../../lib/usage/client_names.ts";
import { definePolicy } from "../../lib/lifecycle/policy.ts";
import { recordUsage } from "../../lib/usage/recorder.ts";
import type { AnswerClass } from "../../lib/server/meter.ts";
import { impactOf, UsageMeter } from "../../lib/usage/meter.ts";
import type { Ledger, Usage, Watch } from "../../lib/storage/ledger.ts";
import { StorageError } from "../../lib/storage/storage.ts";
import { createHandler } from "../../main.ts";
import { CachedStorage } from "../../lib/storage/cache.ts";
import { CONFIG, publishTableItems } from "../server/request_table.ts";
import { openMemory } from "../support/memory_storage.ts";
import { openEngine } from "../../lib/storage/kv/engine.ts";
import { MemoryLedger } from "../../lib/storage/memory/ledger.ts";

const NOON = Date.parse("2027-02-01T12:00:00Z");
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ANSWER = {
  route: "/audio/:token",
  method: "HEAD",
  phase: "deprecated",
  status: 200,
  hasToken: true,
} as const;
const ROW = {
  day: "2027-02-01",
  route: "/audio/:token",
  method: "HEAD",
  phase: "deprecated",
  status: "2xx",
  impact: "breaking",
} as const;

function countOne(
  meter: UsageMeter,
  { userAgent, ...answer }: Partial<AnswerClass> & { userAgent: string | null },
  now: number,
): void {
  meter.count(meter.tally({ ...ANSWER, ...answer }), userAgent, now);
}

Deno.test("clientOf() names the product, and nothing else of a User-Agent", () => {
  const rows: [userAgent: string | null, client: string][] = [
    [null, "(none)"],
    ["", "(none)"],
    ["Overcast/3.1 (+https://overcast.fm/; iOS podcast app)", "Overcast"],
    ["curl/8.5.0", "curl"],
    ["Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "Mozilla"],
    ["Pocket-Casts", "Pocket-Casts"],
    ["jane@example.com", "jane"],
    ["(Macintosh)", "(other)"],
    [" curl/8", "(other)"],
    ["<script>alert(1)</script>", "(other)"],
    ["\x1b[31mred", "(other)"],
    ["x\x1b[31mred", "x"],
    ["a".repeat(8000), "a".repeat(64)],
    ["Ünïcode/1", "(other)"],
  ];
  for (const [userAgent, client] of rows) assertEquals(clientOf(userAgent), client);
  fc.assert(fc.property(fc.string({ unit: "binary" }), (userAgent) => {
    assertMatch(clientOf(userAgent), /^[!#$%&'*+\-.^_`|~()\w]{1,64}$/);
  }));
});

Deno.test("impactOf() is breaking for what the removal takes away, and for nothing else", () => {
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
    [{ phase: "brownout", status: 410 }, "breaking"],
    [{ phase: "brownout", status: 410, hasToken: false }, "none"],
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
  const sorted = meter.take(NOON).toSorted((a, b) => a.first - b.first);
  const at = (first: number, last = first) => ({ first, last });
  const none = { ...ROW, client: "(none)", status: "4xx", calls: 1 } as const;
  assertEquals(sorted, [
    { ...ROW, client: "curl", calls: 3, ...at(NOON, NOON + 9) },
    { ...none, impact: "none", ...at(NOON + 1) },
    { ...none, ...at(NOON + 2) },
    { ...none, impact: "none", method: "(other)", ...at(NOON + 3) },
    {
      ...{ ...ROW, client: "curl", phase: "brownout", day: "2027-02-02", calls: 1 },
      ...at(NOON + 12 * HOUR),
    },
  ]);
  assertEquals(meter.take(NOON), []);
});

Deno.test("UsageMeter counts on the day that a clock set back shows", () => {
  const meter = new UsageMeter();
  countOne(meter, { userAgent: "curl" }, NOON + DAY);
  countOne(meter, { userAgent: "curl" }, NOON);
  countOne(meter, { userAgent: "curl" }, NOON - 12 * HOUR); // the first moment of the day
  countOne(meter, { userAgent: "curl" }, NOON - 12 * HOUR - 1);
  assertEquals(meter.take(NOON).map(({ day, calls }) => `${day}: ${calls}`).toSorted(), [
    "2027-01-31: 1",
    "2027-02-01: 2",
    "2027-02-02: 1",
  ]);
});

Deno.test("invented User-Agents cost a bounded number of rows, and no client its name", () => {
  const meter = new UsageMeter();
  const clock = { now: NOON };
  const rows: Usage[] = [];
  const flush = () => rows.push(...meter.take(clock.now));
  const call = (client: string) => countOne(meter, { userAgent: `${client}/1` }, clock.now);
  const isReal = (client: string) => /^(Returning|Admitted|Fresh|Busy)/.test(client);
  const callsOf = (client: string) =>
    rows.filter((row) => row.client === client).reduce((sum, { calls }) => sum + calls, 0);
  const invented = (from: number, to: number) => {
    for (let index = from; index < to; index++) call(`Invented-${index}`);
  };

  meter.know("Returning"); // of the ledger's last days
  call("Admitted");
  flush();
  invented(0, 1_100); // within a second
  for (const client of ["Returning", "Admitted", "Busy", "Busy"]) call(client);
  flush();
  invented(1_100, 10_000); // more than are told apart between two flushes
  call("Returning");
  call("Admitted");
  flush();
  const first = new Set(rows.map(({ client }) => client));
  assertEquals(["Returning", "Admitted", "Busy"].map(callsOf), [2, 3, 2]);
  // The rest of the allowance, and "(other)".
  assertEquals([...first].filter((name) => !isReal(name)).length, MAX_NEW_CLIENTS - 2 + 1);

  clock.now += HOUR; // a new real client, an hour later
  call("Fresh");
  flush();
  assertEquals(callsOf("Fresh"), 1);

  // A day under way: an hour of a flood adds no more than an allowance and its refill.
  for (let hour = 0; hour < 6; hour++) {
    const before = new Set(rows.map(({ client }) => client)).size;
    for (let minute = 0; minute < 60; minute++) {
      clock.now += 60_000;
      invented(10_000 + (hour * 60 + minute) * 200, 10_000 + (hour * 60 + minute + 1) * 200);
      for (const client of ["Returning", "Admitted", "Fresh"]) call(client);
      flush();
    }
    const admitted = new Set(rows.map(({ client }) => client)).size - before;
    assert(admitted <= 2 * MAX_NEW_CLIENTS, `${admitted} in an hour`);
  }
  assertEquals(["Returning", "Admitted", "Fresh"].map(callsOf), [362, 363, 361]);
  assertEquals(rows.reduce((sum, { calls }) => sum + calls, 0), 10_008 + 360 * 203);
});

Deno.test("UsageMeter keeps what it remembers of hostile names small", () => {
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
  for (
    const { rows, byUserAgent } of ["GET", "METHOD"].map((method) =>
      // before a flush
      meter.tally({ ...ANSWER, method })
    )
  ) {
    assert(rows.size <= 2_002, `${rows.size} rows`);
    assert(byUserAgent.size <= 1_000, `${byUserAgent.size} User-Agents`);
    assert([...byUserAgent.keys()].every((userAgent) => (userAgent?.length ?? 0) <= 256));
  }
  const rows = meter.take(NOON);
  assert(rows.length <= 2 * (MAX_NEW_CLIENTS + 2), `${rows.length} rows`);
  assertEquals(rows.reduce((sum, { calls }) => sum + calls, 0), 100_000);
  for (const { client } of rows) assertMatch(client, /^[\x21-\x7e]{1,64}$/);
});

Deno.test("createHandler() counts every answer of the deprecated routes, prepared ones included", async () => {
  await using subject = openMemory();
  const { audio, video, unpublished } = await publishTableItems(subject);
  const meter = new UsageMeter();
  // Responses are prepared for what the cache says will hold.
  const storage = new CachedStorage(subject.storage, 60_000);
  const handle = createHandler({ storage, config: CONFIG, now: () => NOON, log() {}, meter });
  const known = newToken();
  const requests: [method: string, path: string, count: number][] = [
    ["HEAD", `/audio/${audio.token}`, 5],
    ["GET", `/audio/${audio.token}`, 2],
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
  // One object for all the same HEADs: they were prepared.
  assertEquals([...responses.values()].filter((count) => count > 1).toSorted(), [2, 3, 3, 5, 9]);
  const counted = meter.take(NOON).map(({ route, method, status, impact, calls }) =>
    `${method} ${route} ${status} ${impact}: ${calls}`
  );
  assertEquals(counted.toSorted(), [
    "(other) /video/:token 4xx none: 1",
    "GET /audio/:token 2xx breaking: 2",
    "HEAD /audio/:token 2xx breaking: 5",
    "HEAD /audio/:token 4xx none: 5",
    "HEAD /video/:token 2xx breaking: 1",
    "HEAD /video/:token 4xx none: 3",
    "OPTIONS /video/:token 2xx none: 1",
  ]);
});

Deno.test("createHandler() counts who calls in a brownout, malformed tokens apart", async () => {
  await using subject = openMemory();
  const meter = new UsageMeter();
  const policy = definePolicy({
    deprecatedAt: "2027-01-01",
    sunsetAt: "2027-06-01",
    brownouts: ["2027-02-01T11:00Z/PT2H"],
  });
  const { storage } = subject;
  const config = { ...CONFIG, policy };
  const handle = createHandler({ storage, config, now: () => NOON, log() {}, meter });
  for (const path of [`/audio/${newToken()}`, "/audio/x", "/audio/x"]) {
    await handle(new Request(`http://test${path}`, { method: "HEAD" }));
  }
  const counted = meter.take(NOON).map(({ phase, status, impact, calls }) =>
    `${phase} ${status} ${impact}: ${calls}`
  );
  assertEquals(counted.toSorted(), ["brownout 4xx breaking: 1", "brownout 4xx none: 2"]);
});

const RECORD = {
  config: {
    usageDays: 30,
    isTelemetryOn: false,
    policy: definePolicy({ deprecatedAt: "2027-01-01" }),
  },
  routes: ["/audio/:token"],
};

/** A recorder on a ledger and a clock, with what it logged. */
async function startRecorder(
  ledger: Pick<Ledger, "add" | "mark" | "forget" | "usage">,
  clock: { now: number },
  config: Partial<typeof RECORD.config> = {},
) {
  const events: unknown[] = [];
  const recorder = await recordUsage({
    ...{ ...RECORD, config: { ...RECORD.config, ...config } },
    ledger,
    now: () => clock.now,
    log: (event) => events.push(event),
  });
  return { ...recorder, events };
}

/** The same ledger, with some of its methods replaced. */
function altered(ledger: MemoryLedger, changes: Partial<Ledger>) {
  return {
    add: ledger.add.bind(ledger),
    mark: ledger.mark.bind(ledger),
    forget: ledger.forget.bind(ledger),
    usage: ledger.usage.bind(ledger),
    ...changes,
  };
}

const down = () => Promise.reject(new StorageError("kv", "down"));

function stretches(watches: Watch[]) {
  return watches.map(({ from, until, end }) => [from - NOON, until - NOON, end]);
}

Deno.test("recordUsage() shares one ledger among servers, and sums", async () => {
  const { ledger, close } = await openEngine(":memory:");
  const clock = { now: NOON };
  const servers = await Promise.all([1, 2, 3].map(() => startRecorder(ledger, clock)));
  assertEquals(stretches(await ledger.watches()), Array(3).fill([0, 0, undefined])); // registered
  for (let round = 0; round < 5; round++) {
    clock.now += 1000;
    for (const { meter } of servers) countOne(meter, { userAgent: "curl/1" }, clock.now);
    await Promise.all(servers.map(({ record }) => record()));
  }
  assertEquals(stretches(await ledger.watches()), Array(3).fill([0, 5000, undefined]));
  await Promise.all(servers.map(({ stop }) => stop()));
  assertEquals(await Array.fromAsync(ledger.usage("2027-01-01")), [
    { ...ROW, client: "curl", calls: 15, first: NOON + 1000, last: NOON + 5000 },
  ]);
  assertEquals(stretches(await ledger.watches()), Array(3).fill([0, 5000, "stopped"]));
  close();
});

Deno.test("recordUsage() loses nothing to faults, counts nothing twice, and logs each outage once", async () => {
  const ledger = new MemoryLedger();
  const clock = { now: NOON };
  let isFailing = true;
  const flaky = altered(ledger, {
    async add(rows, onAdded) {
      if (!isFailing) return await ledger.add(rows, onAdded);
      await ledger.add(rows.slice(0, 1), onAdded); // a part gets through
      await down();
    },
  });
  const { meter, record, stop, events } = await startRecorder(flaky, clock);
  const watchesDuring: unknown[] = [];
  for (const outage of [1, 2]) {
    isFailing = true;
    for (let round = 0; round < 4; round++) {
      clock.now += 5_000;
      for (const client of ["a", "b", "c"]) countOne(meter, { userAgent: client }, clock.now);
      await record();
    }
    watchesDuring.push(...stretches(await ledger.watches()));
    isFailing = false;
    await record();
    assertEquals(events.length, outage);
  }
  await stop();
  const rows = await Array.fromAsync(ledger.usage("2027-01-01"));
  assertEquals(rows.map(({ client, calls }) => `${client}: ${calls}`), ["a: 8", "b: 8", "c: 8"]);
  // No heartbeat while a flush fails; and then for all the time, since nothing is missing.
  assertEquals(watchesDuring, [[0, 0, undefined], [0, 20_000, undefined]]);
  assertEquals(stretches(await ledger.watches()), [[0, 40_000, "stopped"]]);
});

Deno.test("recordUsage() stops with no final mark while calls are not in the ledger", async () => {
  const ledger = new MemoryLedger();
  const { meter, stop, events } = await startRecorder(altered(ledger, { add: down }), {
    now: NOON,
  });
  countOne(meter, { userAgent: "curl" }, NOON);
  await stop();
  assertEquals(stretches(await ledger.watches()), [[0, 0, undefined]]);
  assertEquals(events.length, 1);
});

Deno.test("recordUsage() registers later when it cannot at once, and logs that", async () => {
  const ledger = new MemoryLedger();
  let faults = 1;
  const flaky = altered(ledger, { mark: (watch) => faults-- > 0 ? down() : ledger.mark(watch) });
  const { record, stop, events } = await startRecorder(flaky, { now: NOON });
  assertEquals([events.length, await ledger.watches()], [1, []]);
  await record();
  assertEquals(stretches(await ledger.watches()), [[0, 0, undefined]]);
  await stop();
});

Deno.test("recordUsage() flushes one at a time, and a slow flush ends no watch", async () => {
  const ledger = new MemoryLedger();
  const clock = { now: NOON };
  let inFlight = 0;
  let most = 0;
  let released = Promise.withResolvers<void>();
  const slow = altered(ledger, {
    async add(rows, onAdded) {
      most = Math.max(most, ++inFlight);
      await released.promise;
      await ledger.add(rows, onAdded);
      inFlight--;
    },
  });
  const { meter, record, stop } = await startRecorder(slow, clock);
  countOne(meter, { userAgent: "curl" }, clock.now);
  const flushes = Array.from({ length: 30 }, () => {
    clock.now += 5_000; // two and a half minutes altogether
    return record();
  });
  await new Promise((resolve) => setTimeout(resolve));
  released.resolve();
  await Promise.all(flushes);
  released = Promise.withResolvers();
  released.resolve();
  await stop();
  assertEquals(most, 1);
  assertEquals(stretches(await ledger.watches()), [[0, 150_000, "stopped"]]);
  assertEquals((await Array.fromAsync(ledger.usage(""))).map(({ calls }) => calls), [1]);
});

Deno.test("recordUsage() gives the metrics every call once, whatever the ledger does", async () => {
  const ledger = new MemoryLedger();
  let sum = 0;
  let collect = () => {};
  metrics.setGlobalMeterProvider(
    {
      getMeter: () => ({
        createCounter: () => ({ add: (calls: number) => sum += calls }),
        createObservableGauge: () => ({
          addCallback: (callback: (result: { observe(): void }) => void) =>
            collect = () => callback({ observe() {} }),
        }),
      }),
    } as unknown as Parameters<typeof metrics.setGlobalMeterProvider>[0],
  );
  try {
    let isFailing = true;
    const flaky = altered(ledger, {
      add: (rows, onAdded) => isFailing ? down() : ledger.add(rows, onAdded),
    });
    const clock = { now: NOON };
    const { meter, record, stop } = await startRecorder(flaky, clock, { isTelemetryOn: true });
    countOne(meter, { userAgent: "curl" }, NOON);
    await record();
    assertEquals(sum, 0, "a call in the first sample of a series is no increase");
    collect();
    for (let round = 0; round < 3; round++) {
      countOne(meter, { userAgent: "curl" }, NOON);
      await record();
    }
    assertEquals(sum, 4);
    isFailing = false;
    countOne(meter, { userAgent: "curl", route: "/new" }, NOON); // a series that is new at the end
    await stop();
    assertEquals(sum, 5);
  } finally {
    metrics.disable();
  }
});

Deno.test("recordUsage() begins a new watch when it was not running for a while", async () => {
  const clock = { now: NOON };
  const ledger = new MemoryLedger();
  const { record, stop } = await startRecorder(ledger, clock);
  for (const advance of [5_000, 5_000, 60_000, 3_600_000, 5_000]) {
    clock.now += advance;
    await record();
  }
  await stop();
  assertEquals(stretches(await ledger.watches()), [
    [0, 70_000, undefined],
    [3_670_000, 3_675_000, "stopped"],
  ]);
});

Deno.test("recordUsage() lets clients of the last days keep their names after a restart", async () => {
  const ledger = new MemoryLedger();
  const row = { ...ROW, calls: 1, first: NOON, last: NOON };
  const days = ["2027-01-25", "2027-01-24"];
  await ledger.add(days.map((day) => ({ ...row, day, client: `Of-${day}` })), () => {});
  const { meter, record, stop } = await startRecorder(ledger, { now: NOON });
  for (let index = 0; index < 1_100; index++) {
    for (const _ of [1, 2]) countOne(meter, { userAgent: `Invented-${index}` }, NOON);
  }
  for (const day of days) countOne(meter, { userAgent: `Of-${day}` }, NOON);
  await record();
  await stop();
  const rows = await Array.fromAsync(ledger.usage("2027-02-01"));
  assertEquals(rows.length, MAX_NEW_CLIENTS + 2);
  assertEquals(rows.filter(({ client }) => client.startsWith("Of-")).map(({ client }) => client), [
    "Of-2027-01-25",
  ]);
});

Deno.test("recordUsage() forgets the days before those it is to keep, and once a day", async () => {
  const ledger = new MemoryLedger();
  const clock = { now: NOON };
  const row = { ...ROW, client: "curl", calls: 1, first: NOON, last: NOON };
  const days = ["2026-12-31", "2027-01-01", "2027-01-02", "2027-01-03", "2027-02-01"];
  await ledger.add(days.map((day) => ({ ...row, day })), () => {});
  const forgotten: string[] = [];
  const watched = altered(ledger, {
    forget: (day) => (forgotten.push(day), ledger.forget(day)),
  });
  const { record, stop } = await startRecorder(watched, clock);
  await record();
  const left = await Array.fromAsync(ledger.usage(""), ({ day }) => day);
  assertEquals(left, ["2027-01-02", "2027-01-03", "2027-02-01"]);
  await record();
  clock.now += DAY;
  await stop();
  assertEquals(forgotten, ["2027-01-02", "2027-01-03"]);
});
