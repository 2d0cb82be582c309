/**
 * `deno task bench`: what a request costs, as a ratio to the floor. Machines are noisy and differ,
 * so each round measures every contender in turn, and only ratios within a round are compared.
 */

import { LocalStorage } from "../../lib/storage/local.ts";
import { description } from "../storage_suite.ts";
import { fromRoot } from "../support/paths.ts";
import { storageIn } from "../support/server.ts";
import { Contender } from "./contender.ts";
import { type Load, prepareRequest, sendLoad } from "./load.ts";

const isQuick = Deno.args.includes("--quick");
const ROUNDS = isQuick ? 5 : 15;
const COUNT = isQuick ? 5_000 : 20_000;
const ITEMS = 1_000;

const folder = await Deno.makeTempDir({ prefix: "media-head-bench-" });
try {
  const paths = await publishItems(storageIn(folder));
  await using server = await Contender.start("media-head", [
    "run",
    "--allow-all",
    fromRoot("main.ts"),
  ], { ...storageIn(folder), CACHE_TTL: "3600" });
  const atRest = server.memory();
  const answer = await fetch(`http://127.0.0.1:${server.port}${paths[0]}`, { method: "HEAD" });
  const fields = JSON.stringify([...answer.headers].filter(([name]) => name !== "date"));
  await using floor = await Contender.start("floor", [
    "run",
    "--allow-net",
    fromRoot("tests/bench/floor.ts"),
    fields,
  ]);

  const load: Load = {
    requests: paths.map((path) => prepareRequest("HEAD", path)),
    count: COUNT,
    status: 200,
  };
  for (const contender of [floor, server]) await sendLoad(contender.port, load); // warms it up
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      floor: await cpuPerRequest(floor, load),
      server: await cpuPerRequest(server, load),
    });
  }

  console.log(`Deno ${Deno.version.deno}, ${ROUNDS} rounds of ${COUNT} requests each\n`);
  console.log("CPU per request of the server process, as a ratio to the floor");
  row("hot HEAD, 1,000 items in turn", rounds.map(({ floor, server }) => server / floor));
  console.log("\nMicroseconds of CPU per request");
  row("floor", rounds.map(({ floor }) => floor / 1000));
  row("media-head", rounds.map(({ server }) => server / 1000));
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
  console.log(`  ${name.padEnd(32)} median ${median}  (${min} to ${max})`);
}
