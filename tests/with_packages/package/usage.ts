// What a user of the record of calls writes; it is type-checked, and never runs.

import { definePolicy, type Policy } from "@media-head/lifecycle";
import {
  type LogEvent,
  openUsage,
  type Usage,
  type UsageOptions,
} from "@media-head/lifecycle/usage";

const policy: Policy = definePolicy({ deprecatedAt: "2026-11-21", sunsetAt: "2027-06-30" });
const events: LogEvent[] = [];
const options: UsageOptions = {
  routes: { "/v1": policy },
  password: () => Promise.resolve("secret"),
  onDemand: true,
  publicUrl: "https://api.example.com",
  contact: "mailto:api@example.com",
  retainDays: 30,
  log: (event) => void events.push(event),
};
export const usage: Usage = await openUsage("sqlite::memory:", options);
const answer: (request: Request, count: number) => Promise<Response> = usage.withLifecycle(
  (_: Request, count: number) => new Response(String(count)),
  "/v1",
  {
    client: (request, count) => request.headers.get("X-Client") ?? count,
    onCount: ({ phase }, request, count) => console.log(phase, request.url, count + 1),
  },
);
export const middleware = usage.retire("/v1", { successor: ({ url }) => url });
export const fault: string | undefined = usage.fault;
// @ts-expect-error -- it is no option
await openUsage("sqlite::memory:", { routes: {}, clock: Date.now });
await answer(new Request("https://example.com/v1"), 1).then(() => usage.close());
