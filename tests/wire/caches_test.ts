import { assert, assertEquals, assertMatch } from "@std/assert";
import { newMetadata } from "../storage/storage_suite.ts";
import { ALL_CACHES, type AnyCache, CACHES, needsOf, startCache } from "../support/caches.ts";
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

/**
 * A server that is about to have a brownout and its sunset, and every installed cache in front of it.
 * Caches use the machine's clock, so this has to, too.
 */
async function openCaches<Name extends AnyCache>(
  stack: AsyncDisposableStack,
  names: readonly Name[],
  { revalidates = false } = {},
) {
  const { close, publish, folder } = stack.use(await openLocal());
  const { token } = await publish(newMetadata(), new Uint8Array(1000));
  await close();
  const PORT = String(freePort());
  const first = stack.use(await ServerProcess.start({ PORT }, folder)); // caches look for it
  const target = `/audio/${token}`;
  const etag = field(await requestRaw(first.port, "HEAD", target), "etag") ?? "";
  const caches: { name: Name; port: number }[] = [];
  for (const name of names.filter((name) => missingOf(needsOf(name)) === "")) {
    const { port } = stack.use(await startCache(name, first.port, { revalidates }));
    caches.push({ name, port });
  }
  await first.stop();
  const brownout = Math.ceil(Date.now() / 1000) * 1000 + 9000; // by then, all caches are filled
  const [end, sunset] = [brownout + 4000, brownout + 12_000];
  const seconds = (instant: number) => new Date(instant).toISOString().slice(0, 19) + "Z";
  const settings = {
    SUNSET_AT: seconds(sunset),
    BROWNOUTS: `${seconds(brownout)}/${seconds(end)}`,
    BROWNOUT_STATUS: "503",
    AFTER_SUNSET: "gone",
  };
  const { pid } = stack.use(await ServerProcess.start({ PORT, ...settings }, folder));
  return { target, etag, caches, pid, brownout, end, sunset };
}

/**
 * Goes through a brownout and the sunset with every cache that stores what it gets. Counts what each
 * answers while the server is suspended, so that only the cache can have answered; and notes what each
 * still answers of a past phase.
 */
async function observe() {
  await using stack = new AsyncDisposableStack();
  const { target, caches, pid, brownout, end, sunset } = await openCaches(stack, CACHES);
  const observed = caches.map((cache) => ({ ...cache, held: 0, stale: new Array<string>() }));

  /**
   * Fills the caches, checks that they are filled, and requests again at the boundary and after it.
   */
  const cross = async (boundary: number, expected: number) => {
    const asked = observed.flatMap((cache) =>
      METHODS.flatMap((method) =>
        OFFSETS.map((offset) => ({
          cache,
          offset,
          ask: async (by = method) =>
            (await requestRaw(cache.port, by, `${target}?${method}=${offset}`)).status,
        }))
      )
    );
    await Promise.all(asked.map(async ({ ask }) => assertEquals(await ask("GET"), 200)));
    Deno.kill(pid, "SIGSTOP");
    let isStill = true;
    const answers = Promise.all(asked.map(async ({ ask, cache }) => {
      const status = await ask();
      if (isStill && status === 200) cache.held++;
    }));
    try {
      await Promise.race([answers, until(Date.now() + 4000)]); // a busy machine is slow
    } finally {
      isStill = false;
      Deno.kill(pid, "SIGCONT");
    }
    await answers;
    await Promise.all(asked.map(async ({ ask, cache, offset }) => {
      await until(boundary + offset);
      const status = await ask();
      if (status !== expected) cache.stale.push(`${status} after ${offset} ms`);
    }));
  };
  await cross(brownout, 503);
  await until(end);
  await cross(sunset, 410);
  return observed;
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
    const [observed] = await watched();
    const { held, stale } = observed.find((cache) => cache.name === name) ?? {};
    assertEquals([held, stale], [2 * METHODS.length * OFFSETS.length, []]);
  });
}

/**
 * Goes through a brownout and the sunset with every installed cache that asks whether what it has
 * stored has changed, and returns how late each is.
 */
async function follow(): Promise<Map<string, Lateness>> {
  await using stack = new AsyncDisposableStack();
  const opened = await openCaches(stack, ALL_CACHES, { revalidates: true });
  const { target, etag, caches, brownout, end, sunset } = opened;
  const polls = caches.flatMap(({ name: cache, port }): Poll[] => [
    { cache, port, method: "GET", target },
    { cache, port, method: "HEAD", target: `${target}?head` },
    { cache, port, method: "GET", target: `${target}?if`, fields: { "If-None-Match": etag } },
  ]);
  return await latenessOf(polls, [
    { start: 0, statuses: [200, 304] },
    { start: brownout, statuses: [503] },
    { start: end, statuses: [200, 304] },
    { start: sunset, statuses: [410] },
  ]);
}

let watching: ReturnType<typeof watch> | undefined;

/** Watches all caches at once, since it takes half a minute. */
const watch = () => Promise.all([observe(), follow()]);
const watched = () => watching ??= watch();

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
