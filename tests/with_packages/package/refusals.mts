// Runs from the tarball: refusals with the content that README makes, in every framework, and
// README's mount by a version, which varies.

import { serve } from "@hono/node-server";
import { withLifecycle } from "@media-head/lifecycle";
import { openUsage } from "@media-head/lifecycle/usage";
import express from "express";
import { fastify } from "fastify";
import { type Context, Hono, type Next } from "hono";
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mountByVersion } from "./by_version.ts";
import { isOld, policy, successor } from "./policy.ts";
import { refusalBody, retired } from "./refusal_body.ts";

let now = 0;
const clock = () => now;
const usage = await openUsage("sqlite:./refusals.sqlite", {
  routes: { "/v1": policy, "/v1/fetch": policy },
  log() {},
});
Date.now = clock;

const expressApp = express();
expressApp.use("/v1", retired);
const fastifyApp = fastify();
fastifyApp.addHook("onRequest", (request, reply, done) => {
  if (isOld(request)) retired(request.raw, reply.raw, done);
  else done();
});
const options = { successor, refusalBody, clock };
const inner = (_: Request, context: Context, next: Next) => next().then(() => context.res);
const honoApp = (retire: (inner: Handler) => Handler) => {
  const retired = retire(inner);
  const app = new Hono().use("/v1/*", async (context, next) => {
    const response = await retired(context.req.raw, context, next);
    if (context.finalized) context.res = undefined;
    context.res = response;
  });
  return (port: 0) => serve({ fetch: app.fetch, port, hostname: "127.0.0.1" }) as Server;
};
type Handler = (request: Request, context: Context, next: Next) => Promise<Response>;
const recorded = usage.retire("/v1", options);
const byVersion = express();
mountByVersion(byVersion, retired);
byVersion.get("/v1/songs", ({ headers }, response) => {
  response.send(headers["x-version"]);
});

const listening = async (server: Server) => {
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
  return server;
};
const servers: Record<string, Server> = {
  Express: await listening(expressApp.listen(0, "127.0.0.1")),
  Fastify: (await fastifyApp.listen({ port: 0, host: "127.0.0.1" }), fastifyApp.server),
  Hono: await listening(honoApp((inner) => withLifecycle(inner, policy, options))(0)),
  "usage.retire()": await listening(
    createServer((request, response) => recorded(request, response, () => response.end("old")))
      .listen(0, "127.0.0.1"),
  ),
  "usage.withLifecycle()": await listening(
    honoApp((inner) => usage.withLifecycle(inner, "/v1/fetch", options))(0),
  ),
};
const versions = await listening(byVersion.listen(0, "127.0.0.1"));
const originOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

for (
  const [at, status, code, message] of [
    ["2027-05-03T09:30Z", 503, "unavailable", /^This path is disabled by a brownout/],
    ["2027-07-01", 410, "removed", /^This path was removed at/],
  ] as const
) {
  now = Date.parse(at);
  for (const [name, server] of Object.entries(servers)) {
    const [get, head] = await Promise.all(
      ["GET", "HEAD"].map((method) => fetch(`${originOf(server)}/v1/songs`, { method })),
    ) as [Response, Response];
    const content = await get.text();
    const { ok, error } = JSON.parse(content);
    assert.deepEqual([get.status, ok, error.code], [status, false, code], name);
    assert.match(error.message, message);
    assert.equal(error.successor, "/v2/songs");
    const said = ({ status, headers }: Response) => [
      status,
      [...headers].filter(([name]) => !/^(?:date|connection|keep-alive)$/.test(name)),
    ];
    assert.deepEqual(said(head), said(get), name);
    const fields = ["content-type", "content-length"].map((name) => get.headers.get(name));
    assert.deepEqual(fields, ["application/json", String(content.length)], name);
    assert.equal(await head.text(), "");
  }
  for (const [version, expected] of [["1", status], ["2", 200]]) {
    const headers = { "X-Version": String(version) };
    const response = await fetch(`${originOf(versions)}/v1/songs`, { headers });
    assert.deepEqual([response.status, response.headers.get("vary")], [expected, "X-Version"]);
    await response.text();
  }
}
for (const server of [...Object.values(servers), versions]) {
  server.closeAllConnections();
  server.close();
}
await usage.close();
console.log("passed");
