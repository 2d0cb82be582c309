/** Whether a cache in front of the servers can hide callers from the gate. */

import { assertEquals, assertMatch } from "@std/assert";
import { DENO_RUNTIME } from "../../../lib/database/sqlite/deno_runtime.ts";
import { readConfig } from "../../../lib/server/config.ts";
import { deprecatedPaths } from "../../../lib/server/route.ts";
import { CachedStorage } from "../../../lib/storage/cache.ts";
import { ledgerPlaceOf, openLedger } from "../../../lib/usage/record/open_ledger.ts";
import { Recorder } from "../../../lib/usage/record/recorder.ts";
import { probe } from "../../../lib/usage/verdict/probe.ts";
import { newMetadata } from "../../storage/storage_suite.ts";
import { startCache } from "../../support/caches.ts";
import { createCertificate } from "../../support/certificate.ts";
import { PROCESS } from "../../support/counted_call.ts";
import { Daemon, nginx } from "../../support/daemon.ts";
import { fakeTimers } from "../../support/fake_timers.ts";
import { ANNOUNCED, CALLED, CLEAR, UNKNOWN } from "../../support/gate.ts";
import { servedHandler } from "../../support/handlers.ts";
import { openLocal } from "../../support/local_storage.ts";
import { inFolder, media, mediaHere } from "../../support/media_cli.ts";
import { Origin } from "../../support/origin.ts";
import { needing, program } from "../../support/permissions.ts";
import { freePort } from "../../support/ports.ts";
import { addPast, recordOnSqlite } from "../../support/recorded_processes.ts";
import { ROUTES } from "../../support/routes.ts";
import type { CommandResult } from "../../support/run.ts";
import { ServerProcess, storageIn } from "../../support/server.ts";
import { DAY, NOW, POLICY } from "../../support/usage_report.ts";

/** What a verdict says of a route that was probed. */
const PROBED = / A probe of \/audio\/:token /;

const REMOVED = { DEPRECATED_AT: "1999-01-01", SUNSET_AT: "2000-01-01" };
const BROWNOUT = {
  DEPRECATED_AT: "1999-01-01",
  BROWNOUTS: "2000-01-01/2998-01-01",
  SUNSET_AT: "2999-01-01",
};

/** Starts nginx with these blocks, in front of a server. */
function front(
  blocks: (port: number, origin: string) => string,
): (server: { readonly port: number }) => Promise<Daemon> {
  return ({ port: origin }) =>
    Daemon.start("nginx", ({ port, folder }) =>
      nginx(
        folder,
        `proxy_cache_path cache keys_zone=all:1m; proxy_cache_path other keys_zone=other:1m;
        ${blocks(port, `proxy_pass http://127.0.0.1:${origin};`)}`,
      ));
}

const server = (port: number | string, rest: string) =>
  `server { listen 127.0.0.1:${port}; location / { ${rest} } }`;

/** nginx as documented: with a cache, from which the deprecated paths are excluded. */
const excluding = front((port, pass) =>
  `server {
    listen 127.0.0.1:${port};
    proxy_cache all;
    location / { ${pass} }
    location ~ ^/(audio|video)/ { proxy_cache off; ${pass} }
  }`
);

const minUses = front((port, pass) =>
  server(port, `${pass} proxy_cache all; proxy_cache_min_uses 2;`)
);

/** Two caches behind a balancer, which asks them in turn. */
const balanced: Front = ({ port: origin }) => {
  const caches = [freePort(), freePort()] as const;
  return front((port, pass) =>
    server(caches[0], `${pass} proxy_cache all;`) +
    server(caches[1], `${pass} proxy_cache other;`) +
    `upstream caches { server 127.0.0.1:${caches[0]}; server 127.0.0.1:${caches[1]}; }` +
    server(port, "proxy_pass http://caches;")
  )({ port: origin });
};

/** An edge that puts its own name in User-Agent. */
const renaming = front((port, pass) => server(port, `${pass} proxy_set_header User-Agent edge/1;`));

const stripping = front((port, pass) =>
  server(port, `${pass} proxy_set_header Lifecycle-Probe "";`)
);

const answering = (status: number, more = "") =>
  front((port) => server(port, `return ${status}${more};`));

/** What stands in front of the server; its port. */
type Front = (
  server: { readonly port: number },
) => Promise<{ readonly port: number } & Partial<AsyncDisposable>>;

const cached: Front = ({ port }) => startCache("nginx", port);
const NGINX = [program("nginx")];
const HIDDEN =
  /^Unknown: .*, but a cache in front of \S+ answers calls to \/audio\/:token for the servers: /;
const OVERCAST = /^Still called: 20 .* app Overcast/;

/** What is in front, whether callers come through it, and the verdict on their calls. */
const ROWS: readonly (readonly [
  what: string,
  front: Front,
  verdict: number,
  said: RegExp,
  environment?: Readonly<Record<string, string>>,
])[] = [
  [
    "nginx with a cache, after the removal",
    cached,
    UNKNOWN,
    /^Unknown: .*, but a cache in front of \S+ answers calls to them for the servers: .*\n\/audio\/:token: unknown, .*\n\/video\/:token: unknown, /,
    REMOVED,
  ],
  ["nginx that caches what was asked for twice", minUses, UNKNOWN, HIDDEN],
  ["two caches behind a balancer", balanced, UNKNOWN, HIDDEN],
  ["nginx that excludes the deprecated paths from its cache", excluding, CALLED, OVERCAST],
  ["nginx, while nothing may be cached", cached, CALLED, OVERCAST, { CACHE_MAX_AGE: "0" }],
];

/** A server as the gate meets it, and the commands. */
interface Scene {
  readonly server: { readonly port: number; readonly origin: string };
  readonly token: string;
  readonly gate: (publicUrl: string, ...args: string[]) => Promise<CommandResult>;
  readonly hold: (...args: string[]) => Promise<CommandResult>;
  readonly usage: () => Promise<{
    readonly routes: { route: string; calls: number; otherRequests: number }[];
    readonly probes: { probe: string; requests: number }[];
  }>;
}

type Environment = Readonly<Record<string, string>>;

/** Runs a command on a scene's storage, with settings besides. */
type Run = (folder: string, args: string[], environment: Environment) => Promise<CommandResult>;

function sceneOf(
  run: Run,
  folder: string,
  environment: Environment,
  { port, token }: { readonly port: number; readonly token: string },
): Scene {
  const usage = (PUBLIC_URL: string, ...args: string[]) =>
    run(folder, ["usage", ...args], { ...environment, PUBLIC_URL });
  return {
    server: { port, origin: `http://127.0.0.1:${port}` },
    token,
    gate: (publicUrl, ...args) => usage(publicUrl, "--gate", "1", ...args),
    hold: (...args) => run(folder, ["hold", ...args], environment),
    usage: async () => JSON.parse((await usage("", "--json")).stdout),
  };
}

/** Publishes a sound, and starts a server. Commands are processes, too. */
async function serve(
  environment: Environment,
  body: (scene: Scene) => Promise<void>,
): Promise<void> {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata("audio"), new Uint8Array(1000));
  await subject.close();
  await using server = await ServerProcess.start({ ...environment }, subject.folder);
  await addPast(recordOnSqlite(subject.folder));
  await body(sceneOf(
    (place, args, settings) => media(place, args, { ...settings }),
    subject.folder,
    environment,
    { port: server.port, token },
  ));
}

/**
 * Publishes a sound, and serves it by what is put in front of it. Server and commands run in this
 * process, by virtual time: a gate that waits in vain for a heartbeat or two takes no real time.
 */
async function serveHere(
  fronts: readonly Front[],
  environment: Environment,
  body: (scene: Scene, ports: readonly number[]) => Promise<void>,
): Promise<void> {
  await using subject = await openLocal();
  const { folder } = subject;
  const { token } = await subject.publish(newMetadata("audio"), new Uint8Array(1000));
  const variables: Environment = { ...storageIn(folder), ...environment };
  const config = readConfig((name) => variables[name], "server", deprecatedPaths(ROUTES));
  const clock = () => Date.now();
  const log = () => {};
  let handle = (_: Request): Response | Promise<Response> => new Response(null, { status: 503 });
  await using origin = new Origin((request) => handle(request));
  await using stack = new AsyncDisposableStack();
  const port = Number(new URL(origin.url("/")).port);
  const ports: number[] = [];
  for (const start of fronts) {
    const before = await start({ port });
    stack.defer(async () => await before[Symbol.asyncDispose]?.());
    ports.push(before.port);
  }

  using timers = fakeTimers();
  const recorder = new Recorder({
    open: () => openLedger(ledgerPlaceOf(config.database), { runtime: () => DENO_RUNTIME }),
    ...{ policies: config.policies, clientField: config.clientField, clock, log },
    ...{ process: { ...PROCESS, started: clock() }, onDemand: false, retainDays: 400 },
  });
  await timers.during(recorder.start());
  while (!recorder.isRegistered) await timers.pass(1_000); // the file is opened in real time
  await addPast(recordOnSqlite(folder));
  const storage = new CachedStorage(subject.storage, subject.storage.catalogue, clock);
  const policies = () => recorder.policies;
  handle = servedHandler({ storage, config, policies, recorder, clock, log });
  const run: Run = (place, args, settings) =>
    timers.during(mediaHere(place, args, { ...settings }));
  await body(sceneOf(run, folder, environment, { port, token }), ports);
  await timers.during(recorder.close());
}

for (const [what, front, verdict, said, environment = {}] of ROWS) {
  needing("processes", ...NGINX)(
    `the gate finds out whether calls are hidden by a cache: ${what}`,
    () =>
      serveHere([front], environment, async ({ token, gate }, [port = 0]) => {
        const headers = { "User-Agent": "Overcast/3.0" };
        const calls = verdict === CALLED ? 20 : 0;
        for (let call = 0; call < calls; call++) {
          const url = `http://127.0.0.1:${port}/audio/${token}`;
          const answered = await fetch(url, { method: "HEAD", headers });
          assertEquals(answered.headers.get("accept-ranges"), "bytes");
        }
        const { code, stdout } = await gate(`http://127.0.0.1:${port}`);
        assertEquals(code, verdict, stdout);
        assertMatch(stdout, said);
      }),
  );
}

needing("processes", ...NGINX)(
  "two gates at once through an edge that replaces User-Agent are clear, and count as no calls",
  () =>
    serve({ CLIENT_FIELD: "user-agent" }, async ({ server, gate, usage }) => {
      await using edge = await renaming(server);
      const url = `http://127.0.0.1:${edge.port}`;
      for (const { code, stdout } of await Promise.all([gate(url), gate(url)])) {
        assertEquals(code, CLEAR, stdout);
        assertMatch(stdout, /^Clear: /);
        assertMatch(stdout, PROBED);
      }
      const { routes, probes } = await usage();
      const counts = routes.map(({ calls, otherRequests }) => [calls, otherRequests]);
      assertEquals(counts, [[0, 0], [0, 0]]);
      assertEquals(probes.map(({ requests }) => requests), [5, 5]);
    }),
);

/** What is in front, and what the gate says of it. */
const UNANSWERED: readonly (readonly [what: string, Front, RegExp])[] = [
  ["an edge that strips the field", stripping, /http:\S+ answers \(200\), .* lifecycle-probe\. /],
  ["a redirect", answering(301, " https://a.test/"), /http:\S+ .* https:\/\/a.test\/ \(301\)/],
  ["a 304, which is no redirect", answering(304), /http:\S+ answers \(304\), /],
  ["a demand for credentials", answering(401), /http:\S+ .* \(401\)/],
  ["a rate limit", answering(429), /http:\S+ .* \(429\)/],
  [
    "a rate limit that the first request keeps",
    ({ port: origin }) =>
      Daemon.start("nginx", ({ port, folder }) =>
        nginx(
          folder,
          `limit_req_zone all zone=all:1m rate=1r/m; limit_req_status 429; limit_req zone=all;
          ${server(port, `proxy_pass http://127.0.0.1:${origin};`)}`,
        )),
    /http:\S+ .* \(429\)/,
  ],
  ["nobody", () => Promise.resolve({ port: freePort() }), /http:\S+ does not answer \(/],
];

needing("processes", ...NGINX)(
  "the gate is unknown where its probe does not arrive, and names what did",
  () =>
    serveHere(UNANSWERED.map(([, front]) => front), {}, async ({ gate, usage }, ports) => {
      for (const [index, [what, , said]] of UNANSWERED.entries()) {
        const ignoring = ["--ignore", "app media-head-gate"]; // that of the edge before
        const { code, stdout } = await gate(`http://127.0.0.1:${ports[index]}`, ...ignoring);
        assertEquals(code, UNKNOWN, `${what}: ${stdout}`);
        assertMatch(stdout, said);
      }
      assertEquals((await usage()).routes[0]?.calls, 1, "only the first GET became a call");
    }),
);

needing("processes", ...NGINX, program("openssl"))(
  "the gate says how to trust a certificate of an unknown issuer, and probes through it then",
  () =>
    inFolder(async (folder) => {
      const { certificate, key } = await createCertificate(folder);
      const encrypting = front((port, pass) =>
        server(
          `${port} ssl`,
          `${pass} proxy_set_header Host $host; } ssl_certificate ${certificate};
        ssl_certificate_key ${key}; location /none {`,
        )
      );
      await serveHere([encrypting], {}, async ({ gate }, [port]) => {
        const { code, stdout } = await gate(`https://127.0.0.1:${port}`);
        assertEquals(code, UNKNOWN, stdout);
        assertMatch(stdout, /\(.*UnknownIssuer\)\. .* DENO_CERT\. /);
      });
      // Only the start of a process reads this variable.
      await serve({ DENO_CERT: certificate }, async ({ server, gate }) => {
        await using before = await encrypting(server);
        const { code, stdout } = await gate(`https://127.0.0.1:${before.port}`);
        assertEquals(code, CLEAR, stdout);
        assertMatch(stdout, PROBED);
      });
    }),
);

needing("processes")(
  "the gate is unknown in a brownout, and says when to probe; under a hold, it probes",
  () =>
    serveHere([], BROWNOUT, async ({ server, gate, hold }) => {
      const { code, stdout } = await gate(server.origin);
      assertEquals(code, UNKNOWN);
      assertMatch(stdout, / in a brownout, .* 2998-01-01T00:00:00Z/);
      const tomorrow = new Date(Date.now() + DAY).toISOString();
      const held = await hold("--until", tomorrow, "--because", "a test");
      assertEquals(held.code, 0, held.stderr);
      assertMatch(held.stdout, /\n1 process has followed\n/);
      const probed = await gate(server.origin);
      assertEquals(probed.code, ANNOUNCED, probed.stdout);
      assertMatch(probed.stdout, PROBED);
    }),
);

needing("network")("a probe does not wait for a count of what got no answer", async () => {
  let reads = 0;
  const ledger = {
    time: () => Promise.resolve({ databaseTime: NOW, now: NOW }),
    async *usage() {
      reads++;
      yield* [];
    },
  };
  const url = `http://127.0.0.1:${freePort()}/`;
  const routes = ["/a", "/b"];
  const policies = Object.fromEntries(routes.map((route) => [route, POLICY]));
  const urlOf = () => Promise.resolve(url);
  const { probed, hidden } = await probe(ledger, { url, routes, policies, urlOf });
  assertEquals(probed, []);
  const reasons = hidden.map(({ route, reason }) => [route, reason]);
  assertEquals(reasons, routes.map((route) => [route, "no answer"]));
  assertEquals(reads, 2); // after the first requests, and after the others
});
