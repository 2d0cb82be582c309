/** The notice in every phase. */

import { noticePage } from "../../lib/documents/notice_page.ts";
import { noticeAt } from "../../lib/lifecycle/notice.ts";
import type { PHASES, Policy } from "../../lib/lifecycle/policy.ts";
import { definePolicy, type PolicySettings } from "../../lib/lifecycle/policy_settings.ts";
import { PROBLEM_TYPES } from "../../lib/server/problems.ts";

export const SETTINGS: PolicySettings = {
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30T12:00Z",
  brownouts: ["2027-03-01T09:00Z/PT1H", "2027-05-03T09:00Z/PT8H30M", "2027-06-10/P1D"],
  brownoutStatus: 503,
  afterSunset: "gone",
  documentation: "/deprecation",
};
export const POLICY = definePolicy(SETTINGS);
export const REDIRECTING = definePolicy({ ...SETTINGS, afterSunset: "redirect" });
export const OPEN = definePolicy({ deprecatedAt: "2027-01-01", afterSunset: "gone" });

/** An instant in every phase. */
export const INSTANTS: Record<typeof PHASES[number], string> = {
  announced: "2026-11-21T00:00Z",
  deprecated: "2027-04-01T00:00Z",
  brownout: "2027-05-03T12:00Z",
  removed: "2027-07-01T00:00Z",
};

export const ENDPOINTS = ["/audio/{token}", "/video/{token}"].map((path) => ({
  path,
  methods: ["GET", "HEAD", "OPTIONS"],
  successor: "/media/{token}",
}));

/** The endpoints under a policy, or two. */
export function endpointsUnder(policy: Policy, video = policy) {
  return ENDPOINTS.map((endpoint) => ({
    ...endpoint,
    policy: endpoint.path.startsWith("/video") ? video : policy,
  }));
}

/** Where items are. */
export const ITEMS = [{ path: "/media/{token}", serves: "published audio or video" }];

/** The page once every deprecated route is deleted. */
export function lastPage() {
  const notice = noticeAt(POLICY, [], { now: 0, contact: "mailto:ops@example.com" });
  return noticePage(notice, { items: ITEMS, types: PROBLEM_TYPES, now: 0 });
}

export function pageAt(instant: string, policy = POLICY, video = policy, contact?: string) {
  const now = Date.parse(instant);
  const notice = noticeAt(policy, endpointsUnder(policy, video), { now, contact });
  return noticePage(notice, { items: ITEMS, types: PROBLEM_TYPES, now });
}
