import { assert, assertEquals, assertMatch } from "@std/assert";
import fc from "fast-check";
import { newToken } from "../lib/http/token.ts";
import { definePolicy } from "../lib/lifecycle/policy.ts";
import { recordUsage } from "../lib/lifecycle/recorder.ts";
import { type AnswerClass, clientOf, UsageMeter } from "../lib/lifecycle/usage.ts";
import type { Usage } from "../lib/storage/ledger.ts";
import { StorageError } from "../lib/storage/storage.ts";
import { createHandler } from "../main.ts";
import { CONFIG, publishTableItems } from "./request_table.ts";
import { openLocal } from "./support/local_storage.ts";

const NOON = Date.parse("2027-02-01T12:00:00Z");
const ANSWER = {
  route: "/audio/:token",
  method: "HEAD",
  phase: "deprecated",
  status: 200,
} as const;
const LINE = { ...ANSWER, day: "2027-02-01", status: "2xx" } as const;

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

Deno.test("UsageMeter counts by day, route, method, phase, status and client", () => {
  const meter = new UsageMeter();
  countOne(meter, { userAgent: "curl/1" }, NOON);
  countOne(meter, { userAgent: "curl/2" }, NOON + 5);
  countOne(meter, { userAgent: "curl/2", status: 206 }, NOON + 9);
  countOne(meter, { userAgent: null, status: 404 }, NOON + 1);
  countOne(meter, { userAgent: null, method: "BREW" }, NOON + 1);
  countOne(meter, { userAgent: "curl/2", phase: "brownout" }, NOON + 43_200_000);
  const sorted = meter.take().toSorted((a, b) =>
    a.first - b.first || (a.method < b.method ? -1 : 1)
  );
  assertEquals(sorted, [
    { ...LINE, client: "curl", calls: 3, first: NOON, last: NOON + 9 },
    { ...LINE, client: "(none)", method: "(other)", calls: 1, first: NOON + 1, last: NOON + 1 },
    { ...LINE, client: "(none)", status: "4xx", calls: 1, first: NOON + 1, last: NOON + 1 },
    {
      ...{ ...LINE, client: "curl", phase: "brownout", day: "2027-02-02", calls: 1 },
      ...{ first: NOON + 43_200_000, last: NOON + 43_200_000 },
    },
  ]);
  assertEquals(meter.take(), []);
});

Deno.test("UsageMeter tells a thousand clients a day apart, whatever they call themselves", () => {
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
  const lines = meter.take();
  const clients = new Set(lines.map(({ client }) => client));
  assert(clients.size <= 1001, `${clients.size} clients`);
  assert(lines.length <= 2 * 1001, `${lines.length} lines`);
  assertEquals(lines.reduce((sum, { calls }) => sum + calls, 0), 100_000);
  for (const client of clients) assertMatch(client, /^[\x21-\x7e]{1,64}$/);
  countOne(meter, { userAgent: "fresh/1" }, NOON + 86_400_000); // a new day, a new thousand
  assertEquals(meter.take()[0]?.client, "fresh");
});

Deno.test("createHandler() counts every answer of the deprecated routes, prepared ones included", async () => {
  await using subject = await openLocal();
  const { audio, video } = await publishTableItems(subject);
  const meter = new UsageMeter();
  const now = () => NOON;
  const handle = createHandler({ storage: subject.storage, config: CONFIG, now, log() {}, meter });
  const requests: [method: string, path: string, count: number][] = [
    ["HEAD", `/audio/${audio.token}`, 5],
    ["GET", `/audio/${audio.token}`, 2],
    ["HEAD", `/video/${video.token}`, 1],
    ["OPTIONS", `/video/${video.token}`, 1],
    ["POST", "/video/x", 1],
    ["HEAD", `/audio/${newToken()}`, 3],
    ["HEAD", `/media/${audio.token}`, 9],
    ["GET", "/deprecation", 9],
    ["GET", "/nowhere", 9],
  ];
  for (const [method, path, count] of requests) {
    for (let sent = 0; sent < count; sent++) {
      const headers = { "User-Agent": "test/1" };
      const response = await handle(new Request(`http://test${path}`, { method, headers }));
      await response.body?.cancel();
    }
  }
  const counted = meter.take().map(({ route, method, status, calls }) =>
    `${method} ${route} ${status}: ${calls}`
  );
  assertEquals(counted.toSorted(), [
    "GET /audio/:token 2xx: 2",
    "HEAD /audio/:token 2xx: 5",
    "HEAD /audio/:token 4xx: 3",
    "HEAD /video/:token 2xx: 1",
    "OPTIONS /video/:token 2xx: 1",
    "POST /video/:token 4xx: 1",
  ]);
});

const RECORD = {
  config: {
    usageDays: 30,
    isTelemetryOn: false,
    policy: definePolicy({ deprecatedAt: "2027-01-01" }),
  },
  routes: ["/audio/:token"],
};

Deno.test("recordUsage() shares one ledger among servers, and sums", async () => {
  await using subject = await openLocal();
  const { ledger } = subject.storage;
  const clock = { now: NOON };
  const log = () => {};
  const servers = await Promise.all(
    [1, 2, 3].map(() => recordUsage({ ...RECORD, ledger, now: () => clock.now, log })),
  );
  for (let round = 0; round < 5; round++) {
    clock.now += 1000;
    for (const { meter } of servers) countOne(meter, { userAgent: "curl/1" }, clock.now);
    await Promise.all(servers.map(({ record }) => record()));
  }
  await Promise.all(servers.map(({ stop }) => stop()));
  assertEquals(await Array.fromAsync(ledger.usage("2027-01-01")), [
    { ...LINE, client: "curl", calls: 15, first: NOON + 1000, last: NOON + 5000 },
  ]);
  const watches = await ledger.watches();
  assertEquals(watches.map(({ from, until }) => [from, until]), Array(3).fill([NOON, NOON + 5000]));
});

Deno.test("recordUsage() loses nothing to faults, counts nothing twice, and complains once", async () => {
  await using subject = await openLocal();
  const { ledger } = subject.storage;
  const clock = { now: NOON };
  const events: unknown[] = [];
  let failing = true;
  const flaky = {
    add: async (lines: readonly Usage[], onAdded: (lines: readonly Usage[]) => void) => {
      if (!failing) return await ledger.add(lines, onAdded);
      await ledger.add(lines.slice(0, 1), onAdded); // a part gets through
      throw new StorageError("kv", "down");
    },
    beat: ledger.beat.bind(ledger),
    forget: ledger.forget.bind(ledger),
  };
  const log = (event: unknown) => events.push(event);
  const { meter, record, stop } = await recordUsage({
    ...RECORD,
    ledger: flaky,
    now: () => clock.now,
    log,
  });
  for (let round = 0; round < 4; round++) {
    for (const client of ["a", "b", "c"]) countOne(meter, { userAgent: client }, clock.now);
    await record();
  }
  failing = false;
  await stop();
  const lines = await Array.fromAsync(ledger.usage("2027-01-01"));
  assertEquals(lines.map(({ client, calls }) => `${client}: ${calls}`), ["a: 4", "b: 4", "c: 4"]);
  assertEquals(events.length, 1);
});

Deno.test("recordUsage() begins a new watch when it was not running for a while", async () => {
  await using subject = await openLocal();
  const clock = { now: NOON };
  const { ledger } = subject.storage;
  const { record, stop } = await recordUsage({ ...RECORD, ledger, now: () => clock.now, log() {} });
  for (const advance of [5_000, 5_000, 3_600_000, 5_000]) {
    clock.now += advance;
    await record();
  }
  await stop();
  const watches = (await ledger.watches()).map(({ from, until }) => [from - NOON, until - NOON]);
  assertEquals(watches, [[0, 10_000], [3_610_000, 3_615_000]]);
});

Deno.test("recordUsage() forgets the days before those it is to keep", async () => {
  await using subject = await openLocal();
  const { ledger } = subject.storage;
  const line = { ...LINE, client: "curl", calls: 1, first: NOON, last: NOON };
  const days = ["2026-12-31", "2027-01-01", "2027-01-02", "2027-01-03", "2027-02-01"];
  await ledger.add(days.map((day) => ({ ...line, day })), () => {});
  const { stop } = await recordUsage({ ...RECORD, ledger, now: () => NOON, log() {} });
  await stop();
  const left = await Array.fromAsync(ledger.usage("2026-01-01"), ({ day }) => day);
  assertEquals(left, ["2027-01-02", "2027-01-03", "2027-02-01"]);
});

Deno.test("Ledger.add() takes more lines than one commit holds", async () => {
  await using subject = await openLocal();
  const { ledger } = subject.storage;
  const lines = Array.from({ length: 1001 }, (_, index) => ({
    ...{ ...LINE, route: "r".repeat(64), method: "m".repeat(64), status: "s".repeat(64) },
    client: String(index).padStart(64, "c"),
    ...{ calls: 2, first: NOON, last: NOON + index },
  }));
  const parts: number[] = [];
  for (const _ of [1, 2]) await ledger.add(lines, (added) => parts.push(added.length));
  assertEquals(parts, [...Array(12).fill(80), 41, ...Array(12).fill(80), 41]);
  const kept = await Array.fromAsync(ledger.usage("2027-01-01"));
  assertEquals(kept.length, 1001);
  assert(kept.every(({ calls, first }) => calls === 4 && first === NOON));
});
