/**
 * Measuring contenders side by side. Machines are noisy and differ, so each round measures every
 * contender in turn, and only ratios within a round are compared.
 */

import type { Contender } from "./contender.ts";
import { type Load, sendAtRate, sendLoad } from "./load.ts";

/** Warm-up rounds, in which code is compiled and caches are filled. */
const WARM_UP = 4;

/**
 * Measures contenders side by side.
 *
 * @returns By name, the nanoseconds of CPU of each contender's process per request, round by round.
 */
export async function measure(
  contenders: readonly Contender[],
  load: Load,
  rounds: number,
): Promise<Map<string, number[]>> {
  for (const { port } of contenders) {
    await sendLoad(port, { ...load, count: WARM_UP * load.count });
  }
  const results = new Map(contenders.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    for (const contender of contenders) {
      // What a lookup found is reused for five seconds at most, which may have passed since.
      await sendLoad(contender.port, { ...load, count: Math.ceil(load.count / 5) });
      const before = contender.cpu();
      await sendLoad(contender.port, load);
      results.get(contender.name)?.push((contender.cpu() - before) / load.count);
    }
  }
  return results;
}

/**
 * Measures the latency of contenders side by side, at the same rate.
 *
 * @param perSecond Requests a second.
 * @returns By name, the 99th percentile in milliseconds, round by round.
 */
export async function measureLatency(
  contenders: readonly Contender[],
  load: Load,
  { perSecond, rounds }: { readonly perSecond: number; readonly rounds: number },
): Promise<Map<string, number[]>> {
  const results = new Map(contenders.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    for (const { name, port } of contenders) {
      await sendLoad(port, load); // to warm up
      results.get(name)?.push(quantile(await sendAtRate(port, load, perSecond), 0.99));
    }
  }
  return results;
}

/** Returns the quantile of a share from 0 to 1. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

/** Formats the ratio of one result to another in the same round: the median, least and most. */
export function ratio(one: readonly number[], other: readonly number[]): string {
  return spread(one.map((value, round) => value / (other[round] as number)));
}

/** Formats values as their median, least and most. */
export function spread(values: readonly number[]): string {
  const [min, median, max] = [0, 0.5, 1].map((share) => quantile(values, share).toFixed(2));
  return `${median} (${min} to ${max})`;
}
