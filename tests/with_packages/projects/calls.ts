// An application that calls its own old path three times, by a server and by a Fetch handler. It has
// no types, so that bundlers and plain Node read it, too.

import { createServer } from "node:http";
import { env } from "node:process";
import { definePolicy } from "@media-head/lifecycle";
import { openUsage } from "@media-head/lifecycle/usage";

async function main() {
  const policy = definePolicy({ deprecatedAt: "2026-11-21" });
  const usage = await openUsage(env["DATABASE"] ?? "", { routes: { "/v1": policy } });
  const retired = usage.retire("/v1");
  const server = createServer((request, response) => {
    response.setHeader("Connection", "close");
    retired(request, response, () => response.end("old"));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  const fields = [];
  for (const method of ["HEAD", "GET"]) {
    const response = await fetch(`http://127.0.0.1:${port}/v1`, { method });
    fields.push(response.headers.get("Deprecation"));
  }
  await new Promise((resolve) => server.close(resolve));
  const handler = usage.withLifecycle(() => new Response("old"), "/v1");
  fields.push((await handler(new Request("http://a.example/v1"))).headers.get("Deprecation"));
  await usage.close();
  return fields.join(" ");
}

export const calling = main();
calling.then(console.log);
