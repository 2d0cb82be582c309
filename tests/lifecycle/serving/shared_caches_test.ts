/** Two users behind a shared cache, in front of an application with and without the library. */

import { assertEquals } from "@std/assert";
import type { RequestListener } from "node:http";
import { definePolicy, retire, withLifecycle } from "../../../lib/lifecycle/mod.ts";
import { type CacheName, CACHES, needsOf, startCache } from "../../support/caches.ts";
import { answerBy, listening } from "../../support/node_server.ts";
import { needing } from "../../support/permissions.ts";

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
function answer({ url, headers }: Request): Response {
  const name = url.split("/").at(-1);
  const [, status = 404, fields = {}] = ROWS.find(([row]) => row === name) ?? [];
  if (headers.has("if-modified-since")) return new Response(null, { status: 304, headers: fields });
  return new Response(headers.get("authorization") ?? "nobody", { status, headers: fields });
}

const [retired, wrapped] = [retire(policy), withLifecycle(answer, policy)];

/** The application, at `/plain/`, at `/node/` behind `retire()`, at `/fetch/` in `withLifecycle()`. */
const application: RequestListener = (request, response) => {
  const { url = "" } = request;
  const own = () => void answerBy(answer, request, response);
  if (url.startsWith("/node/")) retired(request, response, own);
  else if (url.startsWith("/fetch/")) answerBy(wrapped, request, response);
  else own();
};

/** Returns whether a user gets of a path what another one has got before. */
async function isShared(port: number, path: string): Promise<boolean> {
  const got: string[] = [];
  for (const Authorization of ["Basic YQ==", "Basic Yg=="]) {
    const options = { headers: { Authorization }, redirect: "manual" } as const;
    got.push(await (await fetch(`http://127.0.0.1:${port}${path}`, options)).text());
  }
  return got[0] === got[1];
}

for (const cache of CACHES) {
  needing(...needsOf(cache))(
    `${cache} gives no user another's response that it would not give without the library`,
    async () => {
      await using server = await listening(application);
      await using daemon = await startCache(cache, server.port);
      const shared: Record<string, string[]> = { plain: [], node: [], fetch: [] };
      for (const [part, names] of Object.entries(shared)) {
        for (const [name] of ROWS) {
          if (await isShared(daemon.port, `/${part}/${name}`)) names.push(name);
        }
      }
      const expected = SHARED[cache];
      assertEquals(shared, { plain: expected, node: expected, fetch: expected });
    },
  );
}
