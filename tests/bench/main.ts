/**
 * `deno task bench`: what a request costs. Machines are noisy and differ, so each round measures
 * every contender in turn, and only ratios within a round are compared.
 */

import { LocalStorage } from "../../lib/storage/local.ts";
import { description } from "../storage_suite.ts";
import { fromRoot } from "../support/paths.ts";
import { storageIn } from "../support/server.ts";
import { Contender } from "./contender.ts";
import { type Load, prepareRequest, sendLoad } from "./load.ts";

const isQuick = Deno.args.includes("--quick");
const ROUNDS = isQuick ? 7 : 25;
const COUNT = isQuick ? 5_000 : 20_000;
const ITEMS = 1_000;

const folder = await Deno.makeTempDir({ prefix: "media-head-bench-" });
try {
  const paths = await publishItems(storageIn(folder));
  const environment = { ...storageIn(folder), CACHE_TTL: "3600", SUNSET_AT: "2999-01-01" };
  const start = (name: string, file: string, ...args: string[]) =>
    Contender.start(name, ["run", "--allow-all", fromRoot(file), ...args], environment);

  await using server = await start("media-head", "main.ts");
  await using plain = await start("without ledger", "tests/bench/without_ledger.ts");
  const atRest = server.memory();
  const answer = await fetch(`http://127.0.0.1:${server.port}${paths[0]}`, { method: "HEAD" });
  const fields = JSON.stringify([...answer.headers].filter(([name]) => name !== "date"));
  await using floor = await start("floor", "tests/bench/floor.ts", fields);

  const contenders = [floor, plain, server];
  const load: Load = {
    requests: paths.map((path) => prepareRequest("HEAD", path, { "User-Agent": "bench/1.0" })),
    count: COUNT,
    status: 200,
  };
  for (const contender of contenders) await sendLoad(contender.port, load); // warms it up
  const costs = new Map(contenders.map((contender) => [contender, [] as number[]]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const contender of contenders) {
      costs.get(contender)?.push(await cpuPerRequest(contender, load));
    }
  }
  const of = (contender: Contender) => costs.get(contender) ?? [];
  const ratio = (a: Contender, b: Contender) =>
    of(a).map((cost, round) => cost / (of(b)[round] as number));

  console.log(`Deno ${Deno.version.deno}, ${ROUNDS} rounds of ${COUNT} requests each`);
  console.log("Hot HEAD: 1,000 items in turn, look-ups remembered\n");
  console.log("CPU per request of the server process, as a ratio");
  row("media-head to the floor", ratio(server, floor));
  row("with the ledger to without", ratio(server, plain));
  console.log("\nMicroseconds of CPU per request");
  for (const contender of contenders) row(contender.name, of(contender).map((cost) => cost / 1000));
  console.log(`\nMemory: ${atRest.toFixed(0)} MB at rest, ${server.memory().toFixed(0)} MB after`);
} finally {
  await Deno.remove(folder, { recursive: true });
}

async function publishItems({ STORAGE_KV, STORAGE_FILES }: ReturnType<typeof storageIn>) {
  const storage = await LocalStorage.open({ kv: STORAGE_KV, files: STORAGE_FILES });
  const paths = [];
  for (let index = 0; index < ITEMS; index++) {
    await using staged = await storage.stage(once(new TextEncoder().encode(`item ${index}`)));
    const named = { ...description(), name: `item ${index}.mp3` };
    const { token } = await storage.publish(named, staged);
    paths.push(`/audio/${token}`);
  }
  storage.close();
  return paths;
}

async function* once(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(content);
}

async function cpuPerRequest(contender: Contender, load: Load): Promise<number> {
  const before = contender.cpu();
  await sendLoad(contender.port, load);
  return (contender.cpu() - before) / load.count;
}

function row(name: string, values: number[]): void {
  const sorted = values.toSorted((a, b) => a - b);
  const [min, median, max] = [0, Math.floor(sorted.length / 2), sorted.length - 1]
    .map((index) => (sorted[index] as number).toFixed(2));
  console.log(`  ${name.padEnd(28)} median ${median}  (${min} to ${max})`);
}
