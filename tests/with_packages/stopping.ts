/**
 * How an application that keeps a record stops, with the lines of README in each framework: what is in
 * flight is answered and recorded, and no connection of a client keeps the record from its end.
 */

import { assertEquals, assertMatch } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { installTarball, NPM } from "../support/npm.ts";
import { fromRoot } from "../support/paths.ts";
import { needing, shared } from "../support/permissions.ts";
import { accepts, freePort } from "../support/ports.ts";
import { requestHead } from "../support/raw_http.ts";
import { until, within } from "../support/within.ts";

const installed = shared(NPM, () => installTarball());

const PAGE = Deno.readTextFileSync(fromRoot("lib/lifecycle/frameworks.md"));

/** The lines that stop a server of Express, in the first program of the page for applications. */
const [STOP = ""] = /^const stop = [^]*?(?=```)/m.exec(
  Deno.readTextFileSync(fromRoot("lib/usage/applications.md")),
) ?? [];

/** The same, with what the table of frameworks has for another one. */
function stopOf(framework: string): string {
  const row = PAGE.split("\n").find((line) => line.startsWith("|") && line.includes(framework));
  const call = row?.match(/`\w+\.\w+\([^`]*\)`/g)?.at(-1)?.slice(1, -1);
  if (call === undefined) throw new Error(`The table has no line for ${framework}`);
  return STOP.replace("server.close()", () => call);
}

/** A request to `/v1/slow` is answered once the process was told to stop. */
const BEFORE = `
import process from "node:process";
import { definePolicy } from "@media-head/lifecycle";
import { openUsage } from "@media-head/lifecycle/usage";
const policy = definePolicy({ deprecatedAt: "2026-11-21" });
const usage = await openUsage("sqlite:./" + process.env.NAME + ".sqlite", { routes: { "/v1": policy } });
const PORT = Number(process.env.PORT);
const isOld = (url) => url.includes("/v1");
const answer = async (url) => {
  if (!url.includes("slow")) return "old";
  console.log("called");
  await new Promise((resolve) => process.once("SIGTERM", resolve));
  return "old";
};
`;

const NODES = ["node22", "node24"].map((name) => `node_modules/${name}/bin/node`);
const NEWEST = NODES.slice(-1);

/** Each framework: what runs it, the lines of its program before README's, and README's. */
const PROGRAMS: readonly (readonly [
  name: string,
  runtimes: readonly string[],
  source: string,
  stop: string,
])[] = [
  [
    "Express",
    NODES,
    `import express from "express";
const app = express();
app.use("/v1", usage.retire("/v1"));
app.get("/:version/:item", async ({ url }, response) => response.send(await answer(url)));
const server = app.listen(PORT, "127.0.0.1");
`,
    STOP,
  ],
  [
    "node:http",
    NEWEST,
    `import { createServer } from "node:http";
const retired = usage.retire("/v1");
const server = createServer((request, response) =>
  retired(request, response, async () => response.end(await answer(request.url)))
);
server.listen(PORT, "127.0.0.1");
`,
    stopOf("node:http"),
  ],
  [
    "Koa",
    NEWEST,
    `import Koa from "koa";
const app = new Koa();
const retired = usage.retire("/v1");
app.use((context, next) => retired(context.req, context.res, next));
app.use(async (context) => context.body = await answer(context.url));
const server = app.listen(PORT, "127.0.0.1");
`,
    stopOf("Koa"),
  ],
  [
    "Hono",
    NEWEST,
    `import { Hono } from "hono";
import { serve } from "@hono/node-server";
const inner = (_, context, next) => next().then(() => context.res);
const retired = usage.withLifecycle(inner, "/v1");
const app = new Hono();
app.use("/v1/*", async (context, next) => {
  const response = await retired(context.req.raw, context, next);
  if (context.finalized) context.res = undefined;
  context.res = response;
});
app.get("/v1/:item", async (context) => context.text(await answer(context.req.url)));
const server = serve({ fetch: app.fetch, port: PORT, hostname: "127.0.0.1" });
`,
    stopOf("@hono/node-server"),
  ],
  [
    "Fastify",
    NEWEST,
    `import { fastify } from "fastify";
const app = fastify();
const retired = usage.retire("/v1");
app.addHook("onRequest", (request, reply, done) => retired(request.raw, reply.raw, done));
app.get("/v1/:item", ({ url }) => answer(url));
await app.listen({ port: PORT, host: "127.0.0.1" });
`,
    stopOf("Fastify"),
  ],
  [
    "NestJS",
    NEWEST,
    `import "reflect-metadata";
import { Controller, Get, Module, Req } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
class Songs { get({ url }) { return answer(url); } }
Get(":item")(Songs.prototype, "get", Object.getOwnPropertyDescriptor(Songs.prototype, "get"));
Req()(Songs.prototype, "get", 0);
Controller("v1")(Songs);
class App {}
Module({ controllers: [Songs] })(App);
const app = await NestFactory.create(App, { logger: false });
app.use("/v1", usage.retire("/v1"));
await app.listen(PORT, "127.0.0.1");
`,
    stopOf("NestJS"),
  ],
  [
    "Deno.serve",
    [`${Deno.execPath()} run --quiet --allow-all`],
    `const handle = async ({ url }) => new Response(await answer(url));
const server = Deno.serve({ port: PORT, hostname: "127.0.0.1" }, usage.withLifecycle(handle, "/v1"));
`,
    stopOf("Deno "),
  ],
  [
    "Bun.serve",
    ["node_modules/bun/bin/bun"],
    `const handle = async ({ url }) => new Response(await answer(url));
const fetch = usage.withLifecycle(handle, "/v1");
const server = Bun.serve({ port: PORT, hostname: "127.0.0.1", idleTimeout: 60, fetch });
`,
    stopOf("Bun "),
  ],
];

/** Sends a request, and leaves the connection open. */
async function send(port: number, path: string): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(requestHead("GET", path, { "User-Agent": "curl/8" }));
  return connection;
}

/** Reads a response with content, and leaves the connection open. */
async function readOnce(connection: Deno.TcpConn): Promise<string> {
  const buffer = new Uint8Array(10_000);
  let text = "";
  while (!/\r\n\r\n[^]*old/.test(text)) {
    const count = await connection.read(buffer);
    if (count === null) break;
    text += new TextDecoder().decode(buffer.subarray(0, count));
  }
  return text;
}

/** Milliseconds that may pass until a process ends, on a busy machine. */
const LIMIT_MS = 10_000;

/** The ends of a record's sessions in order, and how many calls were counted. */
function recordIn(path: string): { ends: unknown[]; calls: unknown } {
  using database = new DatabaseSync(path, { timeout: 5_000 });
  const sessions = database.prepare("SELECT ended FROM media_head_session ORDER BY began").all();
  const counted = database.prepare("SELECT sum(calls) AS calls FROM media_head_usage").get();
  return { ends: sessions.map(({ ended }) => ended), calls: counted?.["calls"] };
}

/**
 * Starts a program, tells it to stop while a request is in flight, and checks what is answered and
 * recorded. Other connections are idle, or have brought no request; the program may end only once they
 * are closed.
 */
async function checkStop(name: string, words: readonly string[]): Promise<void> {
  const { folder: cwd } = installed();
  const port = freePort();
  const [program = "", ...args] = words;
  const env = { NAME: name, PORT: String(port) };
  const child = new Deno.Command(program, { args, cwd, env, stdout: "piped", stderr: "piped" })
    .spawn();
  let output = "";
  const errors = new Response(child.stderr).text();
  const reading = (async () => {
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) output += part;
  })();
  let hasEnded = false;
  const ended = child.status.finally(() => hasEnded = true);
  await until("the program to listen", async () => hasEnded || await accepts(port));
  if (hasEnded) throw new Error(await errors);
  const unused = await Deno.connect({ hostname: "127.0.0.1", port });
  const idle = await send(port, "/v1/songs");
  await within("the first response", idle.read(new Uint8Array(10_000)), { process: child });
  const busy = await send(port, "/v1/slow");
  await until("the call", () => output.includes("called"));
  child.kill("SIGTERM");
  const response = await within("the response", readOnce(busy), { process: child });
  assertMatch(response, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n[^]*old/);
  const recorded = () => recordIn(`${cwd}/${name}.sqlite`);
  const expected = { ends: ["stopped"], calls: 2 };
  await until("the end in the record", () => recorded().ends.includes("stopped"));
  assertEquals(recorded(), expected);
  for (const connection of [unused, idle, busy]) connection.close();
  const { code } = await within("the end", ended, { timeout: LIMIT_MS, process: child });
  await reading;
  assertEquals([code, (await errors).includes("Error")], [0, false], await errors);
  assertEquals(recorded(), expected);
}

for (const [name, runtimes, source, stop] of PROGRAMS) {
  for (const runtime of runtimes) {
    const [program = "", ...args] = runtime.split(" ");
    const by = runtimes.length > 1 ? ` on ${program.split("/")[1]}` : "";
    needing(...NPM)(`an application with ${name}${by} records that it stops`, async () => {
      const { folder } = installed();
      const file = `${name}${by}`.replaceAll(/\W/g, "-");
      await Deno.writeTextFile(`${folder}/${file}.mjs`, BEFORE + source + stop);
      const path = program.startsWith("/") ? program : `${folder}/${program}`;
      await checkStop(file, [path, ...args, `${file}.mjs`]);
    });
  }
}
