/** Timers, and the clock by which they run, in place of the runtime's. */

import { stub } from "@std/testing/mock";

/** A timer that is due, and is due again after an interval if it has one. */
interface Timer {
  at: number;
  readonly run: () => void;
  readonly interval?: number;
}

/** Replaces timers, and the clock by which they run, until it is disposed. */
export function fakeTimers() {
  const { setTimeout } = globalThis;
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
  const turn = () => new Promise<void>((resolve) => void setTimeout(resolve));
  /** Runs the first timer that is due by then. Returns whether there was one. */
  const runNext = async (end: number) => {
    const [next] = [...timers].toSorted(([, a], [, b]) => a.at - b.at);
    if (next === undefined || next[1].at > end) return false;
    const [key, timer] = next;
    now = Math.max(now, timer.at);
    if (timer.interval === undefined) timers.delete(key);
    else timer.at += timer.interval;
    timer.run();
    await turn();
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
      await turn();
      while (await runNext(end));
      now = end;
    },
    /** Lets milliseconds pass in which the process does nothing, as while it is suspended. */
    suspend(time: number) {
      now += time;
    },
    /** Lets as much time pass as a promise takes. */
    async during<T>(promise: Promise<T>): Promise<T> {
      let isSettled = false;
      const settle = () => void (isSettled = true);
      promise.then(settle, settle);
      do await turn(); while (!isSettled && await runNext(Infinity));
      if (!isSettled) throw new Error("Nothing is left that the promise could wait for");
      return await promise;
    },
    [Symbol.dispose]: () => stubs.forEach((stub) => stub[Symbol.dispose]()),
  };
}
