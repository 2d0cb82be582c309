// What a user of the package writes; it is type-checked, and never runs.

import {
  announcementFields,
  definePolicy,
  type Fault,
  inspect,
  type LifecycleCall,
  limitFreshness,
  type Middleware,
  type NodeRequest,
  type NodeResponse,
  type Policy,
  refusal,
  retire,
  withLifecycle,
} from "@media-head/lifecycle";

const policy: Policy = definePolicy({ deprecatedAt: new Date(), brownoutStatus: 410 });
const calls: LifecycleCall[] = [];
const handler = (_request: Request, count: number) => new Response(String(count));
const options = { successor: () => "/v2", onCount: (call: LifecycleCall) => calls.push(call) };
const retired: (request: Request, count: number) => Promise<Response> = withLifecycle(
  handler,
  policy,
  options,
);
type NextRequest = Request & { nextUrl: URL };

export const GET: (request: NextRequest) => Promise<Response> = withLifecycle(
  (_: NextRequest) => new Response(),
  policy,
  { successor: undefined, route: undefined },
);
const faults: readonly Fault[] = inspect(await retired(new Request("https://a"), 1)).faults;
const fields: [string, string][] = limitFreshness(announcementFields(policy), {
  until: policy.sunsetAt ?? Infinity,
  now: 0,
  method: "GET",
  status: 200,
  isAuthorized: false,
});
const status: 308 | 410 | 503 | undefined = refusal(policy, { now: 0, maxAge: 1 })?.status;
const middleware: Middleware = retire(policy);
const named: Middleware<NodeRequest, NodeResponse> = middleware;
const plain = inspect({ status: 200, headers: { deprecation: "@1" } }).state;
// @ts-expect-error -- the types are not "any"
definePolicy({ deprecatedAt: 1 });
export { faults, fields, named, plain, status };
