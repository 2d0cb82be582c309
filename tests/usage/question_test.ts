/** Whether a cache in front of the servers can hide callers from the gate. */

import { assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { newMetadata } from "../storage/storage_suite.ts";
import { type CacheName, needsOf, startCache } from "../support/caches.ts";
import { Daemon, nginx } from "../support/daemon.ts";
import { openLocal } from "../support/local_storage.ts";
import { media } from "../support/media_cli.ts";
import { type Need, needing, program } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";
import { DAY } from "../support/usage_report.ts";

const [CLEAR, CALLED, UNKNOWN] = [0, 1, 3];

const REMOVED = { DEPRECATED_AT: "1999-01-01", SUNSET_AT: "2000-01-01" };
const BROWNOUT = {
  DEPRECATED_AT: "1999-01-01",
  BROWNOUTS: "2000-01-01/2998-01-01",
  SUNSET_AT: "2999-01-01",
};

/** Starts nginx as documented: with a cache, from which the deprecated paths are excluded. */
function startExcluding(origin: number): Promise<Daemon> {
  return Daemon.start("nginx", ({ port, folder }) =>
    nginx(
      folder,
      `access_log off;
      proxy_cache_path cache keys_zone=all:1m;
      server {
        listen 127.0.0.1:${port};
        proxy_cache all;
        location / { proxy_pass http://127.0.0.1:${origin}; }
        location ~ ^/(audio|video)/ { proxy_cache off; proxy_pass http://127.0.0.1:${origin}; }
      }`,
    ));
}

/** What stands in front of the server; its port. */
type Front = (
  server: ServerProcess,
) => Promise<{ readonly port: number } & Partial<AsyncDisposable>>;

const cached = (name: CacheName): Front => ({ port }) => startCache(name, port);

/** What is in front, whether callers come through it, and the verdict on their calls. */
const ROWS: readonly (readonly [
  what: string,
  needs: readonly Need[],
  front: Front,
  verdict: number,
  said: RegExp,
  environment?: Readonly<Record<string, string>>,
])[] = [
  [
    "nothing",
    [],
    ({ port }) => Promise.resolve({ port }),
    CALLED,
    /Still called: 20 calls to .* app Overcast/,
  ],
  [
    "nginx with a cache",
    needsOf("nginx"),
    cached("nginx"),
    UNKNOWN,
    /\n {2}\/audio\/:token: a cache in front of http:\S+ answers for the servers, or .* exclude \/audio\//,
  ],
  ["Varnish", needsOf("varnish"), cached("varnish"), UNKNOWN, /: a cache in front of/],
  [
    "nginx with a cache, after the removal",
    needsOf("nginx"),
    cached("nginx"),
    UNKNOWN,
    /audio\/:token: a cache in front .*\n {2}\/video\/:token: a cache in front/,
    REMOVED,
  ],
  [
    "nginx that excludes the deprecated paths from its cache",
    [program("nginx")],
    ({ port }) => startExcluding(port),
    CALLED,
    /Still called: 20 calls to .* app Overcast/,
  ],
  [
    "nothing, in a brownout",
    [],
    ({ port }) => Promise.resolve({ port }),
    CALLED,
    /Still called: 20 calls/,
    BROWNOUT,
  ],
  [
    "nginx with a cache, while nothing may be cached",
    needsOf("nginx"),
    cached("nginx"),
    CALLED,
    /Still called: 20 calls/,
    { CACHE_MAX_AGE: "0" },
  ],
];

/** Publishes a sound, starts a server as if it had run for days, and puts something in front. */
async function serve(
  environment: Readonly<Record<string, string>>,
  body: (scene: {
    readonly server: ServerProcess;
    readonly token: string;
    readonly gate: (publicUrl: string, ...args: string[]) => ReturnType<typeof media>;
  }) => Promise<void>,
): Promise<void> {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata("audio"), new Uint8Array(1000));
  await subject.storage.close();
  await using server = await ServerProcess.start({ ...environment }, subject.folder);
  {
    using ledger = new DatabaseSync(`${subject.folder}/catalogue.sqlite-ledger`, {
      timeout: 5_000,
    });
    ledger.exec(`INSERT INTO heartbeat (server, policies, since, until, sequence, ending)
      SELECT 'before', policies, since - ${3 * DAY}, since, 0, 'stopped' FROM heartbeat`);
  }
  const gate = (PUBLIC_URL: string, ...args: string[]) =>
    media(subject.folder, ["usage", "--gate", "1", ...args], { ...environment, PUBLIC_URL });
  await body({ server, token, gate });
}

for (const [front, needs, start, verdict, said, environment = {}] of ROWS) {
  needing("processes", ...needs)(
    `the gate asks whether calls are hidden by ${front}`,
    () =>
      serve(environment, async ({ server, token, gate }) => {
        const before = await start(server);
        try {
          const call = (method: string, userAgent: string) =>
            requestRaw(before.port, method, `/audio/${token}`, { "User-Agent": userAgent });
          await call("GET", "UptimeRobot/2.0"); // one call fills a cache
          for (let calls = 0; calls < 20; calls++) await call("HEAD", "Overcast/3.0");
          const ignore = ["--ignore", "app UptimeRobot"];
          const { code, stdout } = await gate(`http://127.0.0.1:${before.port}`, ...ignore);
          assertEquals(code, verdict, stdout);
          assertMatch(stdout, said);
          const unasked = await gate("", ...ignore);
          assertEquals(unasked.code, verdict === UNKNOWN ? CLEAR : verdict, unasked.stdout);
          if (verdict === UNKNOWN) {
            assertMatch(unasked.stdout, /\nThis is on the calls that reached/);
          }
        } finally {
          await before[Symbol.asyncDispose]?.();
        }
      }),
  );
}

needing("processes")(
  "the gate is clear through a public URL without a cache, for any CLIENT_FIELD",
  () =>
    serve({ CLIENT_FIELD: "user-agent" }, async ({ server, gate }) => {
      const { code, stdout } = await gate(server.origin);
      assertEquals(code, CLEAR, stdout);
      assertMatch(
        stdout,
        /^Clear: no other calls to .* counting throughout\.\nIgnored: app media-head-gate-1, 1 call\nIgnored: app media-head-gate-2, 1 call\n$/,
      );
      const again = await gate(server.origin);
      assertEquals(
        [again.code, again.stdout.includes("gate-2, 2 calls")],
        [CLEAR, true],
        again.stdout,
      );
    }),
);

needing("processes")(
  "the gate is unknown where its question proves nothing, and says what to do",
  async () => {
    await serve({}, async ({ gate }) => {
      const nowhere = await gate(`http://127.0.0.1:${freePort()}`);
      assertEquals(nowhere.code, UNKNOWN);
      assertMatch(
        nowhere.stdout,
        /audio\/:token: http:\S+ cannot be asked \(.*\): .* set PUBLIC_URL= for/,
      );
      await serve({}, async ({ server: other }) => {
        const elsewhere = await gate(other.origin);
        assertEquals(elsewhere.code, UNKNOWN);
        assertMatch(elsewhere.stdout, /or that address is another deployment/);
      });
    });
    await serve(BROWNOUT, async ({ server, gate }) => {
      const { code, stdout } = await gate(server.origin);
      assertEquals(code, UNKNOWN);
      assertMatch(
        stdout,
        /no response may be cached in a brownout: ask after 2998-01-01T00:00:00Z/,
      );
    });
    await serve({ CACHE_MAX_AGE: "0" }, async ({ server, gate }) => {
      const { code, stdout } = await gate(server.origin);
      assertEquals(code, UNKNOWN);
      assertMatch(stdout, /may not be cached now \("Cache-Control: max-age=0"\)/);
    });
  },
);
