/** Caches that ask whether what they have stored has changed, in front of any application. */

import { assert, assertEquals } from "@std/assert";
import type { RequestListener } from "node:http";
import { definePolicy, retire } from "../../../lib/lifecycle/mod.ts";
import { ALL_CACHES, needsOf, startCache } from "../../support/caches.ts";
import { type Lateness, latenessOf, type Poll } from "../../support/lateness.ts";
import { listening } from "../../support/node_server.ts";
import { missingOf, needing } from "../../support/permissions.ts";

const VALIDATORS = { "ETag": '"1"', "Last-Modified": "Wed, 01 Jan 2020 00:00:00 GMT" };
const FAR = "Wed, 01 Jan 2031 00:00:00 GMT";

type Fields = Record<string, string>;
const control = (value: string): Fields => ({ "Cache-Control": value });

/** What an application says to caches on a 200, and on the 304 with which it confirms that. */
const ROWS: [full: Fields, notModified: Fields][] = [
  [control("max-age=300"), control("max-age=300")],
  ...["", "max-age=0", "s-maxage=0, max-age=300", "no-cache", "no-store", "private, max-age=300"]
    .map((value): [Fields, Fields] => [control("max-age=300"), value === "" ? {} : control(value)]),
  [control("no-cache"), control("no-cache")],
  [control("public;max-age=300"), control("public;max-age=300")],
  [{ Expires: FAR }, { Expires: FAR }],
  [{ Expires: FAR }, {}],
  [{}, {}],
  [{ "X-Accel-Expires": "300" }, { "X-Accel-Expires": "300" }],
  [{ "X-Accel-Expires": "300" }, { "X-Accel-Expires": "0" }],
  [{ "X-Accel-Expires": "@1924992000" }, { "X-Accel-Expires": "@1924992000" }],
  [{ "X-Accel-Expires": "1d", ...control("max-age=300") }, { "X-Accel-Expires": "1d" }],
];

/** How often each cache has asked for a response, and for a confirmation. */
const asked = new Map(ALL_CACHES.map((name) => [name as string, { full: 0, notModified: 0 }]));

/** Goes through a brownout and the sunset, and returns how late each cache is. */
async function follow(): Promise<Map<string, Lateness>> {
  await using stack = new AsyncDisposableStack();
  let listener: RequestListener = (_, response) => response.writeHead(404).end();
  const origin = stack.use(await listening((request, response) => listener(request, response)));
  const polls: Poll[] = [];
  for (const cache of ALL_CACHES.filter((name) => missingOf(needsOf(name)) === "")) {
    const { port } = stack.use(await startCache(cache, origin.port, { revalidates: true }));
    polls.push(
      ...ROWS.map((_, row) => ({ cache, port, method: "GET", target: `/${cache}/${row}` })),
    );
  }
  const brownout = Math.ceil(Date.now() / 1000) * 1000 + 6_000;
  const [end, sunset] = [brownout + 4_000, brownout + 10_000];
  const retired = retire(definePolicy({
    deprecatedAt: "2020-01-01",
    sunsetAt: new Date(sunset),
    brownouts: [{ start: new Date(brownout), end: new Date(end) }],
  }));
  listener = (request, response) =>
    retired(request, response, () => {
      const [, cache = "", row] = request.url?.split("/") ?? [];
      const [full = {}, notModified = {}] = ROWS[Number(row)] ?? [];
      const { "if-none-match": tag, "if-modified-since": date } = request.headers;
      const isKnown = (tag ?? date) !== undefined;
      const counts = asked.get(cache);
      if (counts !== undefined) counts[isKnown ? "notModified" : "full"]++;
      const own = isKnown ? notModified : { "Content-Length": 3, ...full };
      response.writeHead(isKnown ? 304 : 200, { ...VALIDATORS, ...own });
      response.end(isKnown ? undefined : "old");
    });
  return await latenessOf(polls, [
    { start: 0, statuses: [200] },
    { start: brownout, statuses: [503] },
    { start: end, statuses: [200] },
    { start: sunset, statuses: [410] },
  ]);
}

let lateness: Promise<Map<string, Lateness>> | undefined;

for (const name of ALL_CACHES) {
  needing(...needsOf(name))(
    `${name} that revalidates follows each change within two seconds, whatever a 304 says`,
    async () => {
      lateness ??= follow(); // all in parallel
      const { late = Infinity, responses = 0 } = (await lateness).get(name) ?? {};
      assert(late < 2_000, `${late} ms`);
      const { full = 0, notModified = 0 } = asked.get(name) ?? {};
      assert(full + notModified < responses / 2, `${full} and ${notModified} of ${responses}`);
      assertEquals(notModified > 0, name !== "haproxy"); // which asks for a new one
    },
  );
}
