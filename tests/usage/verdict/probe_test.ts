/** Whether a cache in front of the servers can hide callers from the gate. */

import { assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { newMetadata } from "../../storage/storage_suite.ts";
import { startCache } from "../../support/caches.ts";
import { createCertificate } from "../../support/certificate.ts";
import { Daemon, nginx } from "../../support/daemon.ts";
import { probe } from "../../../lib/usage/verdict/probe.ts";
import { openLocal } from "../../support/local_storage.ts";
import { media } from "../../support/media_cli.ts";
import { needing, program } from "../../support/permissions.ts";
import { freePort } from "../../support/ports.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { ServerProcess } from "../../support/server.ts";
import { sideBySide } from "../../support/side_by_side.ts";
import { DAY, NOW, POLICY } from "../../support/usage_report.ts";
import { until } from "../../support/within.ts";

const [CLEAR, CALLED, UNKNOWN, ANNOUNCED] = [0, 1, 3, 4];
/** What a verdict says of a route that was probed. */
const PROBED = / A probe of \/audio\/:token /;

const REMOVED = { DEPRECATED_AT: "1999-01-01", SUNSET_AT: "2000-01-01" };
const BROWNOUT = {
  DEPRECATED_AT: "1999-01-01",
  BROWNOUTS: "2000-01-01/2998-01-01",
  SUNSET_AT: "2999-01-01",
};

/** Starts nginx with these blocks, in front of a server. */
function front(blocks: (port: number, origin: string) => string): Front {
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
  [
    "nginx with a cache, while nothing may be cached",
    cached,
    CALLED,
    OVERCAST,
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
    readonly hold: (...args: string[]) => ReturnType<typeof media>;
    readonly usage: () => Promise<{
      readonly routes: { route: string; calls: number; otherRequests: number }[];
      readonly probes: { probe: string; requests: number }[];
    }>;
  }) => Promise<void>,
): Promise<void> {
  await using subject = await openLocal();
  const { token } = await subject.publish(newMetadata("audio"), new Uint8Array(1000));
  await subject.close();
  await using server = await ServerProcess.start({ ...environment }, subject.folder);
  {
    using ledger = new DatabaseSync(`${subject.folder}/catalogue.sqlite-ledger`, {
      timeout: 5_000,
    });
    ledger.exec(
      `INSERT INTO media_head_session (id, opened, policies, pid, process_started, on_demand,
         retain_days, began, reported, written, sequence, ended)
       SELECT 'before', 'before', policies, pid, process_started, 0, 400, began - ${3 * DAY}, began,
         began, 1, 'stopped' FROM media_head_session`,
    );
  }
  const run = (PUBLIC_URL: string, ...args: string[]) =>
    media(subject.folder, ["usage", ...args], { ...environment, PUBLIC_URL });
  await body({
    server,
    token,
    gate: (publicUrl, ...args) => run(publicUrl, "--gate", "1", ...args),
    hold: (...args) => media(subject.folder, ["hold", ...args], environment),
    usage: async () => JSON.parse((await run("", "--json")).stdout),
  });
}

needing("processes", ...NGINX)(
  "the gate finds out whether calls are hidden by a cache",
  () =>
    sideBySide(
      ROWS,
      ([, start, verdict, said, environment = {}]) =>
        serve(environment, async ({ server, token, gate }) => {
          const before = await start(server);
          try {
            const fields = { "User-Agent": "Overcast/3.0" };
            const calls = verdict === CALLED ? 20 : 0;
            for (let call = 0; call < calls; call++) {
              await requestRaw(before.port, "HEAD", `/audio/${token}`, fields);
            }
            const { code, stdout } = await gate(`http://127.0.0.1:${before.port}`);
            assertEquals(code, verdict, stdout);
            assertMatch(stdout, said);
          } finally {
            await before[Symbol.asyncDispose]?.();
          }
        }),
    ),
);

needing("processes", ...NGINX)(
  "two gates at once through an edge that replaces User-Agent are clear, and count as no calls",
  () =>
    serve({ CLIENT_FIELD: "user-agent" }, async ({ server, gate, usage }) => {
      const edge = await renaming(server);
      try {
        const url = `http://127.0.0.1:${edge.port}`;
        for (const { code, stdout } of await Promise.all([gate(url), gate(url)])) {
          assertEquals(code, CLEAR, stdout);
          assertMatch(stdout, /^Clear: /);
          assertMatch(stdout, PROBED);
        }
        const { routes, probes } = await usage();
        assertEquals(routes.map(({ calls, otherRequests }) => [calls, otherRequests]), [
          [0, 0],
          [0, 0],
        ]);
        assertEquals(probes.map(({ requests }) => requests), [5, 5]);
      } finally {
        await edge[Symbol.asyncDispose]?.();
      }
    }),
);

/** What is in front, and what the gate says of it. */
const UNANSWERED: readonly (readonly [what: string, Front, RegExp])[] = [
  [
    "an edge that strips the field",
    stripping,
    /http:\S+ answers \(200\), .* lifecycle-probe\. /,
  ],
  [
    "a redirect",
    answering(301, " https://a.test/"),
    /http:\S+ .* https:\/\/a.test\/ \(301\)/,
  ],
  [
    "a 304, which is no redirect",
    answering(304),
    /http:\S+ answers \(304\), /,
  ],
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
  [
    "nobody",
    () => Promise.resolve({ port: freePort() }),
    /http:\S+ does not answer \(.* set PUBLIC_URL=/,
  ],
];

needing("processes", ...NGINX)(
  "the gate is unknown where its probe does not arrive, and names what did",
  () =>
    serve({}, async ({ server, gate, usage }) => {
      await sideBySide(UNANSWERED, async ([, start, said]) => {
        const before = await start(server);
        try {
          const ignoring = ["--ignore", "app media-head-gate"]; // that of the edge before
          const { code, stdout } = await gate(`http://127.0.0.1:${before.port}`, ...ignoring);
          assertEquals(code, UNKNOWN, stdout);
          assertMatch(stdout, said);
        } finally {
          await before[Symbol.asyncDispose]?.();
        }
      });
      assertEquals((await usage()).routes[0]?.calls, 1, "only the first GET became a call");
    }),
);

needing("processes", ...NGINX, program("openssl"))(
  "the gate says how to trust a certificate of an unknown issuer, and probes through it then",
  async () => {
    const folder = await Deno.makeTempDir();
    const { certificate, key } = await createCertificate(folder);
    const encrypting = front((port, pass) =>
      server(
        `${port} ssl`,
        `${pass} proxy_set_header Host $host; } ssl_certificate ${certificate};
        ssl_certificate_key ${key}; location /none {`,
      )
    );
    const rows: [environment: Record<string, string>, verdict: number, said: RegExp][] = [
      [
        {},
        UNKNOWN,
        /\(.*UnknownIssuer\)\. .* DENO_CERT\. /,
      ],
      [{ DENO_CERT: certificate }, CLEAR, PROBED],
    ];
    try {
      for (const [environment, verdict, said] of rows) {
        await serve(environment, async ({ server, gate }) => {
          const before = await encrypting(server);
          try {
            const { code, stdout } = await gate(`https://127.0.0.1:${before.port}`);
            assertEquals(code, verdict, stdout);
            assertMatch(stdout, said);
          } finally {
            await before[Symbol.asyncDispose]?.();
          }
        });
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);

needing("processes")(
  "the gate is unknown in a brownout, and says when to probe; under a hold, it probes",
  () =>
    serve(BROWNOUT, async ({ server, gate, hold }) => {
      const { code, stdout } = await gate(server.origin);
      assertEquals(code, UNKNOWN);
      assertMatch(stdout, / in a brownout, .* 2998-01-01T00:00:00Z/);
      const tomorrow = new Date(Date.now() + DAY).toISOString();
      assertEquals((await hold("--until", tomorrow, "--because", "a test")).code, 0);
      const headers = { Accept: "application/json" };
      await until("the hold", async () => {
        const notice = await fetch(`${server.origin}/deprecation`, { headers });
        return (await notice.json()).phase === "deprecated";
      });
      const held = await gate(server.origin);
      assertEquals(held.code, ANNOUNCED, held.stdout);
      assertMatch(held.stdout, PROBED);
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
  assertEquals(hidden.map(({ route, reason }) => [route, reason]), [
    ["/a", "no answer"],
    ["/b", "no answer"],
  ]);
  assertEquals(reads, 2); // after the first requests, and after the others
});
