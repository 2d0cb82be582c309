/** Timers, and the clock by which they run, in place of the runtime's. */

import { stub } from "@std/testing/mock";

/** A timer that is due, and is due again after an interval if it has one. */
interface Timer {
  at: number;
  readonly run: () => void;
  readonly interval?: number;
}

/** Waits for what takes no time, such as promises, unless something is over before. */
type Settle = (isOver: () => boolean) => Promise<unknown>;

const { setTimeout: realSetTimeout } = globalThis;

/** Lets what has begun in this process go on. */
function turn(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  realSetTimeout(resolve);
  return promise;
}

/**
 * Returns what waits until nothing has happened for some turns of the event loop, however long these
 * take on a busy machine.
 *
 * @param isActive Returns whether something has happened since it was last asked, or is under way.
 */
export function quietly(isActive: () => boolean): Settle {
  return async (isOver) => {
    for (let turns = 0; turns < QUIET_TURNS && !isOver();) {
      await turn();
      turns = isActive() ? 0 : turns + 1;
    }
  };
}

const QUIET_TURNS = 10;

/** Each takes a millisecond or more. What is asked of other programs may take as long. */
const MAX_IDLE_TURNS = 20_000;

/**
 * Replaces timers, and the clock by which they run, until it is disposed.
 *
 * @param settle Waits, whenever time is to pass, for what takes none.
 */
export function fakeTimers(settle: Settle = turn) {
  const timers = new Map<object, Timer>();
  let now = 0;
  const start = (made: Timer) => {
    const timer = { unref() {} };
    timers.set(timer, made);
    return timer;
  };
  const startOnce = <Args extends unknown[]>(
    run: (...args: Args) => void,
    delay = 0,
    ...args: Args
  ) => start({ at: now + delay, run: () => run(...args) });
  const repeat = (run: () => void, interval: number) =>
    start({ at: now + interval, run, interval });
  const stop = (timer: object) => void timers.delete(timer);
  const stubs: Disposable[] = [
    stub(globalThis, "setTimeout", startOnce as unknown as typeof setTimeout),
    stub(globalThis, "clearTimeout", stop as typeof clearTimeout),
    stub(globalThis, "setInterval", repeat as unknown as typeof setInterval),
    stub(globalThis, "clearInterval", stop as typeof clearInterval),
    stub(performance, "now", () => now),
  ];
  const never = () => false;
  /** Runs the first timer that is due by then. Returns whether there was one. */
  const runNext = (end: number) => {
    const [next] = [...timers].toSorted(([, a], [, b]) => a.at - b.at);
    if (next === undefined || next[1].at > end) return false;
    const [key, timer] = next;
    now = Math.max(now, timer.at);
    if (timer.interval === undefined) timers.delete(key);
    else timer.at += timer.interval;
    timer.run();
    return true;
  };
  return {
    now: () => now,
    /** The number of timers that are due at some time. */
    get pending() {
      return timers.size;
    },
    /** Lets milliseconds pass, and what begins in them end. */
    async pass(time: number) {
      const end = now + time;
      do await settle(never); while (runNext(end));
      now = end;
    },
    /** Lets milliseconds pass in which the process does nothing, as while it is suspended. */
    suspend(time: number) {
      now += time;
    },
    /** Lets as much time pass as a promise takes. */
    async during<T>(promise: Promise<T>): Promise<T> {
      let isSettled = false;
      const end = () => void (isSettled = true);
      promise.then(end, end);
      const isOver = () => isSettled;
      for (let idle = 0; !isSettled;) {
        await settle(isOver);
        if (isSettled || runNext(Infinity)) idle = 0;
        else if (++idle === MAX_IDLE_TURNS) throw new Error("The promise waits for no timer");
      }
      return await promise;
    },
    [Symbol.dispose]: () => stubs.forEach((stub) => stub[Symbol.dispose]()),
  };
}
