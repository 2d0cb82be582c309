import { assert, assertEquals, assertMatch } from "@std/assert";
import { OTHER } from "../../../lib/lifecycle/user_agent.ts";
import type { Moment } from "../../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { CachedStorage } from "../../../lib/storage/cache.ts";
import { newToken } from "../../../lib/storage/token.ts";
import { MAX_NEW_NAMES_A_DAY, MAX_PROBES_A_DAY } from "../../../lib/usage/record/client_names.ts";
import { UsageMeter } from "../../../lib/usage/record/meter.ts";
import type { UsageCount } from "../../../lib/usage/record/records.ts";
import { CONFIG } from "../../server/request_table.ts";
import { COUNT, countOne, NOON } from "../../support/counted_call.ts";
import { servedHandler } from "../../support/handlers.ts";
import { OneItem } from "../../support/one_item.ts";
import { underPolicy } from "../../support/routes.ts";

const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-01",
  brownouts: ["2027-02-01T09:00Z/PT1H", "2027-02-01T11:00Z/PT2H"],
});
const BROWNOUT: Moment = { phase: "brownout", until: NOON };

Deno.test("UsageMeter counts by route, method, phase, brownout, status, impact and client", () => {
  const meter = new UsageMeter();
  const [first, second] = POLICY.brownouts.map(({ end }) => ({ phase: "brownout", until: end }));
  countOne(meter, { userAgent: "curl/1" });
  countOne(meter, { userAgent: "curl/1" });
  countOne(meter, { userAgent: "curl/1", status: 206 });
  countOne(meter, { userAgent: null, status: 404, breaks: false });
  countOne(meter, { userAgent: null, status: 412 });
  countOne(meter, { userAgent: null, method: "BREW", status: 405, breaks: false });
  countOne(meter, { userAgent: "curl/1", moment: first as Moment, policy: POLICY });
  countOne(meter, { userAgent: "curl/1", moment: second as Moment, policy: POLICY });
  countOne(meter, { userAgent: "curl/1", route: "/video/:token" });
  const none = { ...COUNT, client: "(no User-Agent)", status: "404", calls: 1 } as const;
  const curl = { ...COUNT, client: "app curl", release: "1", calls: 1 } as const;
  const brownout = { ...curl, phase: "brownout" } as const;
  assertEquals(meter.take(NOON), [
    { ...curl, calls: 3 },
    { ...none, impact: "none" },
    { ...none, status: "4xx" },
    { ...none, status: "405", impact: "none", method: "(other)" },
    { ...brownout, brownout: "2027-02-01T09:00:00Z" },
    { ...brownout, brownout: "2027-02-01T11:00:00Z" },
    { ...curl, route: "/video/:token" },
  ]);
  assertEquals(meter.take(NOON), []);
});

Deno.test("UsageMeter records the release of an app, or the app of a site or id, where removal breaks a call", () => {
  const meter = new UsageMeter("x-consumer");
  for (const userAgent of ["App/2", "App/1", "App/2", "Pod-491511/1"]) {
    countOne(meter, { userAgent });
  }
  countOne(meter, { userAgent: "App/3", status: 404, breaks: false });
  countOne(meter, { userAgent: "App/2", method: "GET" });
  countOne(meter, { userAgent: "Mozilla/5.0 Chrome/120.0" }, { Origin: "https://a.test" });
  countOne(meter, { userAgent: "okhttp/4.9" }, { "X-Consumer": "team" });
  const counted = meter.take(NOON).map(({ client, release, calls }) => [client, release, calls]);
  assertEquals(counted, [
    ["app App", "2", 2],
    ["app App", "1", 1],
    ["(other)", "", 1],
    ["site a.test", "Chrome", 1],
    ["id team", "okhttp", 1],
    ["app App", "", 1],
    ["app App", "2", 1],
  ]);
});

Deno.test("UsageMeter counts probes as no calls, and as no new names", () => {
  const meter = new UsageMeter();
  for (let index = 0; index < MAX_NEW_NAMES_A_DAY; index++) {
    const name = index.toString(16).padStart(16, "0");
    countOne(meter, { userAgent: `App-${index}/1` }, { "Lifecycle-Probe": name });
  }
  countOne(meter, { userAgent: "media-head-check", moment: BROWNOUT, status: 503 });
  countOne(meter, { userAgent: "App" });
  const counts = meter.take(NOON);
  const isProbe = ({ client, impact, release }: UsageCount) =>
    client.startsWith("probe ") && impact === "none" && release === "";
  assertEquals(counts.filter((count) => !isProbe(count)).map(({ client }) => client), ["app App"]);
  const callsOf = (name: string) => counts.find(({ client }) => client === `probe ${name}`)?.calls;
  const others = MAX_NEW_NAMES_A_DAY - MAX_PROBES_A_DAY;
  assertEquals(["0".repeat(16), "(other)", "media-head-check"].map(callsOf), [1, others, 1]);
});

Deno.test("UsageMeter bounds its memory of hostile names and releases", () => {
  const meter = new UsageMeter();
  const hostile = (index: number) =>
    [
      `client-${index}/1`,
      `\x1b]0;${index}\x07`,
      `<img src=x onerror=${index}>`,
      `c${index}${"x".repeat(8000)}`,
      `App${index % 97}/${index % 1000}.${index}`,
    ][index % 5] as string;
  for (let index = 0; index < 20_000; index++) {
    const method = index % 7 === 0 ? `METHOD${index}` : "GET";
    countOne(meter, { method, userAgent: hostile(index) });
  }
  const counts = meter.take(NOON);
  assert(counts.length <= 2 * 4_002, `${counts.length} rows`);
  assertEquals(counts.reduce((sum, { calls }) => sum + calls, 0), 20_000);
  const distinct = (of: (count: UsageCount) => string) => new Set(counts.map(of));
  const names = distinct(({ client }) => client);
  assert(names.size <= MAX_NEW_NAMES_A_DAY + 1, `${names.size} names`);
  for (const name of names) assertMatch(name, /^[\x20-\x7e]{1,68}$/);
  const pairs = distinct(({ client, release }) => `${client} ${release}`);
  assert(pairs.size > names.size + 100, "there are some releases");
  assert(counts.every(({ client, release }) => client !== OTHER || release === ""));
});

/** The status of the brownout, if there is one, what is requested, and how it is counted. */
const ANSWERS: [brownout: 503 | 410 | undefined, request: string, counted: string][] = [
  [undefined, `HEAD /audio/${newToken()}`, "2xx breaking"],
  [undefined, `HEAD /video/${newToken()}`, "404 none"],
  [undefined, "HEAD /audio/malformed", "400 none"],
  [503, `HEAD /audio/${newToken()}`, "5xx breaking"],
  [503, `GET /video/${newToken().toUpperCase()}`, "5xx breaking"],
  [503, "HEAD /audio/malformed", "5xx none"],
  [410, `HEAD /audio/${newToken()}`, "4xx breaking"],
  [410, "GET /audio/malformed", "410 none"],
];

Deno.test("createHandler() counts every answer, prepared ones included, and looks nothing up in a brownout", async () => {
  for (const [status, request, counted] of ANSWERS) {
    const [method = "", path = ""] = request.split(" ");
    const brownouts = status === undefined
      ? []
      : POLICY.brownouts.map((brownout) => ({ ...brownout, status }));
    const [storage, meter] = [new OneItem(), new UsageMeter()];
    const handle = servedHandler({
      storage: new CachedStorage(storage, storage, Date.now),
      config: { ...CONFIG, ...underPolicy({ ...POLICY, brownouts }) },
      clock: () => NOON,
      log() {},
      recorder: { meter, fault: undefined },
    });
    const responses = new Set<Response>();
    for (const _ of [1, 2, 3, 4]) {
      responses.add(await handle(new Request(`http://test${path}`, { method })));
    }
    if (method === "HEAD") assert(responses.size < 4, `${request}: one is prepared, and shared`);
    const seen = meter.take(NOON).map(({ method, route, brownout, status, impact, calls }) =>
      `${method} ${route} ${brownout} ${status} ${impact}: ${calls}`
    );
    const start = status === undefined ? "" : "2027-02-01T11:00:00Z";
    assertEquals(seen, [`${request.replace(/[^/]+$/, ":token")} ${start} ${counted}: 4`]);
    if (status !== undefined) assertEquals(storage.find.calls, [], request);
  }
});
