/** On which days a route that nobody calls is clear, by the gate and a clock of the test's. */

import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { readAllSessions } from "../../lib/usage/verdict/evidence.ts";
import { Recorder } from "../../lib/usage/record/recorder.ts";
import type { Gap } from "../../lib/usage/verdict/gaps.ts";
import { reportUsage, type UsageReport } from "../../lib/usage/verdict/report.ts";
import type { State } from "../../lib/usage/verdict/verdict.ts";
import { ANSWER, countOne, PROCESS } from "../support/counted_call.ts";
import { ledgerAt, openLedgerDatabase } from "../support/ledger_at.ts";
import { DAY, HOUR, MINUTE } from "../support/usage_report.ts";

const SECOND = 1_000;
/** The record begins at this noon. */
const START = Date.parse("2027-02-01T12:00:00Z");
/** Days before the gate can be clear, because it asks for 30 whole ones. */
const FIRST_DAYS = 31;
const DAYS = 62;

const { route } = ANSWER;
const POLICIES = { [route]: definePolicy({ deprecatedAt: "2027-01-01" }) };

/** Processes of one record, in memory, and the clock by which they live. */
async function openWorld() {
  const database = await openLedgerDatabase();
  const clock = { now: START };
  const reader = ledgerAt(database, () => clock.now);
  const alive = new Set<Recorder>();
  const flush = async () => {
    for (const recorder of alive) await recorder.flush();
  };
  const world = {
    clock,
    alive,
    /** Lets time pass, and then every process send a heartbeat. */
    async pass(time: number) {
      clock.now += time;
      await flush();
    },
    async start(onDemand = false): Promise<Recorder> {
      const started = clock.now;
      // The list of sessions would be read at each start, and not used.
      const ledger = Object.assign(ledgerAt(database, () => clock.now), {
        sessions: () => Promise.resolve([]),
      });
      const recorder = new Recorder({
        open: () =>
          Promise.resolve({ ledger, checkWriting: async () => {}, close: async () => {} }),
        policies: POLICIES,
        process: { ...PROCESS, started },
        onDemand,
        retainDays: 400,
        clock: () => clock.now,
        lifetime: () => clock.now - started,
        log() {},
      });
      await recorder.start();
      alive.add(recorder);
      return recorder;
    },
    async close(recorder: Recorder) {
      alive.delete(recorder);
      await recorder.close();
    },
    /** Kills a process some seconds after its last heartbeat. */
    kill(recorder: Recorder) {
      alive.delete(recorder);
      clock.now += 4 * SECOND;
      return Promise.resolve();
    },
    /** Copies the tables, and returns a function that puts them back. */
    async copy() {
      const tables = ["usage", "day", "session", "ledger"].map((name) => `media_head_${name}`);
      const run = (texts: string[]) => database.transact(texts.map((text) => ({ text })));
      await run(tables.map((name) => `CREATE TABLE copy_${name} AS SELECT * FROM ${name}`));
      return () =>
        run(tables.flatMap((name) => [
          `DELETE FROM ${name}`,
          `INSERT INTO ${name} SELECT * FROM copy_${name}`,
          `DROP TABLE copy_${name}`,
        ]));
    },
    async gate(days: number): Promise<UsageReport> {
      const sources = [{ ledger: reader, name: "the record" }];
      return await reportUsage(sources, await readAllSessions(sources), { days });
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
  return world;
}

type World = Awaited<ReturnType<typeof openWorld>>;

/** Replaces timers: processes send heartbeats when the test says so, and those killed send none. */
function withoutTimers(): Disposable {
  const timer = { unref() {} };
  const start = (run: () => void, delay = 0) => {
    if (delay === 0) queueMicrotask(run);
    return timer;
  };
  const stubs = new DisposableStack();
  stubs.use(stub(globalThis, "setTimeout", start as unknown as typeof setTimeout));
  stubs.use(stub(globalThis, "clearTimeout", () => {}));
  return stubs;
}

/** Restarts the only process: it stops with a word, and the next one starts some time later. */
async function restart(world: World, time: number): Promise<void> {
  for (const recorder of world.alive) await world.close(recorder);
  world.clock.now += time;
  await world.start();
}

/** A process takes over from another, which is ended as told. */
async function deploy(world: World, end: "close" | "kill"): Promise<void> {
  const [old] = world.alive;
  await world.start();
  await world.pass(10 * SECOND);
  if (old !== undefined) await world[end](old);
}

/** The database fails over while the process runs. What was committed last may be lost. */
async function failOver(world: World, hasLoss: boolean): Promise<void> {
  await world.pass(5 * SECOND);
  const restore = await world.copy();
  if (hasLoss) await world.pass(5 * SECOND);
  await restore();
  await world.pass(30 * SECOND);
}

/** What happens in a night, from 3:00 on, and what the gate says of it at noon. */
interface Row {
  readonly what: string;
  /** @param day The number of nights before. */
  readonly night: (world: World, day: number) => Promise<unknown>;
  /** Whether nothing runs but what the nights start. */
  readonly isOnDemand?: true;
  /** The gaps that the last gate names, by their kind. */
  readonly named: Partial<Record<Gap["kind"], number>>;
  /** From when on the last verdict can be clear, if it is unknown. */
  readonly clearFrom?: string;
}

const ROWS: readonly Row[] = [
  {
    what: "a crash a week",
    async night(world, day) {
      if (day % 7 !== 3) return;
      const [recorder] = world.alive;
      if (recorder !== undefined) await world.kill(recorder);
      await world.start();
    },
    named: { silent: 9 }, // in sixty days
  },
  {
    what: "a reboot of two minutes a week",
    night: async (world, day) => day % 7 === 3 && await restart(world, 2 * MINUTE),
    named: { stop: 5 },
  },
  {
    what: "a restart of five minutes each night",
    night: (world) => restart(world, 5 * MINUTE),
    named: { stop: 31 },
  },
  {
    what: "a deployment each night, with close()",
    night: (world) => deploy(world, "close"),
    named: {},
  },
  {
    what: "a deployment each night, without close()",
    night: (world) => deploy(world, "kill"),
    named: { silent: 61 },
  },
  {
    what: "a failover a month, without loss",
    night: async (world, day) => day % 30 === 15 && await failOver(world, false),
    named: {},
  },
  {
    what: "a failover a month, with loss",
    night: async (world, day) => day % 30 === 15 && await failOver(world, true),
    named: { lost: 1 },
  },
  {
    what: "one to three pods, of which one in twenty is killed",
    async night(world, day) {
      const [oldest] = world.alive;
      await world.start();
      const third = await world.start();
      await world.pass(6 * HOUR);
      for (const [at, pod] of [oldest, third].entries()) {
        if (pod !== undefined) await world[(2 * day + at) % 20 === 7 ? "kill" : "close"](pod);
      }
    },
    named: { silent: 6 },
  },
  {
    what: "instances on demand, of which ten a day end without a word",
    async night(world) {
      const start = world.clock.now;
      for (let instance = 0; instance < 10; instance++) {
        world.clock.now = start + instance * 54 * MINUTE;
        const recorder = await world.start(true);
        await world.pass(3 * MINUTE);
        await world.kill(recorder);
      }
    },
    isOnDemand: true,
    named: { silent: 61 * 10 },
  },
  {
    what: "an hour without a process each night",
    night: (world) => restart(world, HOUR),
    named: { stop: 31 },
    clearFrom: "2027-04-12",
  },
];

/** Returns the number of gaps of each kind. */
const kindsOf = ({ gaps }: UsageReport) => {
  const kinds = [...Map.groupBy(gaps, ({ kind }) => kind)];
  return Object.fromEntries(kinds.map(([kind, { length }]) => [kind, length]));
};

for (const { what, night, isOnDemand, named, clearFrom } of ROWS) {
  const state = clearFrom === undefined ? "clear" : "unknown";
  Deno.test(`a route that nobody calls is ${state} on each day after a month: ${what}`, async () => {
    using _ = withoutTimers();
    await using world = await openWorld();
    const first = await world.start(isOnDemand);
    if (isOnDemand) await world.kill(first);
    const states: Record<string, number> = {};
    let last = await world.gate(30);
    for (let day = 1; day <= DAYS; day++) {
      await world.pass(15 * HOUR); // it is 3:00
      await night(world, day - 1);
      await world.pass(START + day * DAY - world.clock.now); // it is noon
      last = await world.gate(30);
      if (day < FIRST_DAYS) assertEquals(last.state, "unknown", "the record is too young");
      else states[last.state] = (states[last.state] ?? 0) + 1;
    }
    assertEquals(states, { [state]: 1 + DAYS - FIRST_DAYS });
    assertEquals([kindsOf(last), last.from, last.clearFrom], [named, "2027-03-05", clearFrom]);
  });
}

/** How often a process dies at its calls on one day, and what the gate says on the next noon. */
const DEATHS: [deaths: number, onDemand: boolean, state: State][] = [
  [47, false, "clear"],
  [48, false, "unknown"], // a thirtieth of a day has 48 minutes
  [48, true, "clear"],
];

for (const [deaths, onDemand, state] of DEATHS) {
  const how = onDemand ? "on demand" : "otherwise";
  Deno.test(`a process that dies 0.05 s after each answer is named: ${deaths} times in a day, ${how}`, async () => {
    using _ = withoutTimers();
    await using world = await openWorld();
    await world.start(onDemand);
    await world.pass(40 * DAY + DAY / 2); // a day begins
    for (let death = 0; death < deaths; death++) {
      await world.pass(15 * MINUTE);
      const [recorder] = world.alive;
      if (recorder === undefined) break;
      countOne(recorder.meter, { userAgent: "curl" });
      world.clock.now += 50; // its heartbeat would come after a tenth of a second
      world.alive.delete(recorder);
      await world.start(onDemand);
    }
    await world.pass(START + 42 * DAY - world.clock.now);
    const report = await world.gate(1);
    assertEquals([report.state, kindsOf(report)], [state, { silent: deaths }]);
  });
}
