/**
 * Measuring contenders side by side. Machines are noisy and differ, so each round measures every
 * contender in turn, and only ratios within a round are compared.
 */

import type { Contender } from "./contender.ts";
import { type Load, sendAtRate, sendLoad } from "./load.ts";

/** How much to measure. */
export interface Effort {
  readonly rounds: number;
  /** Rounds at a fixed rate. */
  readonly pacedRounds: number;
  /** Seconds of each round. */
  readonly pacedSeconds: number;
}

/** What to measure. */
export interface Case {
  readonly name: string;
  /** The load of one round. */
  readonly load: Load;
  /** The loads of contenders that differ, by name. */
  readonly loads?: Readonly<Record<string, Load>>;
  /** Requests per second, at the fixed rate. */
  readonly rate: number;
  /** Requests in flight at full speed; defaults to 16. */
  readonly connections?: number;
}

/** The measurements of one contender, one per round. */
export interface Result {
  readonly name: string;
  /** Nanoseconds of CPU of the server process per request. */
  readonly cpu: number[];
  /** Requests per second at full speed. */
  readonly rate: number[];
  /** Milliseconds from when a request was due to its response, at the fixed rate. */
  readonly times: number[];
}

/** Warm-up rounds, in which code is compiled and caches are filled. */
const WARM_UP = 4;

/** Measures contenders side by side. */
export async function measure(
  plan: Case,
  contenders: readonly Contender[],
  { rounds, pacedRounds, pacedSeconds }: Effort,
): Promise<Result[]> {
  const { rate, connections = 16 } = plan;
  const results = contenders.map(({ name }): Result => (
    { name, cpu: [], rate: [], times: [] }
  ));
  for (const contender of contenders) {
    const load = loadOf(plan, contender);
    await sendLoad(contender.port, { ...load, count: WARM_UP * load.count }, { connections });
  }
  for (let round = 0; round < rounds; round++) {
    for (const [index, contender] of contenders.entries()) {
      const result = results[index] as Result;
      const load = loadOf(plan, contender);
      const [start, before] = [performance.now(), contender.cpu()];
      await sendLoad(contender.port, load, { connections, isAwake: true });
      result.cpu.push((contender.cpu() - before) / load.count);
      result.rate.push(load.count / (performance.now() - start) * 1000);
    }
  }
  for (let round = 0; round < pacedRounds; round++) {
    for (const [index, contender] of contenders.entries()) {
      const paced = { ...loadOf(plan, contender), count: rate * pacedSeconds };
      results[index]?.times.push(...await sendAtRate(contender.port, paced, rate));
    }
  }
  return results;
}

/** Returns the load of a contender. */
export function loadOf({ load, loads }: Case, { name }: Contender): Load {
  return loads?.[name] ?? load;
}

/** Returns the quantile of a share from 0 to 1. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

/** Returns the ratio of one contender's usage to another's, round by round. */
export function ratios(one: Result, other: Result): number[] {
  return one.cpu.map((cpu, round) => cpu / (other.cpu[round] as number));
}

/** Formats the median, the least and the most. */
export function spread(values: readonly number[]): string {
  const [min, median, max] = [0, 0.5, 1].map((share) => quantile(values, share).toFixed(2));
  return `${median} (${min} to ${max})`;
}
