/** What pages of other origins can read of a retirement. Only a browser decides that. */

import { assertEquals } from "@std/assert";
import { definePolicy, type LifecycleOptions, withLifecycle } from "../../lib/lifecycle/mod.ts";
import { launchBrowser, testInBrowser } from "../support/browser.ts";
import { Origin } from "../support/origin.ts";

type Handler = (request: Request) => Response | Promise<Response>;

/** Adds a field that lets any page read a response, as a middleware does. */
function open(handler: Handler, add: "set" | "append" = "set"): Handler {
  return async (request) => {
    const response = await handler(request);
    response.headers[add]("Access-Control-Allow-Origin", "*");
    return response;
  };
}

testInBrowser("a page of another origin reads the announcement and the refusal", async (t) => {
  const policy = definePolicy({
    deprecatedAt: "2027-01-01",
    sunsetAt: "2027-06-30",
    brownouts: ["2027-03-01T09:00Z/PT1H"],
  });
  let now = 0;
  const plain = () => new Response("old");
  const retired = (handler: Handler, options: LifecycleOptions = {}) =>
    withLifecycle(handler, policy, { ...options, clock: () => now, successor: () => "/v2" });
  const allow = "https://a.example";
  const setUps: Record<string, Handler> = {
    "CORS inside": retired(open(plain)),
    "CORS outside": open(retired(plain)),
    "CORS appended outside": open(retired(plain, { refusalFields: () => [] }), "append"),
    "CORS for one origin": retired(open(plain), {
      refusalFields: () => [["Access-Control-Allow-Origin", allow]],
    }),
  };
  await using site = new Origin(() => new Response("a page"));
  await using browser = await launchBrowser();
  const page = await browser.newPage();
  await page.goto(site.url("/"));
  for (const [name, handler] of Object.entries(setUps)) {
    await t.step(name, async () => {
      await using origin = new Origin(handler);
      const read = async (instant: string) => {
        now = Date.parse(instant);
        return await page.evaluate(async (url: string) => {
          const { status, headers } = await fetch(url, { cache: "no-store" });
          const names = ["deprecation", "sunset", "link", "retry-after"];
          return [status, ...names.map((name) => headers.get(name))];
        }, origin.url("/v1")).catch(() => "hidden");
      };
      const said = [
        "@1798761600",
        "Wed, 30 Jun 2027 00:00:00 GMT",
        '</v2>; rel="successor-version"',
      ];
      assertEquals(await read("2027-02-01"), [200, ...said, null]);
      const isHidden = name === "CORS for one origin";
      const until = "Mon, 01 Mar 2027 10:00:00 GMT";
      const refused = isHidden ? "hidden" : [503, ...said, until];
      assertEquals(await read("2027-03-01T09:30:00Z"), refused);
      assertEquals(await read("2027-07-01"), isHidden ? "hidden" : [410, ...said, null]);
    });
  }
});
