/** Two users behind a shared cache, in front of an application with and without the library. */

import { assertEquals } from "@std/assert";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { definePolicy, retire, withLifecycle } from "../../lib/lifecycle/mod.ts";
import { type CacheName, CACHES, needsOf, startCache } from "../support/caches.ts";
import { Origin } from "../support/origin.ts";
import { needing } from "../support/permissions.ts";

const policy = definePolicy({
  deprecatedAt: "2020-01-01",
  sunsetAt: new Date(Date.now() + 200 * 86_400_000),
});
const LAST_MODIFIED = "Wed, 01 Jan 2020 00:00:00 GMT";

type Row = [name: string, status: number, fields: Record<string, string>];

/** What an application answers, by path. */
const ROWS: Row[] = [
  ["max-age", 200, { "Cache-Control": "max-age=600" }],
  ["stale", 200, { "Cache-Control": "max-age=600, stale-while-revalidate=60" }],
  ["last-modified", 200, { "Last-Modified": LAST_MODIFIED }],
  ["expires", 200, { Expires: new Date(Date.now() + 600_000).toUTCString() }],
  ["nothing", 200, {}],
  ["private", 200, { "Cache-Control": "private, max-age=600" }],
  ["targeted", 200, { "Cache-Control": "private", "CDN-Cache-Control": "max-age=600" }],
  ["malformed", 200, { "Cache-Control": "s-maxage=soon, public;max-age=600" }],
  ["redirect", 302, { Location: "/elsewhere", "Last-Modified": LAST_MODIFIED }],
  ["forbidden", 403, { "Last-Modified": LAST_MODIFIED }],
  ["failed", 500, { "Last-Modified": LAST_MODIFIED }],
  // The application lets caches share these.
  ["public", 200, { "Cache-Control": "public, max-age=600" }],
  ["s-maxage", 200, { "Cache-Control": "s-maxage=600" }],
  ["must-revalidate", 200, { "Cache-Control": "max-age=600, must-revalidate" }],
];

const PERMITTED = ["public", "s-maxage", "must-revalidate"];

/** What each cache gives to both users, with the library and without. */
const SHARED: Record<CacheName, string[]> = {
  varnish: [], // passes on every request with Authorization
  nginx: ["max-age", "stale", "expires", ...PERMITTED], // ignores Authorization
  squid: PERMITTED,
};

/** Answers with the name of the user. Its validator is the same for both, so that a 304 can leak. */
function answerTo(path: string, headers: Headers): Response {
  const name = path.split("/").at(-1)?.split("?")[0];
  const [, status = 404, fields = {}] = ROWS.find(([row]) => row === name) ?? [];
  if (headers.has("if-modified-since")) return new Response(null, { status: 304, headers: fields });
  return new Response(headers.get("authorization") ?? "nobody", { status, headers: fields });
}

async function answerOnNode(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const answer = answerTo(request.url ?? "", new Headers(request.headers as HeadersInit));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(await answer.text());
}

/** Returns what two users get of a path, one after the other. */
async function ask(port: number, path: string): Promise<string[]> {
  const got: string[] = [];
  for (const user of ["Basic YQ==", "Basic Yg=="]) {
    const headers = { Authorization: user };
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers,
      redirect: "manual",
    });
    got.push(await response.text());
  }
  return got;
}

const retired = retire(policy);
const wrapped = withLifecycle(
  ({ url, headers }) => answerTo(new URL(url).pathname, headers),
  policy,
);

for (const cache of CACHES) {
  needing(...needsOf(cache))(
    `${cache} gives no user another's response that it would not give without the library`,
    async () => {
      const node = createServer((request, response) => {
        const answer = () => void answerOnNode(request, response);
        return request.url?.startsWith("/plain") ? answer() : retired(request, response, answer);
      });
      await new Promise<void>((resolve) => node.listen(0, "127.0.0.1", resolve));
      await using fetched = new Origin((request) =>
        new URL(request.url).pathname.startsWith("/plain")
          ? answerTo(new URL(request.url).pathname, request.headers)
          : wrapped(request)
      );
      try {
        const ports = [
          (node.address() as AddressInfo).port,
          Number(new URL(fetched.url("/")).port),
        ];
        for (const origin of ports) {
          await using daemon = await startCache(cache, origin);
          const { port } = daemon;
          const shared: Record<string, string[]> = { plain: [], v1: [] };
          for (const [part, names] of Object.entries(shared)) {
            for (const [name] of ROWS) {
              const [first, second] = await ask(port, `/${part}/${name}`);
              if (first === second) names.push(name);
            }
          }
          assertEquals(shared, { plain: SHARED[cache], v1: SHARED[cache] });
        }
      } finally {
        node.closeAllConnections();
        await new Promise((resolve) => node.close(resolve));
      }
    },
  );
}
