/**
 * The holds on record. Whoever may write to the ledger can hold a route. So a hold is checked when it
 * is read, and nothing that a ledger says can bring a refusal, or end a hold before its time, except
 * its release.
 */

import { isPrintable, printable } from "../../input/printable.ts";
import { type RouteHold, underHolds } from "../../lifecycle/hold.ts";
import type { RoutePolicies } from "../../lifecycle/policy.ts";
import { DAY_MS } from "../../http/timestamp.ts";

/** How long a hold lasts at most, in milliseconds, so that none is forgotten. */
export const MAX_HOLD_MS = 90 * DAY_MS;

/** The limit on the reason of a hold, in characters. */
export const MAX_REASON_LENGTH = 200;

/** A hold on record. Instants are milliseconds since the epoch, by the ledger's time. */
export interface RecordedHold {
  readonly id: string;
  /** The name of the route; `undefined` for all routes. */
  readonly route: string | undefined;
  /** When it was recorded. It has lasted since then. */
  readonly since: number;
  /** When it ends unless it is released. */
  readonly until: number;
  /** When it was released, if it was. */
  readonly released: number | undefined;
  /** The operator's reason. */
  readonly because: string;
}

/** The holds that were read, and what is wrong with others, which are ignored. */
export interface ReadHolds {
  readonly holds: readonly RecordedHold[];
  readonly faults: readonly string[];
}

/** The columns of a hold, in the order of the values that {@linkcode readHolds} is given. */
export const HOLD_COLUMNS = ["id", "route", "since", "until", "released", "because"] as const;

/** Reads rows of holds, each a list of values. */
export function readHolds(rows: readonly (readonly unknown[])[]): ReadHolds {
  const holds: RecordedHold[] = [];
  const faults: string[] = [];
  for (const row of rows) {
    const hold = holdOf(row);
    if (hold === undefined) faults.push(`a hold is ignored: ${printable(JSON.stringify(row))}`);
    else holds.push(hold);
  }
  return { holds, faults };
}

/** Returns the hold in a row; `undefined` if it is none that the command can have recorded. */
function holdOf(
  [id, route, since, until, released, because]: readonly unknown[],
): RecordedHold | undefined {
  if (typeof id !== "string" || !isReason(because)) return undefined;
  if (route !== null && (typeof route !== "string" || !isPrintable(route))) return undefined;
  if (!isInstant(since) || !isInstant(until)) return undefined;
  if (until <= since || until - since > MAX_HOLD_MS) return undefined;
  if (released !== null && !isInstant(released)) return undefined;
  return { id, route: route ?? undefined, since, until, released: released ?? undefined, because };
}

/** Returns whether a value is a reason that can be recorded and shown. */
export function isReason(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "" && value.length <= MAX_REASON_LENGTH &&
    isPrintable(value);
}

function isInstant(value: unknown): value is number {
  return Number.isSafeInteger(value) && Math.abs(value as number) <= 8.64e15;
}

/** Returns when a hold ends or ended. */
export function endOf({ until, released = until }: RecordedHold): number {
  return Math.min(until, released);
}

/** Returns the policy of each route under holds on record. Policies know whole seconds. */
export function policiesUnder(
  policies: RoutePolicies,
  holds: Iterable<RecordedHold>,
): RoutePolicies {
  const routeHolds = Array.from(holds, (hold): RouteHold => {
    const { route, since, because } = hold;
    const start = Math.floor(since / 1_000) * 1_000;
    return { route, start, end: Math.ceil(endOf(hold) / 1_000) * 1_000, because };
  }).filter(({ start, end }) => start < end); // a row may say that it was released before
  return underHolds(policies, routeHolds);
}

/** The policies of a process's routes, under the holds that it knows. */
export class HeldPolicies {
  readonly #policies: RoutePolicies;
  readonly #clock: () => number;
  readonly #holds = new Map<string, RecordedHold>();
  readonly #faults = new Set<string>();
  #current: RoutePolicies;

  /**
   * @param policies The policies in the configuration.
   * @param clock Returns the time in milliseconds since the epoch.
   */
  constructor(policies: RoutePolicies, clock: () => number) {
    this.#policies = this.#current = policies;
    this.#clock = clock;
  }

  /** The policies at present. Each change makes another object. */
  get current(): RoutePolicies {
    return this.#current;
  }

  /**
   * Learns what the ledger says of holds. One that it does not have any more, as after a restore,
   * lasts until its end. Of one that is known, only the release is learned: nothing else can change,
   * so whoever rewrites a row ends no hold by it.
   *
   * @returns Whether the policies changed, and what is wrong with holds that are ignored, once.
   */
  learn({ holds, faults }: ReadHolds): { hasChanged: boolean; faults: readonly string[] } {
    const now = this.#clock();
    const news = holds.map((hold) => {
      const known = this.#holds.get(hold.id);
      if (known !== undefined) return { ...known, released: hold.released };
      return { ...hold, since: Math.min(hold.since, now) }; // even if the clock here is behind
    }).filter((hold) => JSON.stringify(hold) !== JSON.stringify(this.#holds.get(hold.id)));
    for (const hold of news) this.#holds.set(hold.id, hold);
    const hasChanged = news.length > 0;
    if (hasChanged) this.#current = policiesUnder(this.#policies, this.#holds.values());
    const others = faults.filter((fault) => !this.#faults.has(fault));
    for (const fault of others) this.#faults.add(fault);
    return { hasChanged, faults: others };
  }
}
