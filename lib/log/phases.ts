/** The changes of phase in the log, and the holds. */

import { formatInstant } from "../http/timestamp.ts";
import { holdsAt } from "../lifecycle/hold.ts";
import { momentAt, type Phase, type PolicyHold, type RoutePolicies } from "../lifecycle/policy.ts";
import type { Log } from "./log.ts";

/** Milliseconds between two comparisons. */
const INTERVAL_MS = 5_000;

interface PhaseLogOptions {
  /** Returns the policy of each route at present, by the route's name. */
  readonly policies: () => RoutePolicies;
  /** Returns the time in milliseconds since the epoch. */
  readonly clock: () => number;
  readonly log: Log;
}

/** The state of a route at a tick. */
interface RouteState {
  readonly phase: Phase;
  readonly holds: readonly PolicyHold[];
}

/**
 * Logs each change of a route's phase after this object was made or started, whether or not anybody
 * calls. Logs the beginning and the end of each hold, and at the first tick those that last.
 */
export class PhaseLog {
  readonly #options: PhaseLogOptions;
  readonly #states = new Map<string, RouteState>();
  #stopTimer = () => {};

  constructor(options: PhaseLogOptions) {
    this.#options = options;
    this.#notePhases();
  }

  /** Ticks now, and then every five seconds. The timer does not keep the process running. */
  start(): void {
    this.#notePhases(); // by now, the holds are known
    this.tick();
    const timer = setInterval(() => this.tick(), INTERVAL_MS);
    timer.unref();
    this.#stopTimer = () => clearInterval(timer);
  }

  /** Ticks a last time. */
  stop(): void {
    this.#stopTimer();
    this.tick();
  }

  #notePhases(): void {
    const { policies, clock } = this.#options;
    for (const [route, policy] of Object.entries(policies())) {
      this.#states.set(route, { phase: momentAt(policy, clock()).phase, holds: [] });
    }
  }

  /** Logs what has changed since the last tick. */
  tick(): void {
    const { policies, clock, log } = this.#options;
    const tick = clock();
    for (const [route, policy] of Object.entries(policies())) {
      const { phase, until } = momentAt(policy, tick);
      const before = this.#states.get(route);
      const holds = holdsAt(policy, tick);
      this.#states.set(route, { phase, holds });
      for (const { end, because } of withoutThose(holds, before?.holds)) {
        log({ event: "hold", route, hold: "begins", until: formatInstant(end), because });
      }
      for (const { because } of withoutThose(before?.holds ?? [], holds)) {
        log({ event: "hold", route, hold: "ends", because });
      }
      if (phase === before?.phase) continue;
      const next = until < Infinity ? { until: formatInstant(until) } : {};
      const ends = holds.map(({ end }) => end);
      const held = ends.length > 0 ? { heldUntil: formatInstant(Math.max(...ends)) } : {};
      log({ event: "phase", route, phase, ...next, ...held });
    }
  }
}

/** Returns holds without those that are among others, too. */
function withoutThose(
  holds: readonly PolicyHold[],
  others: readonly PolicyHold[] = [],
): PolicyHold[] {
  const keyOf = ({ start, because }: PolicyHold) => `${start} ${because}`;
  const known = new Set(others.map(keyOf));
  return holds.filter((hold) => !known.has(keyOf(hold)));
}
