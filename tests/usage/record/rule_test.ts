/**
 * A schedule for each part of the rule by which a record knows of every call: intents, flushes, leases,
 * and the order in which a gate reads. Where a part is left out, a call that is not on record is
 * answered and the gate says "clear", or the gate says "unknown" where it need not.
 */

import { assert, assertEquals } from "@std/assert";
import type { Ledger } from "../../../lib/usage/record/ledger.ts";
import { DAY } from "../../support/counted_call.ts";
import { fakeTimers } from "../../support/fake_timers.ts";
import { down, openScene, ROUTE } from "../../support/recorder_scene.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The methods of the ledger that a server uses. */
const METHODS = ["add", "begin", "intend", "session", "time"] as const;

/**
 * Opens a record that a server has kept for a week. That server answers no call, and sends heartbeats
 * whenever time passes. It is noon now.
 */
async function openWorld() {
  const timers = fakeTimers();
  const scene = await openScene();
  const { recorder: other } = await scene.start();
  const pass = async (time: number) => {
    scene.pass(time);
    await other.flush();
  };
  await pass(7 * DAY);
  /** Waits for what waits for timers. */
  const letTimersRun = async <T>(promise: Promise<T>, onPass = () => {}): Promise<T> => {
    let isDone = false;
    promise.then(() => isDone = true, () => isDone = true);
    while (!isDone) {
      await timers.pass(200);
      onPass();
    }
    return await promise;
  };
  return {
    letTimersRun,
    ...scene,
    timers,
    other,
    pass,
    letTimeGoOn: scene.pass,
    /** Starts a server that can be cut off from the ledger. Nobody knows whether it was killed then. */
    async start() {
      const [ledger, machine] = [scene.open(), { ahead: 0, slept: 0 }];
      const { recorder, serve, call } = await scene.start({
        ledger,
        clock: () => scene.clocks.here + machine.ahead,
        lifetime: () => scene.clocks.lifetime - machine.slept,
      });
      return {
        machine,
        call,
        recorder,
        intents: recorder.intents,
        ledger,
        /** Answers a call, if it may. Returns whether it did. */
        async serve() {
          const serving = serve();
          await timers.pass(2_000);
          return await serving;
        },
        cutOff() {
          for (const name of METHODS) ledger[name] = down;
        },
        async sleep(time: number) {
          machine.slept += time;
          await pass(time);
        },
        connect() {
          for (const name of METHODS) delete (ledger as Partial<Ledger>)[name];
        },
      };
    },
    /** Asks the gate for yesterday and today, while time goes on and servers flush. */
    async ask(through?: Ledger) {
      return await letTimersRun(scene.gate(["--route", ROUTE], through), () => scene.pass(200));
    },
    async [Symbol.asyncDispose]() {
      timers[Symbol.dispose]();
      await scene[Symbol.asyncDispose]();
    },
  };
}

type World = Awaited<ReturnType<typeof openWorld>>;
type Server = Awaited<ReturnType<World["start"]>>;

/** Answers a call, and is killed before that is on record. */
async function serveAndDie(server: Server): Promise<boolean> {
  const isServed = await server.serve();
  server.cutOff();
  return isServed;
}

/**
 * A part of the rule, and a schedule. It returns whether a call was answered that is not on record;
 * then the gate is asked.
 */
const PARTS: [
  part: string,
  schedule: (world: World) => Promise<boolean>,
  isMissing: boolean,
  verdict: "clear" | "unknown",
][] = [
  [
    "an intent is in the ledger before a call is answered",
    async ({ start }) => await serveAndDie(await start()),
    true,
    "unknown",
  ],
  [
    "a server that falls silent without one has answered nothing",
    async ({ start, pass }) => {
      const server = await start();
      server.cutOff();
      const isServed = await server.serve();
      await pass(2 * MINUTE);
      return isServed;
    },
    false,
    "clear",
  ],
  [
    "an intent that lands late is void",
    async ({ start, pass, timers }) => {
      const server = await start();
      const { ledger, recorder } = server;
      const intend = ledger.intend.bind(ledger);
      const landing = Promise.withResolvers<void>();
      ledger.intend = async (...args) => {
        await landing.promise;
        return await intend(...args);
      };
      const isServed = await server.serve();
      for (let flush = 0; flush < 3; flush++) {
        await pass(5_000);
        await recorder.flush();
      }
      landing.resolve();
      await timers.pass(10);
      await recorder.stop();
      return isServed;
    },
    false,
    "clear",
  ],
  [
    "an intent that was given up is deleted, though it lands in the next flush",
    async ({ start, timers, pass }) => {
      const server = await start();
      const { ledger, recorder } = server;
      const { intend, add } = { intend: ledger.intend.bind(ledger), add: ledger.add.bind(ledger) };
      const landing = Promise.withResolvers<void>();
      ledger.intend = async (...args) => {
        await landing.promise;
        return await intend(...args);
      };
      const isServed = await server.serve();
      ledger.add = async (...args) => {
        landing.resolve();
        await timers.pass(10);
        ledger.add = add;
        return await add(...args);
      };
      for (let flush = 0; flush < 3; flush++) {
        await pass(5_000);
        await recorder.flush();
      }
      return isServed;
    },
    false,
    "clear",
  ],
  [
    "a lease ends by the machine's clock, as after a sleep",
    async ({ start }) => {
      const server = await start();
      await server.serve();
      await server.recorder.flush();
      server.cutOff();
      await server.sleep(3 * DAY);
      return await server.serve();
    },
    false,
    "clear",
  ],
  [
    "a lease ends by the lifetime, whatever the clock was set to",
    async ({ start, pass }) => {
      const server = await start();
      await server.serve();
      await server.recorder.flush();
      server.cutOff();
      await pass(3 * DAY);
      server.machine.ahead -= 3 * DAY;
      return await server.serve();
    },
    false,
    "clear",
  ],
  [
    "a lease ends when the clock was set back before it",
    async ({ start }) => {
      const server = await start();
      await server.serve();
      await server.recorder.flush();
      server.cutOff();
      await server.sleep(3 * DAY);
      server.machine.ahead -= 3 * DAY + 1;
      return await server.serve();
    },
    false,
    "clear",
  ],
  [
    "a lease ends when the lifetime goes back before it",
    async ({ start, pass }) => {
      const server = await start();
      await server.serve();
      await server.recorder.flush();
      server.cutOff();
      await pass(3 * DAY); // the machine goes on from a copy of it, which has the time of then
      Object.assign(server.machine, { slept: 3 * DAY + 1, ahead: -3 * DAY });
      return await server.serve();
    },
    false,
    "clear",
  ],
  [
    "a lease counts from when its renewal was first sent",
    async ({ start, pass }) => {
      const server = await start();
      const { ledger, recorder, intents } = server;
      const add = ledger.add.bind(ledger);
      await server.serve();
      await recorder.flush();
      intents.arrive(ROUTE); // a call that goes on, so that the intent stays
      await pass(HOUR);
      ledger.add = async (...args) => {
        await add(...args);
        return await down(); // its outcome is unknown for long
      };
      await recorder.flush();
      await pass(19 * HOUR);
      ledger.add = async (...args) => {
        const time = await add(...args);
        server.cutOff(); // after the renewal was found to be recorded
        server.ledger.session = Object.getPrototypeOf(ledger).session;
        return time;
      };
      await recorder.flush();
      await pass(20 * HOUR); // the lease ended 15 hours ago, by the ledger's time
      const isServed = await server.serve();
      await pass(21 * HOUR); // so that the period begins in between
      return isServed;
    },
    false,
    "clear",
  ],
  [
    "a renewal counts once it is recorded",
    async ({ start, pass, letTimersRun }) => {
      const server = await start();
      const { ledger, recorder, intents } = server;
      intents.arrive(ROUTE); // a call that goes on, so that the intent stays
      await server.serve();
      await recorder.flush();
      await pass(23 * HOUR);
      const letter = (index: number) => String.fromCharCode(97 + index);
      for (let index = 0; index < 150; index++) {
        server.call(`App-${letter(index % 26)}${letter(Math.floor(index / 26))}`);
      }
      const add = ledger.add.bind(ledger);
      ledger.add = async (...args) => {
        const time = await add(...args);
        server.cutOff(); // after the first part of the flush
        return time;
      };
      await letTimersRun(recorder.flush());
      await pass(17 * HOUR); // the lease ended 16 hours ago
      const isServed = await server.serve();
      await pass(21 * HOUR); // so that the period begins in between
      return isServed;
    },
    false,
    "clear",
  ],
  [
    "an intent is kept while a call is in flight",
    async ({ start, pass }) => {
      const server = await start();
      const { recorder, intents } = server;
      intents.arrive(ROUTE);
      await intents.hold(ROUTE);
      for (let flush = 0; flush < 3; flush++) {
        await pass(11 * MINUTE);
        await recorder.flush();
      }
      server.cutOff(); // it is killed before the response has a head
      await pass(2 * MINUTE);
      return true;
    },
    true,
    "unknown",
  ],
  [
    "an intent is not settled while a call is in flight",
    async ({ start }) => {
      const { intents } = await start();
      intents.arrive(ROUTE);
      await intents.hold(ROUTE);
      return true;
    },
    true,
    "unknown",
  ],
  [
    "a running server is asked for what it has not recorded yet",
    async ({ start }) => {
      const server = await start();
      return await serveAndDie(server);
    },
    true,
    "unknown",
  ],
  [
    "a deleted intent is forgotten before",
    async ({ start, pass }) => {
      const server = await start();
      const { ledger, recorder, intents } = server;
      await server.serve();
      await recorder.flush();
      await pass(10 * MINUTE + 2 * DAY); // so that the call is not in the period
      let isServed = false;
      ledger.add = async (...args) => {
        const time = await Object.getPrototypeOf(ledger).add.apply(ledger, args);
        isServed ||= intents.isHeld(ROUTE);
        server.cutOff();
        return time;
      };
      await recorder.flush();
      return isServed;
    },
    false,
    "clear",
  ],
  [
    "a call is answered after a heartbeat that deletes, under another intent",
    async ({ start, pass }) => {
      const server = await start();
      const { ledger, recorder } = server;
      await server.serve();
      await recorder.flush();
      await pass(10 * MINUTE + 2 * DAY);
      const read = Promise.withResolvers<void>();
      ledger.add = async (...args) => {
        await read.promise;
        return await Object.getPrototypeOf(ledger).add.apply(ledger, args);
      };
      const flushing = recorder.flush();
      const isServed = await server.serve(); // while the heartbeat is under way
      read.resolve();
      await flushing;
      server.cutOff();
      return isServed;
    },
    true,
    "unknown",
  ],
  [
    "after a loss, the record starts a lease later",
    async ({ start, copy, pass }) => {
      const restore = await copy();
      await pass(5_000); // the copy does not have the other server's last heartbeat
      const server = await start();
      await server.serve();
      server.cutOff();
      await restore();
      await pass(HOUR);
      await pass(13 * HOUR);
      const isServed = await server.serve(); // on the old database's word
      await pass(22 * HOUR);
      return isServed;
    },
    true,
    "unknown",
  ],
  [
    "after a restart, the record starts a lease later",
    async ({ start, copy, pass, other, ledger }) => {
      await other.stop();
      const restore = await copy();
      const server = await start();
      await server.serve();
      server.cutOff();
      await restore();
      await ledger.restart();
      const next = await start();
      await pass(14 * HOUR);
      const isServed = await server.serve();
      await pass(22 * HOUR);
      await next.recorder.flush();
      return isServed;
    },
    true,
    "unknown",
  ],
  [
    "an intent that a failover has lost is not held",
    async ({ start, copy, pass, timeline }) => {
      const server = await start();
      const restore = await copy();
      server.intents.arrive(ROUTE); // a call that goes on, so that the intent stays
      await server.serve();
      await restore();
      timeline.name = "B";
      for (let hours = 0; hours < 40; hours++) {
        await server.recorder.flush(); // which would renew it
        await pass(hours === 0 ? 5_000 : HOUR);
      }
      const isServed = await serveAndDie(server);
      await pass(21 * HOUR);
      return isServed;
    },
    true,
    "unknown",
  ],
  [
    "a change of the timeline is a stop, and a lease",
    async ({ start, copy, pass, timeline }) => {
      const server = await start();
      const restore = await copy();
      await server.serve();
      server.cutOff();
      await restore();
      timeline.name = "B";
      await pass(5_000);
      await pass(14 * HOUR);
      const isServed = await server.serve(); // on the old primary's word
      await pass(22 * HOUR);
      return isServed;
    },
    true,
    "unknown",
  ],
];

for (const [part, schedule, isMissing, verdict] of PARTS) {
  Deno.test(`the rule: ${part}`, async () => {
    await using world = await openWorld();
    const missing = await schedule(world);
    await world.other.flush();
    const { verdict: state } = await world.ask();
    assertEquals([missing, state], [isMissing, verdict]);
  });
}

/** Returns the ledger as a gate reads it, where something happens before one of its reads. */
function happening(ledger: Ledger, happen: () => Promise<unknown>, at: number): Ledger {
  let reads = 0;
  const before = async () => void (++reads === at && await happen());
  for (const name of ["time", "timeline", "sessions", "intents", "started"] as const) {
    const read = ledger[name].bind(ledger) as () => Promise<never>;
    ledger[name] = async () => {
      await before();
      return await read();
    };
  }
  const usage = ledger.usage.bind(ledger);
  ledger.usage = async function* (fromDay) {
    await before();
    yield* usage(fromDay);
  };
  return ledger;
}

/** More reads than a gate makes while it does not wait. */
const READS = 8;

Deno.test("the rule: whenever a server sends a heartbeat, a gate finds its intent, or its call", async () => {
  for (let at = 1; at <= READS; at++) {
    await using world = await openWorld();
    const server = await world.start();
    await server.serve();
    const { verdict } = await world.ask(happening(world.open(), () => server.recorder.stop(), at));
    assert(verdict !== "clear", `stopped before read ${at}`);
  }
});

Deno.test("the rule: a gate that is asked after a call is not clear", async () => {
  for (let at = 1; at <= READS; at++) {
    await using world = await openWorld();
    const { start, clocks, letTimeGoOn } = world;
    const server = await start();
    let servedAt = Infinity;
    const happen = async () => {
      letTimeGoOn(1);
      servedAt = clocks.database;
      await server.intents.hold(ROUTE);
      server.cutOff();
      letTimeGoOn(1);
    };
    const { verdict, now } = await world.ask(happening(world.open(), happen, at));
    assert(verdict !== "clear" || Date.parse(now) <= servedAt, `served before read ${at}`);
  }
});
