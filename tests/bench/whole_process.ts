/**
 * Measuring a process as a whole: its start, its memory, and several on one port.
 */

import { newToken } from "../../lib/storage/token.ts";
import { Contender, type Launch } from "./contender.ts";
import { launchBare, launchServer } from "./launches.ts";
import { HEAD, openSlowReaders, prepareRequest, sendLoad } from "./load.ts";
import { quantile, spread } from "./measurement.ts";
import { coldToken, contentPath, type Published } from "./published.ts";

/** What to measure with. */
export interface Subject {
  /** The folder with everything published. */
  readonly storage: string;
  readonly published: Published;
  /** The number of cold items. */
  readonly cold: number;
  readonly rounds: number;
  /** Requests per round. */
  readonly requests: number;
  /** The number of slow readers. */
  readonly readers: number;
}

/** Seconds for which slow readers read, and bytes of the part that they request. */
const [SLOW_SECONDS, SLOW_BYTES] = [10, 50_000_000];

/** Measures the time from a start to the first answer, beside that of a bare server. */
export async function measureStart({ storage, rounds }: Subject): Promise<void> {
  const bare = launchBare("floor.ts", { status: 404, headers: [], length: 0 });
  const server = launchServer(storage, {});
  const times: [bare: number, server: number][] = [];
  for (let round = 0; round < rounds; round++) {
    const path = `/audio/${newToken()}`;
    times.push([
      await Contender.timeToAnswer(bare, path, 404),
      await Contender.timeToAnswer(server, path, 404),
    ]);
  }
  const [one, other] = [0, 1].map((index) =>
    quantile(times.map((pair) => pair[index] as number), 0.5).toFixed(0)
  );
  const ratios = spread(times.map(([bare, server]) => server / bare));
  console.log(`Start to first answer: ${other} ms; a bare Deno.serve ${one} ms; ratio ${ratios}`);
}

/**
 * Measures processes that share a port. Requests the most expensive path, since the load needs its
 * share of the cores, too.
 */
export async function measureCores({ storage, rounds, requests }: Subject): Promise<void> {
  const cores = navigator.hardwareConcurrency;
  await using running = new AsyncDisposableStack();
  const start = async (count: number) => {
    const processes: Contender[] = [];
    while (processes.length < count) {
      const PORT = String(processes[0]?.port ?? 0);
      const launch = launchServer(storage, { PORT, REUSE_PORT: "true" });
      processes.push(running.use(await Contender.start(`${processes.length}`, launch)));
    }
    return processes;
  };
  const request = prepareRequest("GET", "/deprecation");
  const load = { request: () => request, status: 200, count: requests / 2 };
  const measureOne = async (processes: readonly Contender[]) => {
    const cpu = () => processes.reduce((sum, contender) => sum + contender.cpu(), 0);
    const [since, before] = [performance.now(), cpu()];
    await sendLoad(processes[0]?.port ?? 0, load, { connections: 64 });
    const took = performance.now() - since;
    return { rate: load.count / took * 1000, used: (cpu() - before) / 1e6 / took };
  };
  const [one, all] = [await start(1), await start(cores)];
  for (const processes of [one, all]) await measureOne(processes); // warms them up
  const results = [];
  for (let round = 0; round < rounds; round++) {
    results.push({ one: await measureOne(one), all: await measureOne(all) });
  }
  const median = (values: number[], digits: number) => quantile(values, 0.5).toFixed(digits);
  for (const [name, { length }] of [["one", one], ["all", all]] as const) {
    const rate = median(results.map((round) => round[name].rate), 0);
    const used = median(results.map((round) => round[name].used), 2);
    console.log(`Processes: ${length}; ${rate} GETs of /deprecation a second, ${used} cores`);
  }
  console.log(`All cores to one: ${spread(results.map(({ one, all }) => all.rate / one.rate))}`);
}

/** Measures memory at rest, with full caches, and after requests for every item. */
export async function measureMemory({ storage, cold }: Subject): Promise<void> {
  await using server = await Contender.start("media-head", launchServer(storage, {}));
  const say = (when: string) => console.log(`Memory ${when}: ${server.memory().toFixed(0)} MB`);
  await sendLoad(server.port, {
    request: () => prepareRequest(HEAD, `/audio/${newToken()}`),
    status: 404,
    count: 1,
  });
  say("at rest");
  const full = Math.min(cold, 20_000);
  const request = (index: number) => prepareRequest(HEAD, `/audio/${coldToken(index)}`);
  await sendLoad(server.port, { request, status: 200, count: full });
  say(`with the caches full (${full} items asked for)`);
  await sendLoad(server.port, { request, status: 200, count: cold });
  say(`after ${cold} distinct tokens`);
}

/** Measures memory while many clients read long content slowly. */
export async function measureSlowReaders(
  { storage, published, readers: count }: Subject,
): Promise<void> {
  const large = published.sized.at(-1);
  if (large === undefined) throw new Error("nothing was published");
  const path = contentPath(storage, large);
  const headers = [["content-length", String(large.length)]];
  const bare = launchBare("bare_get.ts", { status: 200, headers, length: large.length, path });
  const server = launchServer(storage, {});
  const target = `/audio/${large.token}`;
  const whole = prepareRequest("GET", target);
  const part = prepareRequest("GET", target, { Range: `bytes=0-${SLOW_BYTES - 1}` });
  const cases: [string, string, Launch, typeof whole][] = [
    ["a bare handler", "whole content", bare, whole],
    ["media-head", "whole content", server, whole],
    ["media-head", `ranges of ${SLOW_BYTES / 1e6} MB`, server, part],
  ];
  for (const [name, what, launch, request] of cases) {
    await using contender = await Contender.start(name, launch);
    const before = contender.memory();
    const readers = await openSlowReaders(contender.port, request, count);
    await readers.readFor(SLOW_SECONDS);
    const [rest, now] = [before, contender.memory()].map((value) => value.toFixed(0));
    console.log(
      `Memory of ${name} with ${count} slow readers of ${what}: ${now} MB, before ${rest}`,
    );
    readers.close();
  }
}
