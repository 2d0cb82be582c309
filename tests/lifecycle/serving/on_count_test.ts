/** Which calls the removal breaks, as `onCount` is told by either kind of server. */

import { assertEquals, assertRejects } from "@std/assert";
import { stub } from "@std/testing/mock";
import { type LifecycleCall, retire, withLifecycle } from "../../../lib/lifecycle/mod.ts";
import {
  type ApplicationCall,
  callFetch,
  callNode,
  CALLS,
  FETCH_CALLS,
  POLICY,
} from "../../support/application_calls.ts";
import { needing } from "../../support/permissions.ts";
import { UNREADABLE } from "../../support/unreadable.ts";
import { until } from "../../support/within.ts";

const test = needing("network");

/** Makes a call of one kind of server, of which `onCount` is told. */
type Make = (call: ApplicationCall, onCount: (call: LifecycleCall) => void) => Promise<void>;

const byFetch: Make = (call, onCount) =>
  callFetch(call, (handler, given) => withLifecycle(handler, POLICY, { ...given, onCount }));
const byNode: Make = (call, onCount) =>
  callNode(call, (given) => retire(POLICY, { ...given, onCount }));

const KINDS: [name: string, make: Make, calls: readonly ApplicationCall[]][] = [
  ["withLifecycle()", byFetch, [...CALLS, ...FETCH_CALLS]],
  ["retire()", byNode, CALLS],
];

for (const [name, make, calls] of KINDS) {
  const own = make === byNode ? test : Deno.test;

  own(`${name} says which calls the removal breaks, whoever is refused`, async () => {
    using _error = stub(console, "error"); // an option fails
    const told: unknown[] = [];
    for (const call of calls) {
      await make(call, ({ status, breaks }) => told.push([call.what, status, breaks]));
    }
    assertEquals(told, calls.map(({ what, status, breaks }) => [what, status, breaks]));
  });
}

Deno.test("the removal breaks no call of lifecycle check, of any release", async () => {
  const told: unknown[] = [];
  const onCount = ({ client, breaks }: LifecycleCall) => told.push([client, breaks]);
  const handler = withLifecycle(() => new Response("old"), POLICY, { onCount });
  for (const agent of ["media-head-check", "media-head-check/2", "media-head-checks"]) {
    const request = new Request("http://test/v1", { headers: { "User-Agent": agent } });
    await (await handler(request)).body?.cancel();
  }
  assertEquals(told, [
    ["media-head-check", false],
    ["media-head-check", false],
    ["media-head-checks", true],
  ]);
});

Deno.test("withLifecycle() counts a handler that throws what cannot be read, and throws that", async () => {
  for (const [what, value] of Object.entries(UNREADABLE)) {
    const told: number[] = [];
    const onCount = ({ status }: LifecycleCall) => told.push(status);
    const retired = withLifecycle(() => Promise.reject(value), POLICY, {
      onCount,
      applies: () => false,
    });
    const [thrown] = await retired(new Request("http://test/v1")).then(
      () => [],
      (error) => [error],
    );
    assertEquals([told, Object.is(thrown, value)], [[500], true], what);
  }
});

/** The listeners of a signal, and how many there ever were. */
function watchListeners(signal: AbortSignal) {
  const listeners = { present: 0, added: 0 };
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners.present++;
    listeners.added++;
    add(args[0], () => listeners.present--, { once: true }); // as a listener that is called once
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    if (!signal.aborted) listeners.present--;
    remove(...args);
  };
  return listeners;
}

/** What a slow handler does in the end, and whether its client leaves before, and what is counted. */
const SLOW: [what: string, end: "answers" | "fails" | "never", leaves: boolean, status: number][] =
  [
    ["the handler answers", "answers", false, 200],
    ["the handler fails", "fails", false, 500],
    ["the client leaves", "never", true, 0],
    ["the client leaves, and then the handler answers", "answers", true, 0],
    ["the client leaves, and then the handler fails", "fails", true, 0],
  ];

for (const [what, end, leaves, status] of SLOW) {
  Deno.test(`withLifecycle() counts a slow call once, and leaves nothing listening: ${what}`, async () => {
    const told: unknown[] = [];
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const onCount = (call: LifecycleCall) => told.push([call.status, call.breaks]);
    const retired = withLifecycle(() => promise, POLICY, { onCount });
    const client = new AbortController();
    const request = new Request("http://test/v1", { signal: client.signal });
    const listeners = watchListeners(request.signal);
    const answer = retired(request);
    await until("it to listen", () => listeners.added === 1);
    assertEquals([listeners.present, told], [1, []]);
    if (leaves) {
      client.abort();
      assertEquals(told, [[0, true]], "at once");
    }
    if (end === "answers") {
      resolve(new Response());
      await answer;
    } else if (end === "fails") {
      reject(new TypeError("bug"));
      await assertRejects(() => answer, TypeError, "bug");
    }
    assertEquals([listeners.present, told], [0, [[status, true]]]);
  });
}

Deno.test("withLifecycle() counts a client that has left before it is listened for", async () => {
  const told: unknown[] = [];
  const onCount = (call: LifecycleCall) => told.push([call.status, call.breaks]);
  const retired = withLifecycle(() => new Promise<Response>(() => {}), POLICY, { onCount });
  retired(new Request("http://test/v1", { signal: AbortSignal.abort() }));
  await until("it to be counted", () => told.length > 0);
  assertEquals(told, [[0, true]]);
});

test("withLifecycle() counts a client that leaves a server whose handler never answers", async () => {
  const told: unknown[] = [];
  const onCount = ({ status, breaks, client }: LifecycleCall, { headers }: Request) =>
    told.push([status, breaks, client, headers.get("x-a")]);
  const options = { onCount };
  const never = Promise.withResolvers<Response>();
  let isCalled = false;
  const retired = withLifecycle(
    () => {
      isCalled = true;
      return never.promise;
    },
    POLICY,
    options,
  );
  const stopping = new AbortController();
  const { signal } = stopping;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, signal, onListen() {} }, retired);
  const { port } = server.addr;
  const client = await Deno.connect({ hostname: "127.0.0.1", port });
  const head = "GET /v1 HTTP/1.1\r\nHost: a\r\nUser-Agent: curl/8\r\nX-A: 1\r\n\r\n";
  await client.write(new TextEncoder().encode(head));
  await until("the call", () => isCalled);
  client.close();
  await until("it to be counted", () => told.length > 0);
  never.resolve(new Response("late"));
  stopping.abort();
  await server.finished;
  assertEquals(told, [[0, true, "curl", "1"]]);
});

test("withLifecycle() knows at a fast failure that the client has left", async () => {
  const told: unknown[] = [];
  const onCount = ({ status }: LifecycleCall) => told.push(status);
  let leave = () => {};
  const fail = async (): Promise<Response> => {
    leave();
    await new Promise((resolve) => setTimeout(resolve, 50)); // the server has to notice it
    throw new TypeError("bug");
  };
  const retired = withLifecycle(fail, POLICY, { onCount });
  const options = {
    hostname: "127.0.0.1",
    port: 0,
    onListen() {},
    onError: () => new Response(),
  };
  const server = Deno.serve(options, retired);
  await until("a call without a client", async () => {
    using client = await Deno.connect({ hostname: "127.0.0.1", port: server.addr.port });
    const { promise, resolve } = Promise.withResolvers<void>();
    leave = resolve;
    await client.write(new TextEncoder().encode("GET /v1 HTTP/1.1\r\nHost: a\r\n\r\n"));
    await promise;
    return told.includes(0);
  });
  await server.shutdown();
});

test("withLifecycle() passes the fields of an upgraded call to onCount", async () => {
  const told: unknown[] = [];
  const onCount = ({ status }: LifecycleCall, { headers }: Request) =>
    told.push([status, headers.get("sec-websocket-version")]);
  const upgrade = (request: Request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    socket.onopen = () => socket.close();
    return response;
  };
  const retired = withLifecycle(upgrade, POLICY, { onCount });
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, retired);
  const client = new WebSocket(`ws://127.0.0.1:${server.addr.port}/v1`);
  await new Promise((resolve) => client.onclose = resolve);
  await server.shutdown();
  assertEquals(told, [[101, "13"]]);
});
