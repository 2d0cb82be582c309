/** Validation of policy settings. */

import { formatInstant } from "../http/timestamp.ts";
import {
  type InstantSetting,
  type Interval,
  type IntervalSetting,
  readInstant,
  readInterval,
} from "./instant.ts";
import { mismatch } from "./mismatch.ts";
import { isPathOrSecureUrl, MAX_TARGET_LENGTH } from "./link_target.ts";
import type { AfterSunset, Brownout, BrownoutStatus, Policy } from "./policy.ts";

/**
 * A brownout: an interval, which may have a status of its own, as text at its end
 * (`2027-05-03T09:00Z/PT4H=410`) or as a member of the object.
 */
export type BrownoutSetting =
  | IntervalSetting
  | (Exclude<IntervalSetting, string> & { readonly status?: BrownoutStatus | undefined });

/** The settings of a policy. Instants are from 1970 to 9999. Fractions of a second are dropped. */
export interface PolicySettings {
  /** When the deprecation begins. */
  readonly deprecatedAt: InstantSetting;
  /** When the endpoint is removed. */
  readonly sunsetAt?: InstantSetting | undefined;
  /**
   * Trial removals. They must end before the sunset. Adjacent ones are joined unless their statuses
   * differ.
   */
  readonly brownouts?: readonly BrownoutSetting[] | undefined;
  /**
   * The status in a brownout that has none of its own. Default: 503, because a brownout is
   * temporary. RFC 9110 defines 410 for resources that are likely gone for good, and feed readers
   * delete an episode on 410.
   */
  readonly brownoutStatus?: BrownoutStatus | undefined;
  /** The response after the sunset: `gone` is 410, `redirect` is 308. Default: `gone`. */
  readonly afterSunset?: AfterSunset | undefined;
  /** A page that explains the retirement: an absolute path, or an `https:` URL. */
  readonly documentation?: string | undefined;
}

/** An invalid setting. */
export interface PolicyIssue {
  /**
   * The setting's name, like `sunsetAt` or `brownouts[0].start`; `settings` if the value is no
   * object, or the name of an unknown setting.
   */
  readonly setting: string;
  /** The value given. */
  readonly value: unknown;
  /** The accepted values, in words. */
  readonly expected: string;
}

/** Thrown for invalid settings. */
export class PolicyError extends Error {
  /** Always `"PolicyError"`. */
  override readonly name = "PolicyError";

  /** Lists the issues in the message, one per line. */
  constructor(readonly issues: readonly PolicyIssue[]) {
    super(issues.map((issue) => mismatch(issue.setting, issue.value, issue.expected)).join("\n"));
  }
}

const SETTINGS = [
  "deprecatedAt",
  "sunsetAt",
  "brownouts",
  "brownoutStatus",
  "afterSunset",
  "documentation",
];
const INSTANT =
  'an ISO 8601 date or instant from 1970 to 9999, like "2027-06-30" or "2027-06-30T12:00:00Z"';
const INTERVAL = 'ISO 8601 intervals like "2027-03-01T09:00Z/2027-03-01T10:00Z" or ' +
  '"2027-03-01T09:00Z/PT1H", with durations of whole weeks, days, hours, minutes and seconds, and ' +
  'with "=503" or "=410" at the end for a status of its own';
const STATUS = "503 or 410";

/**
 * Creates a policy from settings.
 *
 * @throws {PolicyError} If settings are missing, unknown or invalid, the sunset precedes the
 *   deprecation, or a brownout overlaps another or is not between the two. The error lists all
 *   issues.
 *
 * @example A policy
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { definePolicy } from "@media-head/lifecycle";
 *
 * const policy = definePolicy({
 *   deprecatedAt: "2026-11-21",
 *   sunsetAt: "2027-06-30",
 *   brownouts: ["2027-05-03T09:00Z/PT1H"],
 * });
 * assertEquals(policy.sunsetAt, Date.parse("2027-06-30T00:00:00Z"));
 * ```
 */
export function definePolicy(settings: PolicySettings): Policy {
  if (Object(settings) !== settings) {
    throw new PolicyError([{ setting: "settings", value: settings, expected: "an object" }]);
  }
  const issues: PolicyIssue[] = [];
  const refuse: Refuse = (setting, value, expected) =>
    void issues.push({ setting, value, expected });
  for (const name of Object.keys(settings)) {
    // Otherwise a misspelt setting would silently count as absent.
    if (!SETTINGS.includes(name)) refuse("settings", name, `only ${SETTINGS.join(", ")}`);
  }
  const { sunsetAt: sunset, afterSunset = "gone", brownoutStatus = 503, documentation } = settings;
  const deprecatedAt = instantIn("deprecatedAt", settings.deprecatedAt, refuse);
  const sunsetAt = sunset === undefined ? undefined : instantIn("sunsetAt", sunset, refuse);
  if (deprecatedAt !== undefined && sunsetAt !== undefined && sunsetAt < deprecatedAt) {
    const expected = `an instant no earlier than the deprecation at ${formatInstant(deprecatedAt)}`;
    refuse("sunsetAt", sunset, expected);
  }
  if (afterSunset !== "gone" && afterSunset !== "redirect") {
    refuse("afterSunset", afterSunset, '"gone" or "redirect"');
  }
  if (!isBrownoutStatus(brownoutStatus)) refuse("brownoutStatus", brownoutStatus, STATUS);
  if (documentation !== undefined && !isPathOrSecureUrl(documentation)) {
    const expected = 'a path that starts with "/", or an "https:" URL without a password, of at ' +
      `most ${MAX_TARGET_LENGTH} characters`;
    const shown = String(documentation).replace(/^(https?:\/\/)?.*@/is, "$1…@");
    refuse("documentation", typeof documentation === "string" ? shown : documentation, expected);
  }

  const brownouts = brownoutsIn(settings, { deprecatedAt, sunsetAt }, refuse);
  if (deprecatedAt === undefined || issues.length > 0) throw new PolicyError(issues);
  return { deprecatedAt, sunsetAt, brownouts, brownoutStatus, afterSunset, documentation };
}

type Dates = Record<"deprecatedAt" | "sunsetAt", number | undefined>;

/** Adds an issue, or throws. */
type Refuse = (setting: string, value: unknown, expected: string) => undefined;

/** Returns the instant of a setting in milliseconds since the epoch; if it is invalid, refuses it. */
export function instantIn(setting: string, value: unknown, refuse: Refuse): number | undefined {
  const expected = typeof value === "string"
    ? INSTANT
    : `a Date, a Temporal.Instant, or ${INSTANT}`;
  return readInstant(value) ?? refuse(setting, value, expected);
}

function isBrownoutStatus(value: unknown): value is BrownoutStatus {
  return value === 503 || value === 410;
}

/** A brownout whose status is that of the policy unless it has one. */
type OwnBrownout = Interval & { readonly status: BrownoutStatus | undefined };

function brownoutIn(setting: string, value: unknown, refuse: Refuse): OwnBrownout | undefined {
  if (typeof value === "string") {
    const [, text = "", own] = /^(.*?)(?:=(503|410))?$/s.exec(value) ?? [];
    const interval = readInterval(text) ?? refuse(setting, value, INTERVAL);
    return interval && { ...interval, status: own && (Number(own) as BrownoutStatus) || undefined };
  }
  if (Object(value) !== value) return refuse(setting, value, `{ start, end }, or ${INTERVAL}`);
  const given = value as Record<string, unknown>;
  const start = instantIn(`${setting}.start`, given["start"], refuse);
  const end = instantIn(`${setting}.end`, given["end"], refuse);
  const status = given["status"];
  if (status !== undefined && !isBrownoutStatus(status)) {
    return refuse(`${setting}.status`, status, STATUS);
  }
  return start === undefined || end === undefined ? undefined : { start, end, status };
}

/** Returns the brownouts in chronological order, with adjacent ones of the same status joined. */
function brownoutsIn(
  { brownouts: list = [], sunsetAt: sunset, brownoutStatus = 503 }: PolicySettings,
  { deprecatedAt = -Infinity, sunsetAt = Infinity }: Dates,
  refuse: Refuse,
): Brownout[] {
  if (!Array.isArray(list)) return refuse("brownouts", list, "a list of intervals") ?? [];
  const brownouts: (Brownout & { readonly setting: string; readonly text: string })[] = [];
  for (const [index, value] of list.entries()) {
    const setting = `brownouts[${index}]`;
    const brownout = brownoutIn(setting, value, refuse);
    if (brownout === undefined) continue;
    const { start, end, status = brownoutStatus } = brownout;
    const text = typeof value === "string" ? value : [start, end].map(formatInstant).join("/");
    const expected = end <= start
      ? "an interval that ends after it starts"
      : sunset === undefined
      ? "a sunset date, since brownouts precede the sunset"
      : end >= sunsetAt
      ? `an end before the sunset at ${formatInstant(sunsetAt)}`
      : start < deprecatedAt
      ? `a start no earlier than the deprecation at ${formatInstant(deprecatedAt)}`
      : undefined;
    if (expected !== undefined) refuse(setting, text, expected);
    else brownouts.push({ start, end, status, setting, text });
  }
  brownouts.sort((a, b) => a.start - b.start);
  const joined: Brownout[] = [];
  for (const [index, { start, end, status, setting, text }] of brownouts.entries()) {
    const previous = brownouts[index - 1];
    if (previous && start < previous.end) {
      refuse(setting, text, `no overlap with "${previous.text}"`);
    }
    const isJoined = start === previous?.end && status === previous.status;
    joined.push({ start: isJoined ? (joined.pop() as Brownout).start : start, end, status });
  }
  return joined;
}
