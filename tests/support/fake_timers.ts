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
  const turn = globalThis.setTimeout;
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
  return {
    now: () => now,
    /** Lets milliseconds pass, and what begins in them end. */
    async pass(time: number) {
      for (const end = now + time;; now++) {
        for (const [key, timer] of timers) {
          if (timer.at > now) continue;
          if (timer.interval === undefined) timers.delete(key);
          else timer.at += timer.interval;
          timer.run();
          await new Promise((resolve) => turn(resolve));
        }
        if (now === end) break;
      }
      await new Promise((resolve) => turn(resolve));
    },
    [Symbol.dispose]: () => stubs.forEach((stub) => stub[Symbol.dispose]()),
  };
}
