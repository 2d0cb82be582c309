/** Calls to an application's endpoint in every phase, and whether its removal breaks them. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import type { LifecycleOptions, RequestHead } from "../../lib/lifecycle/mod.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { Middleware } from "../../lib/lifecycle/serving/retire.ts";
import { requestRaw } from "./raw_http.ts";

export const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30",
  brownouts: ["2027-03-01T09:00Z/PT1H"],
  brownoutStatus: 503,
  afterSunset: "gone",
});
const [ANNOUNCED, DEPRECATED, BROWNOUT, REMOVED] = [
  "2026-12-01",
  "2027-02-01",
  "2027-03-01T09:30:00Z",
  "2027-07-01",
].map((text) => Date.parse(text)) as [number, number, number, number];

/** What the handler does: answers with a status, or fails. */
type Answer = number | "throws" | "rejects" | "returns nothing" | "throws a 404";

/** A call, with its status and whether the removal breaks it. */
export interface ApplicationCall {
  readonly what: string;
  readonly at: number;
  readonly method?: string;
  readonly userAgent?: string;
  readonly applies?: (request: RequestHead) => boolean;
  readonly answer: Answer;
  readonly status: number;
  readonly breaks: boolean;
}

const never = () => false;
const always = () => true;
const fails = (): never => {
  throw new Error("applies fails");
};
const unlessPartner = ({ headers }: RequestHead) => headers.get("user-agent") !== "partner";
const partner = { userAgent: "partner", applies: unlessPartner };
const checker = { userAgent: "media-head-check" };

/** Calls through a handler of either kind. */
export const CALLS: readonly ApplicationCall[] = [
  { what: "announced", at: ANNOUNCED, applies: never, answer: 200, status: 200, breaks: true },
  { what: "deprecated", at: DEPRECATED, applies: never, answer: 304, status: 304, breaks: true },
  { what: "refused", at: BROWNOUT, answer: 200, status: 503, breaks: true },
  {
    what: "another client",
    at: BROWNOUT,
    ...partner,
    userAgent: "curl",
    answer: 200,
    status: 503,
    breaks: true,
  },
  { what: "spared", at: BROWNOUT, ...partner, answer: 200, status: 200, breaks: true },
  {
    what: "spared at random",
    at: BROWNOUT,
    applies: never,
    answer: 200,
    status: 200,
    breaks: true,
  },
  {
    what: "spared by a fault",
    at: BROWNOUT,
    applies: fails,
    answer: 200,
    status: 200,
    breaks: true,
  },
  {
    what: "spared, fails",
    at: BROWNOUT,
    ...partner,
    method: "HEAD",
    answer: 500,
    status: 500,
    breaks: true,
  },
  {
    what: "spared, fails anyway",
    at: BROWNOUT,
    ...partner,
    answer: 404,
    status: 404,
    breaks: false,
  },
  {
    what: "spared for ever",
    at: REMOVED,
    ...partner,
    method: "POST",
    answer: 201,
    status: 201,
    breaks: true,
  },
  { what: "removed", at: REMOVED, answer: 404, status: 410, breaks: true },
  {
    what: "OPTIONS",
    at: DEPRECATED,
    method: "OPTIONS",
    applies: always,
    answer: 204,
    status: 204,
    breaks: false,
  },
  {
    what: "spared OPTIONS",
    at: REMOVED,
    method: "OPTIONS",
    answer: 204,
    status: 204,
    breaks: false,
  },
  {
    what: "OPTIONS that fails",
    at: BROWNOUT,
    method: "OPTIONS",
    answer: 500,
    status: 500,
    breaks: false,
  },
  {
    what: "refused OPTIONS",
    at: BROWNOUT,
    method: "OPTIONS",
    applies: always,
    answer: 204,
    status: 503,
    breaks: true,
  },
  {
    what: "removed OPTIONS",
    at: REMOVED,
    method: "OPTIONS",
    applies: always,
    answer: 204,
    status: 410,
    breaks: true,
  },
  { what: "the checker", at: DEPRECATED, ...checker, answer: 200, status: 200, breaks: false },
  { what: "the refused checker", at: REMOVED, ...checker, answer: 200, status: 410, breaks: false },
  { what: "a handler that throws", at: DEPRECATED, answer: "throws", status: 500, breaks: true },
  {
    what: "a spared one that throws",
    at: BROWNOUT,
    ...partner,
    answer: "throws",
    status: 500,
    breaks: true,
  },
];

/** Calls through a handler of the Fetch API. */
export const FETCH_CALLS: readonly ApplicationCall[] = [
  { what: "a handler that rejects", at: ANNOUNCED, answer: "rejects", status: 500, breaks: true },
  {
    what: "a handler that returns nothing",
    at: DEPRECATED,
    answer: "returns nothing",
    status: 500,
    breaks: true,
  },
  {
    what: "a handler that throws a 404",
    at: DEPRECATED,
    answer: "throws a 404",
    status: 404,
    breaks: false,
  },
];

const ANSWERS: Record<Exclude<Answer, number>, () => Response | Promise<Response>> = {
  throws() {
    throw new Error("bug");
  },
  rejects: () => Promise.reject(new Error("bug")),
  "returns nothing": () => undefined as unknown as Response,
  "throws a 404"() {
    throw new Response(null, { status: 404 });
  },
};

type Handler = (request: Request) => Response | Promise<Response>;

/** Makes a call through a handler that is retired. */
export async function callFetch(
  { at, method = "GET", userAgent = "curl", applies, answer }: ApplicationCall,
  retired: (handler: Handler, options: LifecycleOptions) => Handler,
): Promise<void> {
  const handler = typeof answer === "number"
    ? () => new Response(null, { status: answer })
    : ANSWERS[answer];
  const headers = { "User-Agent": userAgent };
  const request = new Request("http://test/v1/songs", { method, headers });
  try {
    const response = await retired(handler, { applies, clock: () => at })(request);
    await response.body?.cancel();
  } catch { // what the handler throws
  }
}

/** Makes a call through Node's server with a middleware, which answers 500 for an error. */
export async function callNode(
  { at, method = "GET", userAgent = "curl", applies, answer }: ApplicationCall,
  retired: (options: LifecycleOptions<RequestHead>) => Middleware,
): Promise<void> {
  const middleware = retired({ applies, clock: () => at });
  const server = createServer((request, response) => {
    try {
      middleware(request, response, () => {
        if (typeof answer !== "number") throw new Error("bug");
        response.writeHead(answer, { "Content-Length": 0 }).end();
      });
    } catch {
      response.writeHead(500, { "Content-Length": 0 }).end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await requestRaw(port, method, "/v1/songs", { "User-Agent": userAgent });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
