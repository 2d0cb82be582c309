/** Measuring a process as a whole: its start and its memory. */

import { newToken } from "../../lib/storage/token.ts";
import { Contender, type Launch } from "./contender.ts";
import { inTurn, prepareRequest, sendLoad } from "./load.ts";
import { quantile, ratio } from "./measurement.ts";
import { launchServer, peer } from "./peers.ts";
import { coldToken } from "./published.ts";

/** A request that every server can answer. */
const UNKNOWN = inTurn([prepareRequest("HEAD", `/audio/${newToken()}`)], 404, 1);

/** Measures the time from a start to the first response, beside that of the floor. */
export async function measureStart(storage: string, rounds: number): Promise<void> {
  const floor = peer("floor.ts")({ status: 404, headers: [], length: 0 });
  const server = launchServer(storage);
  const times: Record<"floor" | "server", number[]> = { floor: [], server: [] };
  for (let round = 0; round < rounds; round++) {
    times.floor.push(await timeToResponse(floor));
    times.server.push(await timeToResponse(server));
  }
  const [one, other] = [times.server, times.floor].map((all) => quantile(all, 0.5).toFixed(0));
  const compared = ratio(times.server, times.floor);
  console.log(`\nStart to first response: ${one} ms; the floor ${other} ms; ratio ${compared}`);
}

/** Returns the milliseconds from starting a server to its first response. */
async function timeToResponse(launch: Launch): Promise<number> {
  const start = performance.now();
  await using contender = await Contender.start("start", launch);
  await sendLoad(contender.port, UNKNOWN);
  return performance.now() - start;
}

/** Measures memory at rest, with full caches, and after requests for every cold item. */
export async function measureMemory(storage: string, cold: number): Promise<void> {
  await using server = await Contender.start("media-head", launchServer(storage));
  const say = (when: string) => console.log(`Memory ${when}: ${server.memory().toFixed(0)} MB`);
  await sendLoad(server.port, UNKNOWN);
  say("at rest");
  const full = Math.min(cold, 20_000);
  const request = (index: number) => prepareRequest("HEAD", `/audio/${coldToken(index)}`);
  await sendLoad(server.port, { request, status: 200, count: full });
  say(`with the caches full (${full} items asked for)`);
  await sendLoad(server.port, { request, status: 200, count: cold });
  say(`after ${cold} distinct tokens`);
}
