/** Processes that keep a record in one ledger, by clocks and timers of the test. */

import { StorageError } from "../../lib/errors/storage_error.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { LogEvent } from "../../lib/log/log.ts";
import type { Ledger } from "../../lib/usage/record/ledger.ts";
import { Recorder, type RecorderOptions } from "../../lib/usage/record/recorder.ts";
import { countOne, NOON, PROCESS } from "./counted_call.ts";
import { fakeTimers } from "./fake_timers.ts";
import { ledgerAt, openLedgerDatabase } from "./ledger_at.ts";

/** The route that every process counts. */
export const ROUTE = "/audio/:token";

/**
 * How a method of the ledger fails: before it does anything, after it has done everything, by an error,
 * or not until it is released.
 */
type Fault = "away" | "unheard" | "hung" | Error;

const AWAY = new StorageError("sqlite", "down");

/** An empty ledger at noon, and the clocks of the database and of one machine. */
export async function openScene() {
  const database = await openLedgerDatabase();
  const timers = fakeTimers();
  const ahead = { here: NOON, database: NOON };
  const clocks = {
    /** The clock of the machine. */
    get here() {
      return ahead.here + timers.now();
    },
    set here(time) {
      ahead.here = time - timers.now();
    },
    get database() {
      return ahead.database + timers.now();
    },
    set database(time) {
      ahead.database = time - timers.now();
    },
  };
  const ledger = ledgerAt(database, () => clocks.database);
  const faults: { [Method in keyof Ledger | "open"]?: Fault | undefined } = {};
  const onAsk: (method: keyof typeof faults) => unknown = () => {};
  const watched = { onAsk, inFlight: 0, most: 0, open: 0 };
  const hung = Promise.withResolvers<void>();
  const through = async <T>(method: keyof typeof faults, act: () => Promise<T>) => {
    await watched.onAsk(method);
    watched.most = Math.max(watched.most, ++watched.inFlight);
    try {
      const fault = faults[method];
      if (fault === "away") throw AWAY;
      if (fault instanceof Error) throw fault;
      if (fault === "hung") await hung.promise;
      const result = await act();
      if (fault === "unheard") throw AWAY;
      return result;
    } finally {
      watched.inFlight--;
    }
  };
  /** The ledger as processes reach it. */
  const reached = new Proxy(ledger, {
    get: (target, method: keyof Ledger) => (...args: never[]) =>
      through(method, () => Reflect.apply(target[method], target, args)),
  });
  const close = () => {
    watched.open--;
    return Promise.resolve();
  };
  return {
    clocks,
    timers,
    database,
    ledger,
    /** What fails for processes that reach the ledger from now on. */
    faults,
    /** Ends every fault, and what hangs. */
    mend() {
      for (const method of Object.keys(faults)) delete faults[method as keyof typeof faults];
      hung.resolve();
    },
    /**
     * Whom to tell what processes ask of the ledger, how much they asked at once at most, and how many
     * have it open.
     */
    watched,
    /** Lets milliseconds pass, and all that is due in them happen. */
    pass: (time: number) => timers.pass(time),
    /** The machine sleeps: its monotonic clock stands still. */
    sleep(time: number) {
      ahead.here += time;
      ahead.database += time;
    },
    /** Makes a process that is not started. */
    make(options: Partial<RecorderOptions> = {}) {
      const events: LogEvent[] = [];
      const checkWriting = () => Promise.resolve();
      const open = () => {
        watched.open++;
        return Promise.resolve({ ledger: reached, checkWriting, close });
      };
      const recorder = new Recorder({
        open: () => through("open", open),
        policies: { [ROUTE]: definePolicy({ deprecatedAt: "2027-01-01" }) },
        ...{ process: PROCESS, onDemand: false, retainDays: 30 },
        clock: () => clocks.here,
        lifetime: () => timers.now() + 0.25,
        log: (event) => events.push(event),
        ...options,
      });
      /** Answers a call, and counts it. */
      const call = (userAgent = "curl", route = ROUTE) =>
        countOne(recorder.meter, { userAgent, route });
      /** Stops it, and lets as much time pass as that takes. */
      const stop = () => timers.during(recorder.close());
      return { recorder, events, call, stop };
    },
    /** Starts a process, and lets as much time pass as that takes. */
    async start(options?: Partial<RecorderOptions>) {
      const process = this.make(options);
      await timers.during(process.recorder.start());
      return process;
    },
    /**
     * The sessions on record in the order in which they began: from when to when each counted, in
     * seconds since noon, and since when calls are lost, if any are. Most have stopped; of others, it
     * says so: "0 to 5, then 9 to 9; 7 to 9, open" are one that was continued, and one that is open.
     */
    sessions: async () =>
      (await ledger.sessions()).toSorted((a, b) => a.began - b.began || a.reported - b.reported)
        .map(({ began, reported, ended = "open", lost }) => {
          const since = (time: number) => (time - NOON) / 1_000;
          const end = ended === "stopped" ? "" : `, ${ended}`;
          const loss = lost === undefined ? "" : `, lost since ${since(lost)}`;
          return `${since(began)} to ${since(reported)}${end}${loss}`;
        }).join("; ").replaceAll(", continued; ", ", then "),
    /** The number of calls on record. */
    calls: async () =>
      (await Array.fromAsync(ledger.usage(""))).reduce((sum, { calls }) => sum + calls, 0),
    /** Copies the tables, and returns a function that puts them back. */
    async copy() {
      const tables = ["usage", "day", "session", "hold", "ledger"].map((name) =>
        `media_head_${name}`
      );
      const run = (...texts: string[]) => database.transact(texts.map((text) => ({ text })));
      await run(...tables.flatMap((name) => [
        `DROP TABLE IF EXISTS copy_${name}`,
        `CREATE TABLE copy_${name} AS SELECT * FROM ${name}`,
      ]));
      return () =>
        run(...tables.flatMap((name) => [
          `DELETE FROM ${name}`,
          `INSERT INTO ${name} SELECT * FROM copy_${name}`,
        ]));
    },
    async [Symbol.asyncDispose]() {
      timers[Symbol.dispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}
