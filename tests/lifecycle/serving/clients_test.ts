/** Responses where the policy depends on the client, in either kind of server. */

import { assertEquals } from "@std/assert";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Field } from "../../../lib/http/outcome.ts";
import { extendedPolicy } from "../../../lib/lifecycle/extension.ts";
import {
  definePolicy,
  type LifecycleOptions,
  type RequestHead,
} from "../../../lib/lifecycle/mod.ts";
import { middlewareOf } from "../../../lib/lifecycle/serving/retire.ts";
import { type CallRecord, retirementOf } from "../../../lib/lifecycle/serving/retirement.ts";
import { handlerOf } from "../../../lib/lifecycle/serving/with_lifecycle.ts";
import { needing } from "../../support/permissions.ts";

const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30",
  brownouts: ["2027-03-01T09:00Z/PT1H"],
  brownoutStatus: 503,
});
const END = Date.parse("2027-12-31");
const [DEPRECATED, BROWNOUT, LAST, REMOVED, EXPIRED] = [
  "2027-02-01",
  "2027-03-01T09:30:00Z",
  "2027-06-29T23:59:00Z",
  "2027-07-01",
  "2028-01-01",
].map((text) => Date.parse(text)) as [number, number, number, number, number];

/** A record that knows one client, whose name is in the request. */
const RECORD: CallRecord<RequestHead, readonly unknown[], string> = {
  recognize(policy, { headers }) {
    const client = headers.get("x-user") ?? "";
    return { client, policy: extendedPolicy(policy, client === "acme" ? END : undefined) };
  },
  arrive: () => true,
  count() {},
  leave() {},
};

/** What an application answers. */
interface Answer {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
}

/** Makes a call to a server, and returns the status and the fields for caches. */
type Make = (
  call: { readonly method: string; readonly user: string; readonly at: number },
  answer: Answer,
  options?: LifecycleOptions<RequestHead>,
) => Promise<{ status: number; sunset: string | undefined; fields: Record<string, string> }>;

const FOR_CACHES = /^(?:.*cache-control|edge-control|surrogate-control|expires|x-accel-expires)$/;

function resultOf(status: number, fields: Iterable<readonly [string, string]>) {
  const all = [...fields];
  const kept = all.filter(([name]) => FOR_CACHES.test(name));
  const sunset = all.find(([name]) => name === "sunset")?.[1];
  return { status, sunset, fields: Object.fromEntries(kept) as Record<string, string> };
}

const byFetch: Make = async ({ method, user, at }, { status, fields }, options) => {
  const apply = retirementOf(POLICY, { clock: () => at, ...options }, RECORD);
  const handler = handlerOf(() => new Response(null, { status, headers: fields }), apply);
  const request = new Request("http://test/v1", { method, headers: { "X-User": user } });
  const response = await handler(request);
  await response.body?.cancel();
  return resultOf(response.status, response.headers);
};

/** The same, with a response whose fields cannot be changed. */
const byImmutable: Make = async ({ method, user, at }, { status, fields }, options) => {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response(null, { status, headers: fields }),
  );
  const fetched = await fetch(`http://127.0.0.1:${server.addr.port}/`, { redirect: "manual" });
  const apply = retirementOf(POLICY, { clock: () => at, ...options }, RECORD);
  const request = new Request("http://test/v1", { method, headers: { "X-User": user } });
  const response = await handlerOf(() => fetched, apply)(request);
  await response.body?.cancel();
  if (response !== fetched) await fetched.body?.cancel();
  await server.shutdown();
  return resultOf(response.status, response.headers);
};

/** Makes a call through Node's server, whose application gives its fields in some way. */
const byNode = (isEarly: boolean): Make => async ({ method, user, at }, answer, options) => {
  const apply = retirementOf(POLICY, { clock: () => at, ...options }, RECORD);
  const middleware = middlewareOf(apply);
  const server = createServer((request, response) => {
    const { status, fields } = answer;
    middleware(request, response, () => {
      if (isEarly) {
        for (const [name, value] of Object.entries(fields)) response.setHeader(name, value);
      }
      response.writeHead(status, isEarly ? {} : fields).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const init = { method, headers: { "X-User": user }, redirect: "manual" } as const;
  const response = await fetch(`http://127.0.0.1:${port}/v1`, init);
  await response.body?.cancel();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  return resultOf(response.status, response.headers);
};

const MAKERS: [name: string, make: Make][] = [
  ["withLifecycle()", byFetch],
  ["withLifecycle() with what fetch() returns", byImmutable],
  ["retire() with fields that were set", byNode(true)],
  ["retire() with fields of writeHead()", byNode(false)],
];

const TAIL = "must-revalidate, stale-while-revalidate=0";
const TARGETED = {
  "CDN-Cache-Control": "max-age=600",
  "Vercel-CDN-Cache-Control": "max-age=600",
  "Surrogate-Control": "max-age=600",
  "Edge-Control": "cache-maxage=1h",
  "X-Accel-Expires": "600",
};

/** What an application answers, and what caches are told. */
const ANSWERS: [
  method: string,
  status: number,
  fields: Record<string, string>,
  sent: string | undefined,
][] = [
  ["GET", 200, {}, `private, max-age=0, ${TAIL}`],
  ["GET", 200, { "Cache-Control": "max-age=60" }, `private, max-age=60, ${TAIL}`],
  [
    "GET",
    200,
    { "Cache-Control": "public, max-age=60, s-maxage=600", ...TARGETED },
    `private, max-age=60, ${TAIL}`,
  ],
  ["GET", 404, { "Cache-Control": "s-maxage=600" }, `private, max-age=0, ${TAIL}`],
  ["GET", 304, {}, `private, max-age=0, ${TAIL}`],
  ["GET", 200, { "Cache-Control": "private" }, `private, max-age=0, ${TAIL}`],
  ["GET", 200, { "Cache-Control": "no-store", ...TARGETED }, "no-store"],
  ["GET", 302, { Location: "/v2", ...TARGETED }, undefined],
  ["GET", 403, {}, undefined],
  ["GET", 403, { "Cache-Control": "public" }, undefined],
  ["GET", 500, TARGETED, undefined],
  ["GET", 302, { Location: "/v2", "Cache-Control": "max-age=60" }, `private, max-age=60, ${TAIL}`],
  ["POST", 200, TARGETED, undefined],
  ["POST", 200, { "Cache-Control": "max-age=60" }, `private, max-age=60, ${TAIL}`],
  ["OPTIONS", 204, {}, undefined],
];

for (const [name, make] of MAKERS) {
  needing("network")(`${name} keeps from shared caches what depends on the client`, async () => {
    for (const [method, status, fields, sent] of ANSWERS) {
      for (const user of ["acme", "other"]) {
        for (const each of method === "GET" ? ["GET", "HEAD"] : [method]) {
          const note = JSON.stringify([each, status, fields, user]);
          const got = await make({ method: each, user, at: DEPRECATED }, { status, fields });
          const expected = sent === undefined ? {} : { "cache-control": sent };
          assertEquals([got.status, got.fields], [status, expected], note);
        }
      }
    }
  });

  needing("network")(
    `${name} gives each client its own phases, and caches what ends with them`,
    async () => {
      const answer = { status: 200, fields: { "Cache-Control": "public, max-age=86400" } };
      const [common, own] = ["Wed, 30 Jun 2027 00:00:00 GMT", "Fri, 31 Dec 2027 00:00:00 GMT"];
      const day = `private, max-age=86400, ${TAIL}`;
      const rows: [user: string, at: number, status: number, sunset: string, cached: string][] = [
        ["acme", DEPRECATED, 200, own, day],
        ["other", DEPRECATED, 200, common, day],
        ["acme", BROWNOUT, 200, own, day],
        ["other", BROWNOUT, 503, common, "no-store, no-transform"],
        ["acme", LAST, 200, own, day],
        ["other", LAST, 200, common, `private, max-age=59, ${TAIL}`],
        ["acme", REMOVED, 200, own, day],
        ["other", REMOVED, 410, common, "private, max-age=7, no-transform"],
        ["acme", END - 10_000, 200, own, `private, max-age=9, ${TAIL}`],
        ["acme", EXPIRED, 410, own, "private, max-age=7, no-transform"],
      ];
      for (const [user, at, status, sunset, cached] of rows) {
        for (const method of ["GET", "HEAD"]) {
          const got = await make({ method, user, at }, answer, { maxAge: 7 });
          assertEquals(
            got,
            { status, sunset, fields: { "cache-control": cached } },
            `${user} ${at}`,
          );
        }
      }
    },
  );
}

Deno.test("withLifecycle() keeps one response apart for each client that gets it", async () => {
  const headers = { "Cache-Control": "public, max-age=60", "CDN-Cache-Control": "max-age=60" };
  const response = new Response(null, { headers });
  const apply = retirementOf(POLICY, { clock: () => REMOVED }, RECORD);
  const handler = handlerOf(() => response, apply);
  const sunsets: unknown[] = [];
  for (const user of ["acme", "other", "acme"]) {
    const sent = await handler(new Request("http://test/v1", { headers: { "X-User": user } }));
    const fields: Field[] = [...sent.headers].filter(([name]) => FOR_CACHES.test(name));
    sunsets.push([sent.status, sent.headers.get("sunset"), Object.fromEntries(fields)]);
    await sent.body?.cancel();
  }
  const mine = [200, "Fri, 31 Dec 2027 00:00:00 GMT", {
    "cache-control": `private, max-age=60, ${TAIL}`,
  }];
  const [first, other, last] = sunsets;
  assertEquals([first, last], [mine, mine]);
  assertEquals((other as unknown[]).slice(0, 2), [410, "Wed, 30 Jun 2027 00:00:00 GMT"]);
});

Deno.test("withLifecycle() keeps each cookie of a response for one client", async () => {
  const cookies = [["Set-Cookie", "a=1"], ["Set-Cookie", "b=2"]] as [string, string][];
  const apply = retirementOf(POLICY, { clock: () => DEPRECATED }, RECORD);
  const handler = handlerOf(() => new Response(null, { headers: cookies }), apply);
  const { headers } = await handler(new Request("http://test/v1"));
  assertEquals(headers.getSetCookie(), ["a=1", "b=2"]);
});
