/** Measuring a process as a whole: its start and its memory. */

import { newToken } from "../../lib/storage/token.ts";
import { Contender } from "./contender.ts";
import { inTurn, prepareRequest, sendLoad } from "./load.ts";
import { spread } from "./measurement.ts";
import { launchServer } from "./peers.ts";
import { coldToken } from "./published.ts";

/** A request that every server can answer. */
const UNKNOWN = inTurn([prepareRequest("HEAD", `/audio/${newToken()}`)], 404, 1);

/** Measures the milliseconds from a start to the first response. */
export async function measureStart(storage: string, rounds: number): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    await using server = await Contender.start("media-head", launchServer(storage));
    await sendLoad(server.port, UNKNOWN);
    times.push(performance.now() - start);
  }
  console.log(`\nStart to first response: ${spread(times)} ms`);
}

/** Measures memory at rest, and after requests for every cold item. */
export async function measureMemory(storage: string, cold: number): Promise<void> {
  await using server = await Contender.start("media-head", launchServer(storage));
  const say = (when: string) => console.log(`Memory ${when}: ${server.memory().toFixed(0)} MB`);
  await sendLoad(server.port, UNKNOWN);
  say("at rest");
  const request = (index: number) => prepareRequest("HEAD", `/audio/${coldToken(index)}`);
  await sendLoad(server.port, { request, status: 200, count: cold });
  say(`after ${cold} distinct tokens`);
}
