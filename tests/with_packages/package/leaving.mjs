// Runs from the tarball: a call whose client leaves is counted once, has left the record, and is
// answered by nobody if it waited for the record, however the client leaves.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import * as http2 from "node:http2";
import { connect } from "node:net";
import { definePolicy } from "@media-head/lifecycle";

const folder = new URL("./node_modules/@media-head/lifecycle/lifecycle/serving/", import.meta.url);
const { middlewareOf } = (await import(new URL("retire.js", folder).href)).default;
const { retirementOf } = (await import(new URL("retirement.js", folder).href)).default;

const policy = definePolicy({ deprecatedAt: "2026-11-21" });
const listen = async (server) => {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address().port;
};
/** Waits until a condition is true, for ten seconds at most. */
async function until(isMet) {
  for (let tries = 0; !isMet(); tries++) {
    assert.ok(tries < 500);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A middleware with a record that holds each call back, or none, and what happens, in order. */
function scene(waits) {
  const events = [];
  const { promise, resolve } = Promise.withResolvers?.() ?? withResolvers();
  const record = {
    arrive: () => waits ? promise : true,
    count: ({ status }) => events.push(status),
    leave: () => events.push("leave"),
  };
  const middleware = middlewareOf(retirementOf(policy, {}, record));
  const results = [];
  const handle = (request, response) => {
    if (request.url === "/slow") return; // keeps what comes after it on its connection waiting
    results.push(Promise.resolve(middleware(request, response, () => events.push("next"))));
  };
  return { events, handle, results, grant: () => resolve(true) };
}
function withResolvers() {
  const it = {};
  it.promise = new Promise((resolve) => it.resolve = resolve);
  return it;
}

/** Each sends calls to a server, and returns what makes the client leave. */
const CLIENTS = {
  alone: async (handle) => {
    const server = createServer(handle);
    const socket = connect(await listen(server), "127.0.0.1");
    socket.write("GET /v1 HTTP/1.1\r\nHost: a\r\n\r\n");
    return { leave: () => socket.destroy(), close: () => server.close() };
  },
  "behind another call": async (handle) => {
    const server = createServer(handle);
    const socket = connect(await listen(server), "127.0.0.1");
    socket.write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /v1 HTTP/1.1\r\nHost: a\r\n\r\n");
    return { leave: () => socket.destroy(), close: () => server.close() };
  },
  "over HTTP/2": async (handle) => {
    const server = http2.createServer(handle);
    const session = http2.connect(`http://127.0.0.1:${await listen(server)}`);
    const stream = session.request({ ":path": "/v1" });
    stream.on("error", () => {});
    const close = () => {
      session.destroy();
      server.close();
    };
    return { leave: () => stream.close(http2.constants.NGHTTP2_CANCEL), close };
  },
};

for (const [name, call] of Object.entries(CLIENTS)) {
  if (globalThis.Deno && name === "behind another call") continue; // reads one request at a time
  for (const waits of [true, false]) {
    const { events, handle, results, grant } = scene(waits);
    const { leave, close } = await call(handle);
    await until(() => results.length === 1);
    const before = waits ? [] : ["next"];
    assert.deepEqual(events, before, name);
    leave();
    await until(() => events.length === before.length + 2);
    grant();
    await results[0];
    assert.deepEqual(events, [...before, 0, "leave"], name);
    close();
  }
}

// One that left before the middleware was called is counted at once, and has left.
{
  const { events, handle, results } = scene(false);
  let hasLeft = false;
  const server = createServer((request, response) =>
    request.once("close", () => {
      hasLeft = true;
      setTimeout(() => handle(request, response), 20);
    })
  );
  const socket = connect(await listen(server), "127.0.0.1");
  socket.write("POST /v1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
  setTimeout(() => socket.destroy(), 100);
  await until(() => hasLeft && results.length === 1);
  assert.deepEqual(events, [0, "leave", "next"]);
  server.close();
}
console.log("passed");
