/** The changes of phase in the log. */

import { formatInstant } from "../http/timestamp.ts";
import { momentAt, type RoutePolicies } from "../lifecycle/policy.ts";
import type { Log } from "./log.ts";

/** Milliseconds between two comparisons. */
const INTERVAL_MS = 5_000;

interface PhaseLogOptions {
  /** The policy of each route, by its name. */
  readonly policies: RoutePolicies;
  /** Returns the time in milliseconds since the epoch. */
  readonly clock: () => number;
  readonly log: Log;
}

/** Logs each change of a route's phase after this object was made, whether or not anybody calls. */
export class PhaseLog {
  readonly #options: PhaseLogOptions;
  #lastTick: number;
  #stopTimer = () => {};

  constructor(options: PhaseLogOptions) {
    this.#options = options;
    this.#lastTick = options.clock();
  }

  /** Starts ticking every five seconds. The timer does not keep the process running. */
  start(): void {
    const timer = setInterval(() => this.tick(), INTERVAL_MS);
    timer.unref();
    this.#stopTimer = () => clearInterval(timer);
  }

  /** Ticks a last time. */
  stop(): void {
    this.#stopTimer();
    this.tick();
  }

  /** Logs each route whose phase has changed since the last tick. */
  tick(): void {
    const { policies, clock, log } = this.#options;
    const tick = clock();
    for (const [route, policy] of Object.entries(policies)) {
      const { phase, until } = momentAt(policy, tick);
      if (phase === momentAt(policy, this.#lastTick).phase) continue;
      const next = until < Infinity ? { until: formatInstant(until) } : {};
      log({ event: "phase", route, phase, ...next });
    }
    this.#lastTick = tick;
  }
}
