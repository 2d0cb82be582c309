import { assertEquals } from "@std/assert";
import { newMetadata } from "../storage/storage_suite.ts";
import { openLocal } from "../support/local_storage.ts";
import { type CacheName, CacheProcess, CACHES, programOf } from "../support/caches.ts";
import { needing, pathOf, program } from "../support/permissions.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";

/**
 * Milliseconds after a change of phase, at each of which something is requested for the first time
 * since.
 */
const OFFSETS = [0, 50, 300, 1000, 2000, 4000];
const METHODS = ["GET", "HEAD"];

/** What a cache answered. */
interface Observation {
  /** Responses while the server was suspended, so that only the cache can have sent them. */
  held: number;
  /** Responses of the previous phase, by time. */
  readonly stale: string[];
}

type Observations = ReadonlyMap<CacheName, Observation>;

/**
 * Goes through a brownout and the sunset with every installed cache. Caches use the machine's
 * clock, so this has to, too.
 */
async function observe(): Promise<Observations> {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata(), new Uint8Array(1000));
  const seconds = (instant: number) => new Date(instant).toISOString().slice(0, 19) + "Z";
  const brownout = Math.ceil(Date.now() / 1000) * 1000 + 9000; // all must have started by then
  const [end, sunset] = [brownout + 5000, brownout + 9000];
  await using stack = new AsyncDisposableStack();
  const variables = {
    SUNSET_AT: seconds(sunset),
    BROWNOUTS: `${seconds(brownout)}/${seconds(end)}`,
  };
  const server = stack.use(await ServerProcess.start(variables, subject.folder));
  const starts = await Promise.allSettled(
    CACHES.filter((name) => pathOf(programOf(name)) !== undefined).map((name) =>
      CacheProcess.start(name, server.port)
    ),
  );
  for (const start of starts) if (start.status === "fulfilled") stack.use(start.value);
  const caches = starts.map((start) => {
    if (start.status === "rejected") throw start.reason;
    return start.value;
  });

  const observations = new Map(
    caches.map(({ name }) => [name, { held: 0, stale: [] as string[] }] as const),
  );
  /**
   * Fills the caches, checks that they are filled, and requests again at the boundary and after it.
   */
  const cross = async (boundary: number) => {
    const asked = caches.flatMap(({ name, port }) =>
      METHODS.flatMap((method) =>
        OFFSETS.map((offset) => ({
          observation: observations.get(name) as Observation,
          offset,
          ask: async (by = method) =>
            (await requestRaw(port, by, `/audio/${token}?${method}=${offset}`)).status,
        }))
      )
    );
    await Promise.all(asked.map(async ({ ask }) => assertEquals(await ask("GET"), 200)));
    Deno.kill(server.pid, "SIGSTOP");
    let isStill = true;
    const answers = Promise.all(asked.map(async ({ ask, observation }) => {
      const status = await ask();
      if (isStill && status === 200) observation.held++;
    }));
    try {
      await Promise.race([answers, until(Date.now() + 1000)]);
    } finally {
      isStill = false;
      Deno.kill(server.pid, "SIGCONT");
    }
    await answers;
    await Promise.all(asked.map(async ({ ask, observation, offset }) => {
      await until(boundary + offset);
      const status = await ask();
      if (status !== 410) observation.stale.push(`${status} after ${offset} ms`);
    }));
  };
  await cross(brownout);
  await until(end);
  await cross(sunset);
  return observations;
}

/** Waits until a time, never a millisecond less, as timers may. */
async function until(instant: number): Promise<void> {
  for (let left; (left = instant - Date.now()) > 0;) {
    await new Promise((resolve) => setTimeout(resolve, left));
  }
}

let observations: Promise<Observations> | undefined;

for (const name of CACHES) {
  const test = needing("processes", program(programOf(name)));
  test(`${name} with default settings never serves a response of a past phase`, async () => {
    observations ??= observe(); // all in parallel
    const held = 2 * METHODS.length * OFFSETS.length;
    assertEquals((await observations).get(name), { held, stale: [] });
  });
}
