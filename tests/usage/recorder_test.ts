import { DatabaseSync } from "node:sqlite";
import { metrics } from "@opentelemetry/api";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { MAX_NEW_NAMES_A_DAY } from "../../lib/usage/client_names.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { Recorder } from "../../lib/usage/recorder.ts";
import type { Policy } from "../../lib/lifecycle/policy.ts";
import type { FlushPart, Heartbeat } from "../../lib/storage/ledger/records.ts";
import type { Ledger } from "../../lib/storage/ledger/ledger.ts";
import { RejectedError, StorageError } from "../../lib/storage/errors.ts";
import { altered, ledgerAt, type RecordingLedger } from "../support/ledger_at.ts";
import { addRows } from "../support/ledger_rows.ts";
import { openLocal } from "../support/local_storage.ts";
import { needing } from "../support/permissions.ts";
import { openMemoryEngine } from "../support/memory_storage.ts";
import { countOne, DAY, NOON, ROW } from "../support/counted_call.ts";

const RECORD = {
  config: {
    usageDays: 30,
    isTelemetryOn: false,
    policy: definePolicy({ deprecatedAt: "2027-01-01" }),
  },
  routes: ["/audio/:token"],
};

/** Starts a recorder on a ledger and a clock, and collects its log events. */
async function startRecorder(
  ledger: RecordingLedger,
  clock: { now: number; database?: number },
  config: Partial<typeof RECORD.config> = {},
) {
  const events: unknown[] = [];
  const recorder = new Recorder({
    ...{ ...RECORD, config: { ...RECORD.config, ...config } },
    ledger: ledgerAt(ledger, () => clock.database ?? clock.now),
    clock: () => clock.now,
    log: (event) => events.push(event),
  });
  await recorder.start();
  return {
    meter: recorder.meter,
    recorder,
    flush: () => recorder.flush(),
    stop: () => recorder.stop(),
    unrecorded: () => recorder.unrecorded(),
    events,
  };
}

const down = () => Promise.reject(new StorageError("sqlite", "down"));

function stretches(heartbeats: Heartbeat[]) {
  return heartbeats.map(({ from, until, end }) => [from - NOON, until - NOON, end]);
}

Deno.test("Recorder sums the counts of several servers in one ledger", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const clock = { now: NOON };
  const servers = await Promise.all([1, 2, 3].map(() => startRecorder(ledger, clock)));
  assertEquals(stretches(await ledger.heartbeats()), Array(3).fill([0, 0, undefined])); // registered
  for (let round = 0; round < 5; round++) {
    clock.now += 1000;
    for (const { meter } of servers) countOne(meter, { userAgent: "curl/1" }, clock.now);
    await Promise.all(servers.map(({ flush }) => flush()));
  }
  assertEquals(stretches(await ledger.heartbeats()), Array(3).fill([0, 5000, undefined]));
  await Promise.all(servers.map(({ stop }) => stop()));
  assertEquals(await Array.fromAsync(ledger.usage("2027-01-01")), [
    { ...ROW, client: "app curl", calls: 15, first: NOON + 1000, last: NOON + 5000 },
  ]);
  assertEquals(stretches(await ledger.heartbeats()), Array(3).fill([0, 5000, "stopped"]));
});

Deno.test("Recorder neither loses nor repeats counts in an outage, and logs it once", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const clock = { now: NOON };
  // A flush fails before its transaction, or after it, so that its outcome is unknown.
  let failure: "before" | "after" | undefined;
  const flaky = altered(ledger, {
    async add(part, own) {
      if (failure === "before") return await down();
      const isAdded = await ledger.add(part, own);
      return failure === "after" ? await down() : isAdded;
    },
  });
  const { meter, flush, stop, events } = await startRecorder(flaky, clock);
  for (const kind of ["before", "after"] as const) {
    failure = kind;
    for (let round = 0; round < 4; round++) {
      clock.now += 5_000;
      for (const client of ["a", "b", "c"]) countOne(meter, { userAgent: client }, clock.now);
      await flush();
    }
    assertEquals(meter.fault, "the ledger fails (see the log)");
    failure = undefined;
    await flush();
    assertEquals(meter.fault, undefined);
  }
  assertEquals(events.length, 1);
  await stop();
  const rows = await Array.fromAsync(ledger.usage("2027-01-01"));
  assertEquals(rows.map(({ client, calls }) => `${client}: ${calls}`), [
    "app a: 8",
    "app b: 8",
    "app c: 8",
  ]);
  // The next heartbeat covers the whole time, since nothing is missing.
  assertEquals(stretches(await ledger.heartbeats()), [[0, 40_000, "stopped"]]);
});

Deno.test("Recorder does not mark itself stopped while calls are not in the ledger", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const { meter, stop, events } = await startRecorder(altered(ledger, { add: down }), {
    now: NOON,
  });
  countOne(meter, { userAgent: "curl" }, NOON);
  await stop();
  assertEquals(stretches(await ledger.heartbeats()), [[0, 0, undefined]]);
  assertEquals(events.length, 1);
});

Deno.test("Recorder warns of other dates beside its own, and of a later sunset before", async () => {
  const dates = (sunsetAt?: string, deprecatedAt = "2027-01-01") =>
    definePolicy({ deprecatedAt, sunsetAt });
  const policy = dates("2027-06-30");
  const own = "deprecation 2027-01-01T00:00:00Z, sunset 2027-06-30T00:00:00Z";
  const rows: [what: string, before: Policy, end: "stopped" | undefined, warning?: string][] = [
    ["the same dates", policy, undefined],
    ["other dates beside", dates(), undefined, "deprecation 2027-01-01T00:00:00Z, no sunset"],
    ["other dates before", dates("2027-06-30", "2027-01-02"), "stopped"],
    ["an earlier sunset before", dates("2027-06-29"), "stopped"],
    ["no sunset before", dates(), "stopped"],
    ["a later sunset before", dates("2027-07-01"), "stopped", own.replace("06-30", "07-01")],
  ];
  for (const [what, before, end, warning] of rows) {
    await using engine = await openMemoryEngine();
    const policies = { "/audio/:token": before, "/other": dates() };
    const record = {
      server: "a",
      policies,
      sequence: 0,
      from: NOON - DAY,
      until: NOON,
      ...end && { end },
    };
    await engine.ledger.declare([record]);
    const { recorder, stop, events } = await startRecorder(engine.ledger, { now: NOON }, {
      policy,
    });
    await stop();
    const message = `/audio/:token announces ${own}; ` +
      `but server a, last heartbeat at 2027-02-01T12:00:00Z: ${warning}`;
    const expected = { event: "warning", server: recorder.server, message };
    assertEquals(events, warning === undefined ? [] : [expected], what);
  }
});

Deno.test("Recorder.start() rejects if it cannot register", async () => {
  await using engine = await openMemoryEngine();
  const failing = altered(engine.ledger, { declare: down });
  await assertRejects(() => startRecorder(failing, { now: NOON }), StorageError, "down");
});

Deno.test("Recorder runs one flush at a time, and a slow flush does not end its watch", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const clock = { now: NOON };
  let inFlight = 0;
  let most = 0;
  let released = Promise.withResolvers<void>();
  const slow = altered(ledger, {
    async add(part, own) {
      most = Math.max(most, ++inFlight);
      await released.promise;
      const isAdded = await ledger.add(part, own);
      inFlight--;
      return isAdded;
    },
  });
  const { meter, flush, stop } = await startRecorder(slow, clock);
  countOne(meter, { userAgent: "curl" }, clock.now);
  const flushes = Array.from({ length: 30 }, () => {
    clock.now += 5_000; // 150 seconds in total
    return flush();
  });
  await new Promise((resolve) => setTimeout(resolve));
  released.resolve();
  await Promise.all(flushes);
  released = Promise.withResolvers();
  released.resolve();
  await stop();
  assertEquals(most, 1);
  assertEquals(stretches(await ledger.heartbeats()), [[0, 150_000, "stopped"]]);
  assertEquals((await Array.fromAsync(ledger.usage(""))).map(({ calls }) => calls), [1]);
});

Deno.test("Recorder adds every call to the metrics once, even if the ledger fails", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  let [sum, recording] = [0, -1];
  metrics.setGlobalMeterProvider(
    {
      getMeter: () => ({
        createCounter: () => ({ add: (calls: number) => sum += calls }),
        createGauge: (name: string) => ({
          record: (value: number) => name === "media_head.recording" && (recording = value),
        }),
      }),
    } as unknown as Parameters<typeof metrics.setGlobalMeterProvider>[0],
  );
  try {
    let isFailing = true;
    const flaky = altered(ledger, {
      add: (...args) => isFailing ? down() : ledger.add(...args),
    });
    const clock = { now: NOON };
    const { meter, flush, stop } = await startRecorder(flaky, clock, { isTelemetryOn: true });
    for (let round = 1; round <= 4; round++) {
      countOne(meter, { userAgent: "curl" }, NOON);
      await flush();
      assertEquals([sum, recording], [round, 0]);
    }
    isFailing = false;
    countOne(meter, { userAgent: "curl", route: "/new" }, NOON);
    await stop();
    assertEquals([sum, recording], [5, 1]);
  } finally {
    metrics.disable();
  }
});

Deno.test("Recorder starts a new watch after the process was suspended", async () => {
  const clock = { now: NOON };
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const { flush, stop } = await startRecorder(ledger, clock);
  for (const advance of [5_000, 5_000, 60_000, 3_600_000, 5_000]) {
    clock.now += advance;
    await flush();
  }
  await stop();
  assertEquals(stretches(await ledger.heartbeats()), [
    [0, 70_000, "stopped"],
    [3_670_000, 3_675_000, "stopped"],
  ]);
});

/** Copies the tables of calls of a SQLite file, and returns a function that puts them back. */
function copyOf(path: string): () => void {
  const execute = (sql: string) => {
    using database = new DatabaseSync(path, { timeout: 5_000 });
    database.exec(sql);
  };
  const tables = ["usage", "heartbeat"];
  execute(tables.map((name) => `CREATE TABLE copy_${name} AS SELECT * FROM ${name};`).join(""));
  return () =>
    execute(
      tables.map((name) => `DELETE FROM ${name}; INSERT INTO ${name} SELECT * FROM copy_${name};`)
        .join(""),
    );
}

const EARLIER = "an earlier copy";

/** What happens to the heartbeat [0, 20 s] of a running server, and which it has 10 s later. */
const LOSSES: [
  what: string,
  happen: (ledger: Ledger, own: Heartbeat) => Promise<void>,
  stretches: [from: number, until: number, end?: string][],
][] = [
  [EARLIER, () => Promise.resolve(), [[0, 10_000], [25_000, 30_000, "stopped"]]],
  [
    "an earlier copy, in which it was declared gone",
    (ledger, own) => ledger.declare([], [{ ...own, end: "gone", declaredAt: NOON }]),
    [[0, 10_000], [25_000, 30_000, "stopped"]],
  ],
  [
    "declared gone",
    (ledger, own) => ledger.declare([], [{ ...own, end: "gone", declaredAt: NOON }]),
    [[0, 20_000, "gone"], [25_000, 30_000, "stopped"]],
  ],
  [
    "a copy from before it started",
    () => Promise.resolve(),
    [[0, 0], [25_000, 30_000, "stopped"]],
  ],
];

for (const [what, happen, expected] of LOSSES) {
  needing("files")(`Recorder finds its heartbeat otherwise: ${what}`, async () => {
    await using subject = await openLocal();
    const path = `${subject.folder}/catalogue.sqlite-ledger`;
    const { ledger } = subject.storage;
    const clock = { now: NOON };
    const isBefore = what.includes("before it started");
    let restore = isBefore ? copyOf(path) : () => {};
    const { meter, recorder: { server }, flush, stop, events } = await startRecorder(ledger, clock);
    const tick = async () => {
      clock.now += 5_000;
      countOne(meter, { userAgent: "curl" }, clock.now);
      await flush();
    };
    for (let times = 0; times < 2; times++) await tick();
    if (what.includes("copy") && !isBefore) restore = copyOf(path);
    for (let times = 0; times < 2; times++) await tick();
    restore();
    await happen(ledger, { server, policies: {}, sequence: 0, from: NOON, until: NOON });
    for (let times = 0; times < 2; times++) await tick();
    await stop();
    const own = (await ledger.heartbeats()).filter((heartbeat) => heartbeat.server === server);
    assertEquals(stretches(own), expected.map(([from, until, end]) => [from, until, end]));
    const message = what === "declared gone"
      ? "this server's heartbeat has an end"
      : "it lacks this server's last report";
    assertEquals(events.length, 1);
    assertStringIncludes(JSON.stringify(events), message);
    const calls = await Array.fromAsync(ledger.usage(""), ({ calls }) => calls);
    assertEquals(calls, [what === "declared gone" ? 6 : isBefore ? 2 : 4], "no other call is lost");
  });
}

Deno.test("Recorder sends a part whose outcome is unknown again as it was", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const clock = { now: NOON };
  const sent: FlushPart[] = [];
  let isFailing = false;
  const flaky = altered(ledger, {
    async add(part, own) {
      sent.push(part);
      const isAdded = await ledger.add(part, own);
      return isFailing ? await down() : isAdded;
    },
  });
  const { meter, flush, stop } = await startRecorder(flaky, clock);
  const call = (count: number) => {
    clock.now += 5_000;
    for (let index = 0; index < count; index++) {
      countOne(
        meter,
        { userAgent: `App-${String.fromCharCode(65 + index % 26)}${index}` },
        clock.now,
      );
    }
  };
  isFailing = true;
  call(150);
  await flush();
  isFailing = false;
  call(10);
  await flush();
  await stop();
  const [first, again, ...others] = sent;
  assertEquals([first?.rows.length, again], [100, first]);
  assertEquals(others.map(({ rows, until }) => [rows.length, until - NOON]), [
    [60, 10_000], // not merged into the part before
    [0, 10_000],
  ]);
  const calls = await Array.fromAsync(ledger.usage(""), ({ calls }) => calls);
  assertEquals(calls.reduce((a, b) => a + b), 160);
});

Deno.test("Recorder counts rows that the ledger rejects under no name", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const strict = altered(ledger, {
    add: (part, own) =>
      part.rows.some(({ client }) => client.includes("播客"))
        ? Promise.reject(new RejectedError("sqlite", "too narrow"))
        : ledger.add(part, own),
  });
  const { meter, stop, events } = await startRecorder(strict, { now: NOON });
  for (const userAgent of ["curl/8", "%E6%92%AD%E5%AE%A2/1"]) countOne(meter, { userAgent }, NOON);
  await stop();
  assertEquals(await Array.fromAsync(ledger.releases("")), []);
  assertEquals(meter.fault, undefined);
  const rows = await Array.fromAsync(ledger.usage(""), ({ client, calls }) => [client, calls]);
  assertEquals(rows, [["(other)", 2]]);
  assertStringIncludes(JSON.stringify(events), "too narrow");
});

Deno.test("Recorder flushes rows and releases in the same parts, and dates them alike", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const clock = { now: NOON };
  const parts: FlushPart[] = [];
  const watched = altered(ledger, {
    add: (part, own) => (parts.push(part), ledger.add(part, own)),
  });
  const { meter, flush, stop, unrecorded } = await startRecorder(watched, clock);
  clock.now += 5_000;
  const wrong = NOON - 40 * DAY; // a moment by a wrong clock
  for (let index = 0; index < 90; index++) {
    for (const release of ["1.0", "2.0"]) {
      countOne(meter, { userAgent: `App-${index}/${release}` }, index === 0 ? wrong : clock.now);
    }
  }
  await flush();
  assertEquals(parts.map(({ rows }) => rows.length), [100, 100, 70]);
  assertEquals(unrecorded(), 0);
  const releases = await Array.fromAsync(ledger.releases(""));
  assertEquals(releases.length, 180);
  assertEquals(new Set(releases.map(({ day }) => day)), new Set(["2027-02-01"]));
  assertEquals(new Set(releases.map(({ last }) => last - NOON)), new Set([5_000]));
  const [own] = await ledger.heartbeats();
  assertEquals([own?.sequence, own?.until], [3, NOON + 5_000]);
  await stop();
});

Deno.test("Recorder neither loses nor repeats releases in an outage", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const clock = { now: NOON };
  let failure: "before" | "after" | undefined;
  const flaky = altered(ledger, {
    async add(part, own) {
      if (failure === "before") return await down();
      const isAdded = await ledger.add(part, own);
      return failure === "after" ? await down() : isAdded;
    },
  });
  const { meter, flush, stop, unrecorded } = await startRecorder(flaky, clock);
  for (const kind of ["before", "after", undefined] as const) {
    failure = kind;
    clock.now += 5_000;
    countOne(meter, { userAgent: "App/1.0" }, clock.now);
    await flush();
    if (kind !== undefined) assertEquals(unrecorded(), kind === "before" ? 1 : 2, "calls only");
  }
  await stop();
  const sums = await Array.fromAsync(ledger.releases(""), ({ calls, last }) => [calls, last]);
  assertEquals(sums, [[3, NOON + 15_000]]);
});

Deno.test("Recorder flushes in small parts, and yields to requests between them", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const clock = { now: NOON };
  const parts: FlushPart[] = [];
  const watched = altered(ledger, {
    add: (part, own) => (parts.push(part), ledger.add(part, own)),
  });
  const { meter, flush, stop } = await startRecorder(watched, clock);
  clock.now += 5_000;
  for (let index = 0; index < 450; index++) {
    countOne(meter, { userAgent: `App-${index}` }, clock.now);
  }
  let turns = 0;
  const counting = setInterval(() => turns++);
  await flush();
  clearInterval(counting);
  assertEquals(parts.map(({ rows, until }) => [rows.length, until - NOON]), [
    ...Array(4).fill([100, 0]),
    [50, 5_000], // only the last part moves the heartbeat
  ]);
  assert(turns >= 3, `${turns} turns`);
  await stop();
});

/** A wrong clock of the machine or of the ledger, and the days of the calls that it dated. */
const WRONG_CLOCKS: [what: string, offset: number, isLedgers: boolean, days: string[]][] = [
  ["the server's is two days back for a moment", -2 * DAY, false, ["2027-02-01"]],
  ["the server's is two days ahead for a moment", 2 * DAY, false, ["2027-02-01"]],
  ["the machine's is two days back for a moment", -2 * DAY, true, ["2027-02-01"]],
];

for (const [what, offset, isLedgers, days] of WRONG_CLOCKS) {
  Deno.test(`Recorder dates calls by the ledger's clock: ${what}`, async () => {
    await using engine = await openMemoryEngine();
    const { ledger } = engine;
    const clock = { now: NOON, database: NOON };
    const { meter, flush, stop } = await startRecorder(ledger, clock);
    for (const wrong of [0, offset, 0]) {
      clock.database += 5_000;
      clock.now = clock.database + wrong; // when the call comes
      countOne(meter, { userAgent: "curl" }, clock.now);
      const right = clock.database;
      if (isLedgers) clock.database += wrong;
      else clock.now = right; // the clock is right again when the counts are flushed
      await flush();
      [clock.now, clock.database] = [right, right];
    }
    await stop();
    const rows = await Array.fromAsync(ledger.usage(""));
    assertEquals(rows.map(({ day }) => day), days);
    assertEquals(rows.reduce((sum, { calls }) => sum + calls, 0), 3);
  });
}

Deno.test("Recorder holds rows while the ledger's clock is set back, and dates them once it is right", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const start = Date.parse("2027-02-01T23:30:00Z");
  const clock = { now: start, database: start };
  const { meter, flush, stop } = await startRecorder(ledger, clock);
  for (let minutes = 0; minutes <= 80; minutes += 5) {
    clock.now = start + minutes * 60_000;
    const isBack = minutes > 5 && minutes < 70;
    clock.database = clock.now - (isBack ? 2 * 3_600_000 : 0);
    countOne(meter, { userAgent: "curl" }, clock.now);
    await flush();
    const rows = await Array.fromAsync(ledger.usage(""));
    if (isBack) assertEquals(rows.reduce((sum, { calls }) => sum + calls, 0), 2, `${minutes}`);
  }
  await stop();
  const rows = await Array.fromAsync(ledger.usage(""), ({ day, calls }) => [day, calls]);
  assertEquals(rows, [["2027-02-01", 6], ["2027-02-02", 11]]);
});

Deno.test("Recorder dates no call ahead once the ledger's clock, which was ahead, is right", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const clock = { now: NOON, database: NOON };
  const { meter, flush, stop } = await startRecorder(ledger, clock);
  const tick = async (ahead: number) => {
    clock.now += 5_000;
    clock.database = clock.now + ahead;
    countOne(meter, { userAgent: "curl" }, clock.now);
    await flush();
  };
  for (const ahead of [0, 365 * DAY, 365 * DAY, 0, 0]) await tick(ahead);
  await stop();
  assertEquals(await Array.fromAsync(ledger.usage(""), ({ day, calls }) => [day, calls]), [
    ["2027-02-01", 5],
  ]);
});

Deno.test("Recorder does not take for its own what another life of the process recorded", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const clock = { now: NOON };
  const { recorder: { server }, meter, flush, stop } = await startRecorder(ledger, clock);
  // Since then, the machine was put back to a snapshot of one flush ago.
  const [own] = await ledger.heartbeats();
  await ledger.add({ rows: [], until: NOON + 1 }, own as Heartbeat);
  countOne(meter, { userAgent: "curl" }, clock.now);
  clock.now += 5_000;
  await flush();
  await stop();
  assertEquals((await Array.fromAsync(ledger.usage(""))).map(({ calls }) => calls), [1]);
  const ends = (await ledger.heartbeats()).map((each) => [each.server === server, each.end]);
  assertEquals(ends, [[true, undefined], [true, "stopped"]], "the doubt is on record");
});

Deno.test("Recorder dates the calls of a machine that starts with an old clock by the ledger", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const before = {
    server: "before",
    policies: {},
    sequence: 0,
    from: NOON - DAY,
    until: NOON,
  } as const;
  await ledger.declare([{ ...before, end: "stopped" }]);
  const clock = { now: NOON - 400 * DAY };
  const { meter, flush, stop } = await startRecorder(ledger, clock);
  for (let times = 0; times < 3; times++) {
    clock.now += 5_000;
    countOne(meter, { userAgent: "curl" }, clock.now);
    await flush();
  }
  clock.now = NOON + 20_000;
  await flush();
  await stop();
  const rows = await Array.fromAsync(ledger.usage(""), ({ day, calls }) => [day, calls]);
  assertEquals(rows, [["2027-02-01", 3]]);
});

Deno.test("Recorder writes no heartbeat while its clock is not the ledger's", async () => {
  const clock = { now: NOON, database: NOON };
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const { meter, flush, stop, events } = await startRecorder(ledger, clock);
  const offsets = [5_000, 5_000, -7_200_000, -7_200_000, 59_000, 2 * 365 * DAY, 0];
  for (const offset of offsets) {
    clock.database += 5_000;
    clock.now = clock.database + offset;
    countOne(meter, { userAgent: "curl" }, clock.now);
    await flush();
    const isOff = Math.abs(offset) > 60_000;
    assertEquals(meter.fault, isOff ? "a clock is wrong (see the log)" : undefined);
  }
  await stop();
  const seen = stretches(await ledger.heartbeats());
  assertEquals(seen, [
    // Each time its clock jumps ahead, it could have been suspended.
    [0, 10_000, "stopped"],
    [25_000, 25_000, "stopped"],
    [35_000, 35_000, "stopped"],
  ]);
  assertEquals(events.length, 1); // the rest is counted
  const rows = await Array.fromAsync(ledger.usage(""));
  assertEquals(rows.reduce((sum, { calls }) => sum + calls, 0), offsets.length);
  assertEquals([...new Set(rows.map(({ day }) => day))], ["2027-02-01"], "by the ledger's time");
});

Deno.test("Recorder writes no heartbeat behind one from the future, until it is declared gone", async () => {
  const clock = { now: NOON };
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const ahead = { server: "ahead", policies: {}, sequence: 0, from: NOON, until: NOON + DAY };
  await ledger.declare([ahead]);
  const { recorder: { server }, flush, stop } = await startRecorder(ledger, clock);
  const own = async () =>
    stretches((await ledger.heartbeats()).filter((heartbeat) => heartbeat.server === server));
  clock.now += 5_000;
  await flush();
  assertEquals(await own(), [[0, 0, undefined]]);
  await ledger.declare([], [{ ...ahead, end: "gone" }]);
  clock.now += 5_000;
  await flush();
  await stop();
  assertEquals(await own(), [[0, 10_000, "stopped"]]); // every call is on record
});

Deno.test("Recorder takes another name if its last record is from the future", async () => {
  const clock = { now: NOON, database: NOON + 90_000 };
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const { recorder, flush, stop, events } = await startRecorder(ledger, clock);
  const { server } = recorder;
  const [ahead] = await ledger.heartbeats();
  await ledger.declare([], [{ ...ahead as Heartbeat, end: "gone" }]);
  clock.now += 5_000;
  clock.database = clock.now;
  await flush();
  const [own] = await ledger.heartbeats();
  assertEquals([own?.from, own?.server === server], [NOON + 5_000, false]);
  assertEquals(recorder.server, own?.server);
  assertStringIncludes(JSON.stringify(events), String(own?.server));
  await stop();
});

Deno.test("Recorder returns how many calls are not in the ledger at the end", async () => {
  await using engine = await openMemoryEngine();
  const failing = altered(engine.ledger, { add: down });
  const { meter, stop, unrecorded } = await startRecorder(failing, { now: NOON });
  for (const client of ["a", "b", "b"]) countOne(meter, { userAgent: client }, NOON);
  await stop();
  assertEquals(unrecorded(), 3);
});

Deno.test("Recorder keeps the names of recent clients across a restart", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const row = { ...ROW, calls: 1, first: NOON, last: NOON };
  const days = ["2027-01-25", "2027-01-24"];
  await addRows(ledger, days.map((day) => ({ ...row, day, client: `app Of-${day}` })));
  const { meter, flush, stop } = await startRecorder(ledger, { now: NOON });
  for (let index = 0; index < 1_100; index++) {
    for (const _ of [1, 2]) countOne(meter, { userAgent: `Invented-${index}` }, NOON);
  }
  for (const day of days) countOne(meter, { userAgent: `Of-${day}` }, NOON);
  await flush();
  await stop();
  const rows = await Array.fromAsync(ledger.usage("2027-02-01"));
  assertEquals(rows.length, MAX_NEW_NAMES_A_DAY + 2);
  assertEquals(
    rows.filter(({ client }) => client.startsWith("app Of-")).map(({ client }) => client),
    [
      "app Of-2027-01-25",
    ],
  );
});

Deno.test("Recorder logs each change of a route's phase, without any request", async () => {
  await using engine = await openMemoryEngine();
  const clock = { now: NOON };
  const policy = definePolicy({
    deprecatedAt: "2027-02-01T12:00:07Z",
    brownouts: ["2027-02-01T12:00:20Z/PT10S"],
    sunsetAt: "2027-02-01T13:00Z",
  });
  const { flush, stop, events } = await startRecorder(engine.ledger, clock, { policy });
  for (const seconds of [5, 10, 15, 20, 25, 30, 3_600, 3_605]) {
    clock.now = NOON + seconds * 1_000;
    await flush();
  }
  await stop();
  const change = { event: "phase", route: "/audio/:token" };
  assertEquals(events, [
    { ...change, phase: "deprecated", until: "2027-02-01T12:00:20Z" },
    { ...change, phase: "brownout", until: "2027-02-01T12:00:30Z" },
    { ...change, phase: "deprecated", until: "2027-02-01T13:00:00Z" },
    { ...change, phase: "removed" },
  ]);
});

Deno.test("Recorder deletes expired days, once a day", async () => {
  await using engine = await openMemoryEngine();
  const { ledger } = engine;
  const clock = { now: NOON };
  const row = { ...ROW, client: "curl", calls: 1, first: NOON, last: NOON };
  const days = ["2026-12-31", "2027-01-01", "2027-01-02", "2027-01-03", "2027-02-01"];
  await addRows(ledger, days.map((day) => ({ ...row, day })));
  const before = {
    server: "before",
    policies: {},
    sequence: 0,
    from: 0,
    until: NOON - DAY,
  } as const;
  await ledger.declare([{ ...before, end: "stopped" }]);
  const forgotten: string[] = [];
  const watched = altered(ledger, {
    forget: (day, now) => (forgotten.push(day), ledger.forget(day, now)),
  });
  const { flush, stop } = await startRecorder(watched, clock);
  await flush();
  const left = await Array.fromAsync(ledger.usage(""), ({ day }) => day);
  assertEquals(left, ["2027-01-02", "2027-01-03", "2027-02-01"]);
  await flush();
  clock.now += DAY;
  await flush();
  await stop();
  assertEquals(forgotten, ["2027-01-02", "2027-01-03"]);
});
