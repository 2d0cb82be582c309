// Answers to two clients at the same URLs, of whom X-Version tells which is refused: by a mount, at
// `/FRAMEWORK/mount/`, or by `applies`, at `/FRAMEWORK/applies/`.

import { getRequestListener } from "@hono/node-server";
import { type RequestHead, retire, withLifecycle } from "@media-head/lifecycle";
import express from "express";
import { fastify } from "fastify";
import { Hono, type MiddlewareHandler } from "hono";
import { createServer, type RequestListener } from "node:http";
import { mountByVersion } from "./by_version.ts";
import { policy } from "./policy.ts";

const PATH = "/v1/:decider/:id";
const FIELDS = { "Cache-Control": "max-age=600", "Vary": "X-Version" };
const isOld = ({ headers }: RequestHead) => headers.get("x-version") === "1";
const mounted = retire(policy);
const applied = retire(policy, { applies: isOld });

const onExpress = express();
const byMount = express.Router();
mountByVersion(byMount as unknown as express.Express, mounted); // README's lines
onExpress.use("/v1/mount", byMount);
onExpress.use("/v1/applies", applied);
onExpress.get(PATH, (request, response) => {
  response.set(FIELDS).send(request.get("X-Version"));
});

const onFastify = fastify({ exposeHeadRoutes: true });
onFastify.addHook("onRequest", (request, reply, done) => {
  if (request.url.startsWith("/v1/applies/")) applied(request.raw, reply.raw, done);
  else if (request.headers["x-version"] === "1") mounted(request.raw, reply.raw, done);
  else done();
});
onFastify.get(PATH, (request, reply) => {
  reply.headers(FIELDS).send(request.headers["x-version"]);
});
await onFastify.ready();

const onHono = new Hono();
const retiring = (options: Parameters<typeof withLifecycle>[2]): MiddlewareHandler => {
  const retired = (context: Parameters<MiddlewareHandler>[0], next: () => Promise<void>) =>
    withLifecycle(() => next().then(() => context.res), policy, options)(context.req.raw);
  return async (context, next) => {
    const response = await retired(context, next);
    if (context.finalized) context.res = undefined;
    context.res = response;
  };
};
const [mountedOnHono, appliedOnHono] = [retiring({}), retiring({ applies: isOld })];
onHono.use(
  "/v1/mount/*",
  (context, next) =>
    context.req.header("x-version") === "1" ? mountedOnHono(context, next) : next(),
);
onHono.use("/v1/applies/*", appliedOnHono);
onHono.get(PATH, (context) => context.body(context.req.header("x-version") ?? "", 200, FIELDS));

const frameworks: Record<string, RequestListener> = {
  express: onExpress,
  fastify: (request, response) => onFastify.routing(request, response),
  hono: getRequestListener(onHono.fetch),
};
createServer((request, response) => {
  const [, name = "", rest = ""] = /^\/(\w+)(.*)$/.exec(request.url ?? "") ?? [];
  request.url = `/v1${rest}`;
  frameworks[name]?.(request, response);
}).listen(Number(process.env["PORT"]), "127.0.0.1");
