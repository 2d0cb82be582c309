/**
 * An application whose record of calls is at the URL that is its first argument. The second one is
 * the settings of its policy, as JSON. Its paths under `/v1` and `/v2` are retired. It answers at once,
 * but never under a path that ends with `/slow`; under `/fault`, what `usage.fault` says. It prints its
 * port.
 */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { openUsage } from "../../lib/usage/mod.ts";

const [database = "", settings = ""] = process.argv.slice(2);
const policy = definePolicy(JSON.parse(settings));
const usage = await openUsage(database, { routes: { "/v1": policy, "/v2": policy } });
const routes = { "/v1": usage.retire("/v1"), "/v2": usage.retire("/v2") };

const server = createServer((request, response) => {
  const { method, url = "" } = request;
  const handle = () => {
    if (url.endsWith("/slow")) return;
    const text = url === "/fault" ? usage.fault ?? "none" : "old";
    const length = new TextEncoder().encode(text).length;
    response.writeHead(200, { "Content-Length": length }).end(method === "HEAD" ? "" : text);
  };
  const [, retired] = Object.entries(routes).find(([path]) => url.startsWith(`${path}/`)) ?? [];
  return retired === undefined ? handle() : retired(request, response, handle);
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));

process.once("SIGTERM", async () => {
  server.closeAllConnections();
  await usage.close();
  process.exit();
});
