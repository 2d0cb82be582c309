// Starts every program that runs on Node, and prints their ports and how many ways each has.

import { createAdaptorServer } from "@hono/node-server";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import * as express from "./express.mts";
import * as express4 from "./express4.mts";
import * as fastify from "./fastify.mts";
import * as fetch from "./fetch.mts";
import * as honoAnywhere from "./hono_anywhere.mts";
import * as koa from "./koa.mts";
import * as nest from "./nest.mts";
import * as node from "./node.mts";
import { control } from "./shared.mts";

const programs = {
  "node:http": node,
  "Express 4": express4,
  "Express 5": express,
  "Koa": koa,
  "Fastify": fastify,
  "NestJS": nest,
  "Hono": {
    ways: honoAnywhere.ways,
    listen: () => createAdaptorServer(honoAnywhere.default).listen(0, "127.0.0.1"),
  },
  "Fetch": {
    ways: fetch.ways,
    listen: () => createAdaptorServer(fetch.default).listen(0, "127.0.0.1"),
  },
  "control": {
    ways: [],
    listen: () =>
      createServer(({ url = "" }, response) => response.end(control(url))).listen(0, "127.0.0.1"),
  },
};
const started: Record<string, { port: number; ways: number }> = {};
for (const [name, { listen, ways }] of Object.entries(programs)) {
  const server = await listen() as Server;
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
  started[name] = { port: (server.address() as AddressInfo).port, ways: ways.length };
}
process.on("uncaughtException", (error) => console.error(error));
console.log(JSON.stringify(started));
