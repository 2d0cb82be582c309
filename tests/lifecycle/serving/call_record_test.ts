/** What a record is told of calls, in order, by either kind of server. Neither waits for it. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { RequestHead } from "../../../lib/lifecycle/mod.ts";
import { middlewareOf } from "../../../lib/lifecycle/serving/retire.ts";
import { type CallRecord, retirementOf } from "../../../lib/lifecycle/serving/retirement.ts";
import { handlerOf } from "../../../lib/lifecycle/serving/with_lifecycle.ts";
import { BROWNOUT, DEPRECATED, POLICY } from "../../support/application_calls.ts";
import { exchange, listening } from "../../support/node_server.ts";
import { needing } from "../../support/permissions.ts";
import { requestHead, requestRaw } from "../../support/raw_http.ts";
import { until } from "../../support/within.ts";

const test = needing("network");

/** Applies the policy at an instant, with a record, and what happens to its calls, in order. */
function watched(now = DEPRECATED) {
  const events: unknown[] = [];
  const record: CallRecord<RequestHead, readonly unknown[]> = {
    arrive: () => void events.push("arrive"),
    count: ({ status }) => void events.push(status),
    leave: () => void events.push("leave"),
  };
  return { apply: retirementOf(POLICY, { clock: () => now }, record), events };
}

Deno.test("retire() returns what next() returns, and throws what it throws, at once", () => {
  const { apply, events } = watched();
  const middleware = middlewareOf(apply);
  const result = { of: "next" };
  assert(middleware(...exchange(), () => result) === result);
  assertThrows(
    () =>
      middleware(...exchange(), () => {
        throw new TypeError("bug");
      }),
    TypeError,
    "bug",
  );
  assertEquals(events, ["arrive", "arrive"]);
});

Deno.test("retire() returns nothing for a refusal, and calls no next()", () => {
  const middleware = middlewareOf(watched(BROWNOUT).apply);
  const [request, response] = exchange();
  assertEquals(middleware(request, response, () => "called"), undefined);
  assertEquals(response.statusCode, 503);
});

test("retire() sends a head when the application does, and a call leaves once that is counted", async () => {
  const { apply, events } = watched();
  const middleware = middlewareOf(apply);
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
});

test("an upgrade that is served is not waited for, and a refused one is", async () => {
  for (
    const [now, status, expected] of [
      [DEPRECATED, 101, []],
      [BROWNOUT, 503, ["arrive", 503, "leave"]],
    ] as const
  ) {
    const { apply, events } = watched(now);
    const middleware = middlewareOf(apply);
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
    assertEquals((await requestRaw(server.port, "GET", "/v1", fields)).status, status);
    assertEquals(events, [...expected]);
  }
});

Deno.test("withLifecycle() notes that a call has left however its handler ends", async () => {
  const bug = () => {
    throw new TypeError("bug");
  };
  const ends: [end: () => Response | Promise<Response>, status: number][] = [
    [() => new Response("old"), 200],
    [() => Promise.resolve(new Response(null, { status: 404 })), 404],
    [() => Promise.reject(new TypeError("bug")), 500],
    [bug, 500],
    [() => undefined as unknown as Response, 500],
  ];
  for (const [end, status] of ends) {
    const { apply, events } = watched();
    const call = handlerOf(end, apply)(new Request("http://test/v1"));
    await call.then((response) => response.text(), () => {});
    assertEquals(events, ["arrive", status, "leave"]);
  }
  const { apply, events } = watched(BROWNOUT);
  assertEquals((await handlerOf(bug, apply)(new Request("http://test/v1"))).status, 503);
  assertEquals(events, ["arrive", 503, "leave"]);
});
