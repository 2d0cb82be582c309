// An application that keeps logins in PostgreSQL, and the record of calls in the same database. The
// database is the argument; the one that comes first in it is in the environment.

import { definePolicy } from "@media-head/lifecycle";
import { openUsage } from "@media-head/lifecycle/usage";
import connect from "connect-pg-simple";
import express from "express";
import session from "express-session";
import process from "node:process";

const [, , conString, record] = process.argv;
const PgSession = connect(session);
const store = new PgSession({ conString, createTableIfMissing: true });
const app = express();
app.use(session({ store, secret: "a", resave: false, saveUninitialized: false }));
app.get("/login", (request, response) => {
  request.session.user = "alice";
  response.end();
});
const server = app.listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
const origin = `http://127.0.0.1:${server.address().port}`;

let usage;
async function open() {
  const policy = definePolicy({ deprecatedAt: "2026-11-21" });
  usage = await openUsage(record, { routes: { "/v1": policy } });
  app.use("/v1", usage.retire("/v1"));
  app.get("/v1/me", (request, response) => response.end(request.session.user));
}

if (process.env.FIRST === "record") await open();
const login = await fetch(`${origin}/login`);
if (process.env.FIRST === "sessions") await open();
const cookie = login.headers.get("Set-Cookie")?.split(";")[0] ?? "";
const response = await fetch(`${origin}/v1/me`, { headers: { cookie } });
console.log(response.status, await response.text(), response.headers.get("Deprecation"));
server.closeAllConnections();
await new Promise((resolve) => server.close(resolve));
await usage.close();
await store.close();
