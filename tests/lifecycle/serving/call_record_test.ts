/** Calls that wait until a record knows of them, in either kind of server. */

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { once } from "node:events";
import { createServer, type IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import {
  definePolicy,
  type LifecycleOptions,
  type Policy,
  type RequestHead,
} from "../../../lib/lifecycle/mod.ts";
import { middlewareOf, type NodeResponse } from "../../../lib/lifecycle/serving/retire.ts";
import { type CallRecord, retirementOf } from "../../../lib/lifecycle/serving/retirement.ts";
import { handlerOf } from "../../../lib/lifecycle/serving/with_lifecycle.ts";
import { needing } from "../../support/permissions.ts";
import { requestHead, requestRaw } from "../../support/raw_http.ts";
import { until } from "../../support/within.ts";

const SETTINGS = {
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30",
  brownouts: ["2027-03-01T09:00Z/PT1H"],
  brownoutStatus: 503,
  documentation: "/why",
} as const;
const POLICY = definePolicy(SETTINGS);
const STRICT = definePolicy({ ...SETTINGS, brownoutStatus: 410 });
const REDIRECTING = definePolicy({ ...SETTINGS, afterSunset: "redirect" });
const [ANNOUNCED, DEPRECATED, BROWNOUT, REMOVED] = [
  "2026-12-01",
  "2027-02-01",
  "2027-03-01T09:30:00Z",
  "2027-07-01",
].map((text) => Date.parse(text)) as [number, number, number, number];
const successor = () => "/v2";

type AnyRecord = CallRecord<RequestHead, readonly unknown[]>;

/** A record that answers as it is told, and what happens to its calls, in order. */
function recordOf(arrive: AnyRecord["arrive"]) {
  const events: unknown[] = [];
  const record: AnyRecord = {
    arrive(fields) {
      events.push("arrive");
      return arrive(fields);
    },
    count: ({ status }) => void events.push(status),
    leave: () => void events.push("leave"),
  };
  return { record, events };
}

/** Listens with Node's server. */
async function listening(handle: (request: IncomingMessage, response: ServerResponse) => unknown) {
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    server,
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What a call gets, but for Date and the connection. */
interface Got {
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly content: string;
}

/** Makes a call to a handler that answers 200, and is retired with a record. */
type Make = (
  settings: { policy: Policy; options: LifecycleOptions<RequestHead>; record: AnyRecord },
  method: string,
) => Promise<Got>;

const byFetch: Make = async ({ policy, options, record }, method) => {
  const handler = handlerOf(() => new Response("old"), retirementOf(policy, options, record));
  const response = await handler(new Request("http://test/v1", { method }));
  const { status, headers } = response;
  return { status, fields: Object.fromEntries(headers), content: await response.text() };
};

const byNode: Make = async ({ policy, options, record }, method) => {
  const middleware = middlewareOf(retirementOf(policy, options, record));
  await using server = await listening((request, response) =>
    middleware(request, response, () => response.end("old"))
  );
  const { status, fields, content } = await requestRaw(server.port, method, "/v1");
  const own = fields.filter(([name]) => !/^(?:date|connection|keep-alive|vary)$/.test(name));
  return { status, fields: Object.fromEntries(own), content: new TextDecoder().decode(content) };
};

const MAKERS = [["withLifecycle()", byFetch], ["retire()", byNode]] as const;

/** Calls, what is sent if they may be answered, and whether the record is asked. */
const ASKING: [
  what: string,
  at: number,
  status: number,
  asks: boolean,
  method?: string,
  options?: LifecycleOptions<RequestHead>,
  policy?: Policy,
][] = [
  ["an announced one", ANNOUNCED, 200, true],
  ["a deprecated one", DEPRECATED, 200, true],
  ["a deprecated POST", DEPRECATED, 200, true, "POST"],
  ["an OPTIONS", DEPRECATED, 200, false, "OPTIONS"],
  ["an OPTIONS in a brownout", BROWNOUT, 200, false, "OPTIONS"],
  ["a refused OPTIONS", BROWNOUT, 503, true, "OPTIONS", { applies: () => true }],
  ["a removed OPTIONS", REMOVED, 410, false, "OPTIONS", { applies: () => true }],
  ["one in a brownout", BROWNOUT, 503, true],
  ["one in a brownout with 410", BROWNOUT, 410, false, "GET", {}, STRICT],
  ["one that is spared in a brownout", BROWNOUT, 200, true, "GET", { applies: () => false }],
  ["a removed one", REMOVED, 410, false],
  ["a redirected one", REMOVED, 308, true, "GET", { successor }, REDIRECTING],
  ["one that is spared after the removal", REMOVED, 200, true, "GET", { applies: () => false }],
];

for (const [name, make] of MAKERS) {
  needing("network")(`${name} asks the record of each call that the removal breaks`, async () => {
    const [told, expected]: [unknown[], unknown[]] = [[], []];
    for (const [what, at, status, asks, method = "GET", given = {}, policy = POLICY] of ASKING) {
      for (const mayAnswer of [true, false]) {
        for (const answer of [Promise.resolve(mayAnswer), undefined]) {
          const { record, events } = recordOf(() => answer);
          const options = { ...given, clock: () => at };
          const got = await make({ policy, options, record }, method);
          told.push([what, mayAnswer, got.status, events]);
          const sent = asks && answer !== undefined && !mayAnswer ? 503 : status;
          const leaves = asks && answer !== undefined ? ["leave"] : [];
          expected.push([what, mayAnswer, sent, [...asks ? ["arrive"] : [], sent, ...leaves]]);
        }
      }
    }
    assertEquals(told, expected);
  });

  needing("network")(
    `${name} sends the same in place of any call that is not on record`,
    async () => {
      for (const [what, at, , asks, method = "GET", given = {}, policy = POLICY] of ASKING) {
        if (!asks) continue;
        for (const refusalFields of [undefined, () => [["X-Own", "1"] as [string, string]]]) {
          const { record } = recordOf(() => Promise.resolve(false));
          const options = { successor, ...given, refusalFields, clock: () => at };
          const settings = { policy, options, record };
          const got = await make(settings, method);
          const { content, fields: { deprecation, sunset, link, ...fields } } = got;
          assertEquals(got.status, 503, what);
          assertEquals([deprecation, sunset], ["@1798761600", "Wed, 30 Jun 2027 00:00:00 GMT"]);
          assertEquals(
            link,
            '</v2>; rel="successor-version", </why>; rel="deprecation", </why>; rel="sunset"',
          );
          const exposed = "Deprecation, Link, Retry-After, Sunset";
          assertEquals(fields, {
            "access-control-expose-headers": refusalFields ? exposed : `*, ${exposed}`,
            ...refusalFields ? { "x-own": "1" } : { "access-control-allow-origin": "*" },
            "cache-control": "no-store, no-transform",
            "content-length": String(content.length),
            "content-type": "application/problem+json",
            "retry-after": "5",
            "x-content-type-options": "nosniff",
          }, what);
          assertEquals(JSON.parse(content), {
            title: "Service Unavailable",
            status: 503,
            detail: "The record of calls is unavailable, and this path needs it; retry later",
            successor: "/v2",
            documentation: "/why",
          });
          if (method !== "GET") continue;
          assertEquals(await make(settings, "HEAD"), { ...got, content: "" }, what);
        }
      }
    },
  );
}

/** A request and a response of Node, of which nothing is sent. */
function exchange() {
  const request = { method: "GET", url: "/v1", headers: {} };
  let end: unknown;
  const response: NodeResponse & { readonly ended: unknown } = {
    statusCode: 200,
    headersSent: false,
    getHeaders: () => ({}),
    ...{ setHeader() {}, removeHeader() {}, writeHead() {}, once() {} },
    end: (content) => void (end = content ?? ""),
    get ended() {
      return end;
    },
  };
  return { request, response };
}

Deno.test("retire() does not wait while the record says that the call may be answered", () => {
  const { record } = recordOf(() => true);
  const middleware = middlewareOf(retirementOf(POLICY, {}, record));
  const { request, response } = exchange();
  const result = { of: "next" };
  assert(middleware(request, response, () => result) === result);
  assertThrows(
    () =>
      middleware(request, response, () => {
        throw new TypeError("bug");
      }),
    TypeError,
    "bug",
  );
});

Deno.test("retire() that waits resolves to what next() returns, and rejects with what it throws", async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const { record } = recordOf(() => promise);
  const middleware = middlewareOf(retirementOf(POLICY, {}, record));
  const called: number[] = [];
  const nexts = [
    () => "value",
    () => Promise.resolve("of a promise"),
    () => Promise.reject(new TypeError("rejected")),
    () => {
      throw new TypeError("thrown");
    },
  ];
  const results = nexts.map((next, index) => {
    const { request, response } = exchange();
    return middleware(request, response, () => {
      called.push(index);
      return next();
    });
  });
  await Promise.resolve();
  assertEquals(called, []);
  resolve(true);
  const settled = await Promise.allSettled(results);
  assertEquals(called, [0, 1, 2, 3], "once each, in order");
  assertEquals(settled.slice(0, 2), [
    { status: "fulfilled", value: "value" },
    { status: "fulfilled", value: "of a promise" },
  ]);
  await assertRejects(() => Promise.resolve(results[2]), TypeError, "rejected");
  await assertRejects(() => Promise.resolve(results[3]), TypeError, "thrown");
});

Deno.test("retire() that refuses after a wait resolves to undefined", async () => {
  const { record } = recordOf(() => Promise.resolve(false));
  const middleware = middlewareOf(retirementOf(POLICY, {}, record));
  const { request, response } = exchange();
  assertEquals(await middleware(request, response, () => "called"), undefined);
  assertEquals([response.statusCode, response.ended instanceof Uint8Array], [503, true]);
});

Deno.test("retire() leaves alone what something else answered while the call waited", async () => {
  for (const mayAnswer of [true, false]) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { record } = recordOf(() => promise);
    const middleware = middlewareOf(retirementOf(POLICY, {}, record));
    const { request, response } = exchange();
    const result = middleware(request, response, () => "called");
    Object.assign(response, { headersSent: true }); // e.g. by a timeout
    resolve(mayAnswer);
    assertEquals([await result, response.ended], [undefined, undefined]);
  }
});

needing("network")(
  "retire() notes that a call has left once it is counted, or has no client",
  async () => {
    const { record, events } = recordOf(() => true);
    const middleware = middlewareOf(retirementOf(POLICY, {}, record));
    const responses: ServerResponse[] = [];
    await using server = await listening((request, response) =>
      middleware(request, response, () => void responses.push(response))
    );
    const answered = requestRaw(server.port, "GET", "/v1");
    await until("the call", () => responses.length === 1);
    assertEquals(events.splice(0), ["arrive"]);
    responses[0]?.flushHeaders();
    assertEquals(events.splice(0), [200, "leave"]);
    responses[0]?.end();
    await answered.catch(() => {}); // its content is chunked
    {
      using client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
      await client.write(requestHead("GET", "/v1"));
      await until("the call", () => responses.length === 2);
      assertEquals(events.splice(0), ["arrive"]);
    }
    await until("the end", () => events.length > 0);
    responses[1]?.end("old");
    assertEquals(events, [0, "leave"]);
  },
);

needing("network")("retire() answers nobody who has left while the call waited", async () => {
  for (const mayAnswer of [true, false]) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { record, events } = recordOf(() => promise);
    const middleware = middlewareOf(retirementOf(POLICY, {}, record));
    const results: unknown[] = [];
    let last: ServerResponse | undefined;
    await using server = await listening((request, response) => {
      last = response;
      results.push(middleware(request, response, () => "called"));
    });
    {
      using client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
      await client.write(requestHead("GET", "/v1"));
      await until("the call", () => results.length === 1);
    }
    await until("the end", () => events.length > 1);
    resolve(mayAnswer);
    assertEquals([await results[0], last?.headersSent], [undefined, false]);
    assertEquals(events, ["arrive", 0, "leave"]);
  }
});

needing("network")(
  "an upgrade that is served asks no record, and one that is refused does",
  async () => {
    for (
      const [at, expected] of [[DEPRECATED, []], [BROWNOUT, ["arrive", 503, "leave"]]] as const
    ) {
      const { record, events } = recordOf(() => Promise.resolve(true));
      const options = { clock: () => at };
      const middleware = middlewareOf(retirementOf(POLICY, options, record));
      await using server = await listening(() => {});
      server.server.on("upgrade", (request, socket: Socket) => {
        const response = new ServerResponse(request);
        response.shouldKeepAlive = false;
        response.assignSocket(socket);
        response.on("finish", () => socket.end());
        middleware(request, response, () => {
          response.detachSocket(socket);
          socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n");
        });
      });
      const fields = { Connection: "upgrade", Upgrade: "websocket" };
      const { status } = await requestRaw(server.port, "GET", "/v1", fields);
      assertEquals([status, events], [expected.length === 0 ? 101 : 503, expected]);
    }
  },
);

Deno.test("withLifecycle() answers nobody who has left while the call waited", async () => {
  for (const mayAnswer of [true, false]) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { record, events } = recordOf(() => promise);
    const handler = handlerOf(
      () => {
        events.push("called");
        return new Response("old");
      },
      retirementOf(POLICY, {}, record),
    );
    const client = new AbortController();
    const answer = handler(new Request("http://test/v1", { signal: client.signal }));
    client.abort();
    await until("the end", () => events.length > 1);
    resolve(mayAnswer);
    assertEquals((await answer).status, 503);
    assertEquals(events, ["arrive", 0, "leave"]);
  }
});

Deno.test("withLifecycle() notes that a call has left however its handler ends", async () => {
  const ends: [end: () => Response | Promise<Response>, status: number][] = [
    [() => new Response("old"), 200],
    [() => Promise.resolve(new Response(null, { status: 404 })), 404],
    [() => Promise.reject(new TypeError("bug")), 500],
    [
      () => {
        throw new TypeError("bug");
      },
      500,
    ],
    [() => undefined as unknown as Response, 500],
  ];
  for (const [end, status] of ends) {
    for (const answer of [true as const, Promise.resolve(true)]) {
      const { record, events } = recordOf(() => answer);
      const handler = handlerOf(end, retirementOf(POLICY, {}, record));
      await handler(new Request("http://test/v1")).then((response) => response.text(), () => {});
      assertEquals(events, ["arrive", status, "leave"]);
    }
  }
});
