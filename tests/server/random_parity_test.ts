/** HEAD and GET while content and catalogue change at random, on a clock that jumps. */

import { assert, assertEquals } from "@std/assert";
import { CachedStorage } from "../../lib/storage/cache.ts";
import { PERIOD_MS } from "../../lib/storage/generations.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openMemory } from "../support/memory_storage.ts";
import { randomFrom } from "../support/random.ts";
import { servedHandler } from "../support/handlers.ts";
import { SEEDS } from "../support/seeds.ts";
import { CONFIG } from "./request_table.ts";

const STEPS = 400;
const CONTENT = new Uint8Array(40);

/** What is true of a token, and since when. */
interface Truth {
  readonly metadata: ReturnType<typeof newMetadata>;
  status: 200 | 404 | 410 | 503;
  digest?: string;
}

/** Plays a world, and notes what is answered. Returns how many pairs of responses were compared. */
async function play(seed: number, seen: Set<string>): Promise<number> {
  await using subject = await openMemory();
  const { storage } = subject;
  const clock = { now: Date.parse("2027-01-01") };
  const cached = new CachedStorage(storage, storage.catalogue, () => clock.now);
  const handle = servedHandler({
    storage: cached,
    config: CONFIG,
    clock: () => clock.now,
    log() {},
  });
  const random = randomFrom(seed);
  const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)] as T;
  const truths: Truth[] = Array.from(
    { length: 4 },
    (_, index) => ({ metadata: newMetadata(index % 2 ? "video" : "audio"), status: 404 }),
  );
  let [catalogueChangedAt, contentChangedAt] = [-Infinity, -Infinity];
  const change = async (truth: Truth) => {
    const { metadata, status } = truth;
    const item = { ...metadata, digest: truth.digest ?? "", length: CONTENT.length };
    if (status === 404) {
      const content = crypto.getRandomValues(CONTENT.slice());
      truth.digest = (await subject.publish(metadata, content)).digest;
      truth.status = 200;
      catalogueChangedAt = clock.now;
    } else if (status === 200 && random() < 0.3) {
      await subject.unpublish(metadata.token, clock.now);
      truth.status = 410;
      catalogueChangedAt = clock.now;
    } else if (status === 200) {
      await subject.damage(item, undefined);
      truth.status = 503;
      contentChangedAt = clock.now;
    } else if (status === 503) {
      await subject.damage(item, CONTENT);
      truth.status = 200;
      contentChangedAt = clock.now;
    } else { // an item that is gone for good makes room for another
      truths[truths.indexOf(truth)] = { metadata: newMetadata(metadata.kind), status: 404 };
    }
  };
  let compared = 0;
  for (let step = 0; step < STEPS; step++) {
    if (random() < 0.1) await change(pick(truths));
    clock.now += pick([0, 0, 0, 1, 20, 100, 1_000, PERIOD_MS]);
    if (random() < 0.005) clock.now -= 60_000;
    const { metadata: { token, kind }, status } = pick(truths);
    const url = `http://test/${pick(["media", kind])}/${token}`;
    const methods = pick([["GET", "HEAD"], ["HEAD"]]);
    const said = [];
    for (const method of methods) {
      const answering = handle(new Request(url, { method }));
      const from = cached.generations.generation;
      const { status, headers, body } = await answering;
      const to = answering instanceof Response ? from : cached.generations.generation;
      await body?.cancel();
      said.push({ answer: [status, ...headers], status, from, to });
      seen.add(`${method} ${status}`);
    }
    const what = `seed ${seed}, step ${step}: ${methods} ${url}`;
    const [first, last = first] = said;
    // A change that is detected meanwhile shows in both methods from then on. A fault that the GET
    // finds begins a generation itself, in which the HEAD has to say the same.
    const isSame = first?.to === last?.from &&
      (first?.from === first?.to || first?.status === 503);
    if (isSame) assertEquals(last?.answer, first?.answer, what);
    if (isSame && methods.length > 1) compared++;
    const isSettled = clock.now - catalogueChangedAt >= storage.catalogue.versionTtlMs &&
      clock.now - contentChangedAt >= PERIOD_MS;
    if (isSettled) assertEquals(last?.status, status, what);
  }
  return compared;
}

Deno.test("a HEAD says what the GET before it said, whatever changes", async () => {
  const seen = new Set<string>();
  let compared = 0;
  for (const seed of SEEDS) compared += await play(seed, seen);
  assert(compared > SEEDS.length * STEPS / 3, `only ${compared} pairs are compared`);
  for (const method of ["GET", "HEAD"]) {
    for (const status of [200, 404, 410, 503]) assert(seen.has(`${method} ${status}`));
  }
});
