/**
 * Retires HTTP endpoints by the RFCs: one policy determines every field, status and cache lifetime.
 *
 * @module
 */

export {
  type AfterSunset,
  type InstantSetting,
  type Interval,
  type IntervalSetting,
  type Moment,
  momentAt,
  type Phase,
  type Policy,
} from "./policy.ts";
export {
  definePolicy,
  PolicyError,
  type PolicyIssue,
  type PolicySettings,
} from "./policy_settings.ts";
export { announcementFields } from "./announcement.ts";
export { type FreshnessLimit, limitFreshness } from "./freshness.ts";
export { refusal, type RefusalOptions } from "./refusal.ts";
export { type LifecycleOptions, withLifecycle } from "./with_lifecycle.ts";
export type { Answer, Body, Content, Field } from "../http/answer.ts";
export type { Awaitable } from "../http/awaitable.ts";
