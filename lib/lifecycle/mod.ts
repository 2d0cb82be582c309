/**
 * Retires HTTP endpoints as the RFCs say. One policy determines every field, status and lifetime.
 *
 * @module
 */

export {
  type AfterSunset,
  type Brownout,
  type BrownoutStatus,
  type Moment,
  momentAt,
  type Phase,
  type Policy,
  type PolicyHold,
} from "./policy.ts";
export type { InstantSetting, Interval, IntervalSetting } from "./instant.ts";
export {
  type BrownoutSetting,
  definePolicy,
  PolicyError,
  type PolicyIssue,
  type PolicySettings,
} from "./policy_settings.ts";
export { announcementFields } from "./announcement.ts";
export { type FreshnessLimit, limitFreshness } from "./freshness.ts";
export { type Refusal, refusal, type RefusalOptions } from "./refusal.ts";
export type { LifecycleCall, LifecycleOptions, RequestHead } from "./serving/options.ts";
export type { RefusalContent, RefusalProblem } from "./serving/refusal_content.ts";
export { withLifecycle } from "./serving/with_lifecycle.ts";
export { type Middleware, type NodeRequest, type NodeResponse, retire } from "./serving/retire.ts";
export { type Located, type PathOptions, pathsUnder } from "./serving/paths_under.ts";
export { type Fault, inspect, type Inspection, type State } from "./checking/inspect.ts";
export type { Body, Field, Outcome } from "../http/outcome.ts";
