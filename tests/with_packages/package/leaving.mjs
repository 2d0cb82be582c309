// Runs from the tarball: a call whose client leaves is counted once, and has left the record, however
// the client leaves.

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

/** A middleware with a record, and what happens, in order. */
function scene() {
  const events = [];
  const record = {
    arrive: () => events.push("arrive"),
    count: ({ status }) => events.push(status),
    leave: () => events.push("leave"),
  };
  const middleware = middlewareOf(retirementOf(policy, {}, record));
  const handle = (request, response) => {
    if (request.url === "/slow") return; // keeps what comes after it on its connection waiting
    middleware(request, response, () => events.push("next"));
  };
  return { events, handle };
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
  const { events, handle } = scene();
  const { leave, close } = await call(handle);
  await until(() => events.length === 2);
  leave();
  await until(() => events.length === 4);
  assert.deepEqual(events, ["arrive", "next", 0, "leave"], name);
  close();
}

// One that left before the middleware was called is counted at once, and has left.
{
  const { events, handle } = scene();
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
  await until(() => hasLeft && events.length === 4);
  assert.deepEqual(events, ["arrive", 0, "leave", "next"]);
  server.close();
}
console.log("passed");
