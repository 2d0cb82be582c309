/**
 * Measures how long a flush of counts blocks the thread that serves requests.
 *
 *     deno run --allow-all tests/bench/ledger_flush.ts [FLUSHES] [ROWS]
 */

import process from "node:process";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { openEngine } from "../../lib/storage/sqlite/engine.ts";
import { recordUsage } from "../../lib/usage/recorder.ts";
import { quantile } from "./measurement.ts";

const DAY = 86_400_000;
const [flushes = 100, rows = 1_000] = Deno.args.map(Number);
const folder = await Deno.makeTempDir({ prefix: "media-head-" });
const { ledger, close } = await openEngine(`sqlite:${folder}/catalogue.sqlite`);
const clock = { now: Date.parse("2027-01-01") };
const policy = definePolicy({ deprecatedAt: "2026-01-01" });
const { meter, flush, stop } = await recordUsage({
  ledger,
  config: { usageDays: 400, isTelemetryOn: false, policy },
  routes: [],
  now: () => clock.now,
  log: (event) => console.error(event),
});
for (let client = 0; client < rows; client++) meter.know(`client-${client}`);

/** Returns the CPU time of this process, in milliseconds. */
function cpu(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/**
 * The longest time without a turn for other tasks, and the most CPU time in one turn, in
 * milliseconds.
 */
async function longestHold(action: () => Promise<void>): Promise<[time: number, cpu: number]> {
  const longest: [number, number] = [0, 0];
  let isOver = false;
  let last = [performance.now(), cpu()] as const;
  const watching = (async () => {
    while (!isOver) {
      await new Promise((resolve) => setTimeout(resolve));
      const now = [performance.now(), cpu()] as const;
      for (const unit of [0, 1] as const) {
        longest[unit] = Math.max(longest[unit], now[unit] - last[unit]);
      }
      last = now;
    }
  })();
  await action();
  isOver = true;
  await watching;
  return longest;
}

const [times, cpus, whole]: [number[], number[], number[]] = [[], [], []];
for (let index = 0; index < flushes; index++) {
  clock.now += DAY; // so that every row is new
  const counter = meter.counterOf({
    route: "/audio/:token",
    method: "HEAD",
    phase: "deprecated",
    status: 200,
    hasToken: true,
  });
  for (let client = 0; client < rows; client++) meter.count(counter, `client-${client}`, clock.now);
  const start = performance.now();
  const [time, cpu] = await longestHold(flush);
  times.push(time);
  cpus.push(cpu);
  whole.push(performance.now() - start);
}
const show = (times: number[]) =>
  [0.5, 0.99, 1].map((share) => `${quantile(times, share).toFixed(1)} ms`).join(", ");
console.log(`${flushes} flushes of ${rows} new rows: median, p99, longest`);
console.log(`  thread blocked for     ${show(times)}`);
console.log(`  of which CPU time      ${show(cpus)}`);
console.log(`  whole flush            ${show(whole)}`);
await stop();
await close();
await Deno.remove(folder, { recursive: true });
