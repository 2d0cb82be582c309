/** Calls to an application's endpoint in every phase, and whether its removal breaks them. */

import type { LifecycleOptions, RequestHead } from "../../lib/lifecycle/mod.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { Middleware } from "../../lib/lifecycle/serving/retire.ts";
import { listening } from "./node_server.ts";
import { requestRaw } from "./raw_http.ts";

export const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30",
  brownouts: ["2027-03-01T09:00Z/PT1H"],
  brownoutStatus: 503,
  afterSunset: "gone",
});
/** An instant in each phase. */
export const [ANNOUNCED, DEPRECATED, BROWNOUT, REMOVED] = [
  "2026-12-01",
  "2027-02-01",
  "2027-03-01T09:30:00Z",
  "2027-07-01",
].map((text) => Date.parse(text)) as [number, number, number, number];

/** What the handler does: answers with a status, or fails. */
type Answer = number | "throws" | "rejects" | "returns nothing" | "throws a 404";

/** A call through a handler, and what is counted of it. */
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

/** When a call comes, what the handler would do, the status, and whether the removal breaks the call. */
type Row = readonly [
  what: string,
  at: number,
  answer: Answer,
  status: number,
  breaks: boolean,
  request?: Pick<ApplicationCall, "method" | "userAgent" | "applies">,
];

const callOf = ([what, at, answer, status, breaks, request]: Row): ApplicationCall => {
  return { what, at, answer, status, breaks, ...request };
};

const never = { applies: () => false };
const fails = {
  applies: (): never => {
    throw new Error("applies fails");
  },
};
const unlessPartner = ({ headers }: RequestHead) => headers.get("user-agent") !== "partner";
const other = { userAgent: "curl", applies: unlessPartner };
const partner = { userAgent: "partner", applies: unlessPartner };
const checker = { userAgent: "media-head-check" };
const options = { method: "OPTIONS" };
const refusedOptions = { method: "OPTIONS", applies: () => true };

/** Calls through a handler of either kind. */
export const CALLS: readonly ApplicationCall[] = ([
  ["announced", ANNOUNCED, 200, 200, true, never],
  ["deprecated", DEPRECATED, 304, 304, true, never],
  ["refused", BROWNOUT, 200, 503, true],
  ["another client", BROWNOUT, 200, 503, true, other],
  ["spared", BROWNOUT, 200, 200, true, partner],
  ["spared at random", BROWNOUT, 200, 200, true, never],
  ["spared by a fault", BROWNOUT, 200, 200, true, fails],
  ["spared, fails", BROWNOUT, 500, 500, true, { ...partner, method: "HEAD" }],
  ["spared, fails anyway", BROWNOUT, 404, 404, false, partner],
  ["spared for ever", REMOVED, 201, 201, true, { ...partner, method: "POST" }],
  ["removed", REMOVED, 404, 410, true],
  ["OPTIONS", DEPRECATED, 204, 204, false, refusedOptions],
  ["spared OPTIONS", REMOVED, 204, 204, false, options],
  ["OPTIONS that fails", BROWNOUT, 500, 500, false, options],
  ["refused OPTIONS", BROWNOUT, 204, 503, true, refusedOptions],
  ["removed OPTIONS", REMOVED, 204, 410, true, refusedOptions],
  ["the checker", DEPRECATED, 200, 200, false, checker],
  ["the refused checker", REMOVED, 200, 410, false, checker],
  ["a handler that throws", DEPRECATED, "throws", 500, true],
  ["a spared one that throws", BROWNOUT, "throws", 500, true, partner],
] satisfies Row[]).map(callOf);

/** Calls through a handler of the Fetch API. */
export const FETCH_CALLS: readonly ApplicationCall[] = ([
  ["a handler that rejects", ANNOUNCED, "rejects", 500, true],
  ["a handler that returns nothing", DEPRECATED, "returns nothing", 500, true],
  ["a handler that throws a 404", DEPRECATED, "throws a 404", 404, false],
] satisfies Row[]).map(callOf);

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
  await using server = await listening((request, response) => {
    try {
      middleware(request, response, () => {
        if (typeof answer !== "number") throw new Error("bug");
        response.writeHead(answer, { "Content-Length": 0 }).end();
      });
    } catch {
      response.writeHead(500, { "Content-Length": 0 }).end();
    }
  });
  await requestRaw(server.port, method, "/v1/songs", { "User-Agent": userAgent });
}
