/**
 * An application whose record of calls is at the URL that is its first argument. The second one is
 * the settings of its policy, as JSON. It answers at once, but never under a path that ends with
 * `/slow`. It prints its port.
 */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { openUsage } from "../../lib/usage/mod.ts";

const [database = "", settings = ""] = process.argv.slice(2);
const policy = definePolicy(JSON.parse(settings));
const usage = await openUsage(database, { routes: { "/v1": policy, "/v2": policy } });
const old = { "/v1": usage.retire("/v1"), "/v2": usage.retire("/v2") };

const server = createServer((request, response) => {
  const retired = request.url?.startsWith("/v1") ? old["/v1"] : old["/v2"];
  retired(request, response, () => {
    if (request.url?.endsWith("/slow")) return;
    response.writeHead(200, { "Content-Length": 3 }).end(request.method === "HEAD" ? "" : "old");
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));

process.once("SIGTERM", async () => {
  server.closeAllConnections();
  await usage.close();
  process.exit();
});
