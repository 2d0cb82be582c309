import { assert, assertEquals, assertMatch } from "@std/assert";
import { newMetadata } from "../storage/storage_suite.ts";
import { ALL_CACHES, type CacheName, CACHES, needsOf, startCache } from "../support/caches.ts";
import { Daemon, nginx } from "../support/daemon.ts";
import { type Lateness, latenessOf, type Poll } from "../support/lateness.ts";
import { openLocal } from "../support/local_storage.ts";
import { missingOf, needing } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { field, requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";
import { until as poll } from "../support/within.ts";

/**
 * Milliseconds after a change of phase, at each of which something is requested for the first time
 * since.
 */
const OFFSETS = [0, 50, 300, 1000, 2000];
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
  await using stack = new AsyncDisposableStack();
  const { close, publish, folder } = stack.use(await openLocal());
  const { token } = await publish(newMetadata(), new Uint8Array(1000));
  await close();
  const PORT = String(freePort());
  const first = stack.use(await ServerProcess.start({ PORT }, folder)); // caches look for it
  const observations = new Map<CacheName, Observation>();
  const caches: { port: number; observation: Observation }[] = [];
  for (const name of CACHES.filter((name) => missingOf(needsOf(name)) === "")) {
    const { port } = stack.use(await startCache(name, first.port));
    const observation: Observation = { held: 0, stale: [] };
    observations.set(name, observation);
    caches.push({ port, observation });
  }
  await first.stop();

  const brownout = Math.ceil(Date.now() / 1000) * 1000 + 9000; // by then, all caches are filled
  const [end, sunset] = [brownout + 3000, brownout + 11_000];
  const seconds = (instant: number) => new Date(instant).toISOString().slice(0, 19) + "Z";
  const variables = {
    SUNSET_AT: seconds(sunset),
    BROWNOUTS: `${seconds(brownout)}/${seconds(end)}`,
    BROWNOUT_STATUS: "503",
    AFTER_SUNSET: "gone",
  };
  const server = stack.use(await ServerProcess.start({ PORT, ...variables }, folder));

  /**
   * Fills the caches, checks that they are filled, and requests again at the boundary and after it.
   */
  const cross = async (boundary: number, expected: number) => {
    const asked = caches.flatMap(({ port, observation }) =>
      METHODS.flatMap((method) =>
        OFFSETS.map((offset) => ({
          observation,
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
      await Promise.race([answers, until(Date.now() + 4000)]); // a busy machine is slow
    } finally {
      isStill = false;
      Deno.kill(server.pid, "SIGCONT");
    }
    await answers;
    await Promise.all(asked.map(async ({ ask, observation, offset }) => {
      await until(boundary + offset);
      const status = await ask();
      if (status !== expected) observation.stale.push(`${status} after ${offset} ms`);
    }));
  };
  await cross(brownout, 503);
  await until(end);
  await cross(sunset, 410);
  return observations;
}

/** Waits until a time, never a millisecond less, as timers may. */
async function until(instant: number): Promise<void> {
  for (let left; (left = instant - Date.now()) > 0;) {
    await new Promise((resolve) => setTimeout(resolve, left));
  }
}

for (const name of CACHES) {
  const test = needing(...needsOf(name));
  test(`${name} with default settings never serves a response of a past phase`, async () => {
    const [observations] = await watched();
    const held = 2 * METHODS.length * OFFSETS.length;
    assertEquals(observations.get(name), { held, stale: [] });
  });
}

/**
 * Goes through a brownout and the sunset with every installed cache that asks whether what it has
 * stored has changed, and returns how late each is.
 */
async function follow(): Promise<Map<string, Lateness>> {
  await using stack = new AsyncDisposableStack();
  const { close, publish, folder } = stack.use(await openLocal());
  const { token } = await publish(newMetadata(), new Uint8Array(1000));
  await close();
  const PORT = String(freePort());
  const first = stack.use(await ServerProcess.start({ PORT }, folder)); // caches look for it
  const etag = field(await requestRaw(first.port, "HEAD", `/audio/${token}`), "etag") ?? "";
  const polls: Poll[] = [];
  for (const cache of ALL_CACHES.filter((name) => missingOf(needsOf(name)) === "")) {
    const { port } = stack.use(await startCache(cache, first.port, { revalidates: true }));
    const target = `/audio/${token}`;
    polls.push(
      { cache, port, method: "GET", target },
      { cache, port, method: "HEAD", target: `${target}?head` },
      { cache, port, method: "GET", target: `${target}?if`, fields: { "If-None-Match": etag } },
    );
  }
  await first.stop();
  const brownout = Math.ceil(Date.now() / 1000) * 1000 + 9_000; // by then, all caches are filled
  const [end, sunset] = [brownout + 4_000, brownout + 12_000];
  const seconds = (instant: number) => new Date(instant).toISOString().slice(0, 19) + "Z";
  stack.use(
    await ServerProcess.start({
      PORT,
      SUNSET_AT: seconds(sunset),
      BROWNOUTS: `${seconds(brownout)}/${seconds(end)}`,
    }, folder),
  );
  return await latenessOf(polls, [
    { start: 0, statuses: [200, 304] },
    { start: brownout, statuses: [503] },
    { start: end, statuses: [200, 304] },
    { start: sunset, statuses: [410] },
  ]);
}

let watching: Promise<[Observations, Map<string, Lateness>]> | undefined;

/** Watches all caches at once, since it takes half a minute. */
function watched() {
  return watching ??= Promise.all([observe(), follow()]);
}

for (const name of ALL_CACHES) {
  needing(...needsOf(name))(
    `${name} that revalidates follows each change of phase within two seconds`,
    async () => {
      const [, lateness] = await watched();
      const { late = Infinity } = lateness.get(name) ?? {};
      assert(late < 2_000, `${late} ms`);
    },
  );
}

needing(...needsOf("nginx"))(
  "nginx with http_503 in proxy_cache_use_stale hides a brownout, and without it does not",
  async () => {
    await using stack = new AsyncDisposableStack();
    const { close, publish, folder } = stack.use(await openLocal());
    const { token } = await publish(newMetadata(), new Uint8Array(1000));
    await close();
    const [PORT, hiding] = [String(freePort()), freePort()];
    const cache = stack.use(
      await Daemon.start("nginx", (place) =>
        nginx(
          place.folder,
          `proxy_cache_path one keys_zone=one:1m; proxy_cache_path two keys_zone=two:1m;
          server {
            listen 127.0.0.1:${place.port};
            location / { proxy_pass http://127.0.0.1:${PORT}; proxy_cache one; }
          }
          server {
            listen 127.0.0.1:${hiding};
            location / { proxy_pass http://127.0.0.1:${PORT}; proxy_cache two;
              proxy_cache_use_stale error timeout http_503; }
          }`,
        )),
    );
    const instant = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
    const start = (from: number) =>
      ServerProcess.start({
        PORT,
        CACHE_MAX_AGE: "1",
        BROWNOUTS: `${instant(from)}/${instant(from + 2)}`,
        SUNSET_AT: instant(24),
      }, folder);
    const ask = (port: number) => requestRaw(port, "GET", `/audio/${token}`);
    const before = await start(1);
    for (const port of [cache.port, hiding]) {
      const answer = await ask(port);
      assertEquals(answer.status, 200);
      assertMatch(field(answer, "cache-control") ?? "", /must-revalidate/);
    }
    await before.stop();
    stack.use(await start(-1));
    await poll("the brownout", async () => (await ask(cache.port)).status === 503);
    assertEquals((await ask(hiding)).status, 200);
  },
);
