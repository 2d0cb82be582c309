/** Reports on ledgers written by hand. */

import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { reportUsage, type UsageReport, type UsageReportOptions } from "../../lib/report/report.ts";
import type { Heartbeat, ReleaseRow, UsageRow } from "../../lib/storage/ledger/records.ts";

/** The time of all reports: noon of a Tuesday. */
export const NOW = Date.parse("2027-06-15T12:00:00Z");
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-17",
  brownouts: ["2027-06-10T09:00Z/PT8H"],
});
/** What servers announce. */
export const POLICIES = { "/audio/:token": POLICY, "/video/:token": POLICY };

/** Makes a row of the ledger: days ago, client, calls. */
export function row(
  daysAgo: number,
  client: string,
  calls: number,
  more: Partial<UsageRow> = {},
): UsageRow {
  const at = NOW - daysAgo * DAY;
  const day = new Date(at).toISOString().slice(0, 10);
  const fixed = {
    route: "/audio/:token",
    method: "HEAD",
    phase: "deprecated",
    status: "2xx",
    impact: "breaking",
  } as const;
  return { ...fixed, day, client, calls, first: at, last: at + HOUR, ...more };
}

/** Makes a row of a release: days ago, client, release, calls. */
export function released(
  daysAgo: number,
  client: string,
  release: string,
  calls: number,
): ReleaseRow {
  const { day, last } = row(daysAgo, client, calls);
  return { day, client, release, calls, last };
}

/** Makes the heartbeat of a server that counted between two times, in hours before now. */
export function heartbeat(
  fromHoursAgo: number,
  untilHoursAgo: number,
  more: Partial<Heartbeat> = {},
): Heartbeat {
  const [from, until] = [fromHoursAgo, untilHoursAgo].map((hours) =>
    NOW - Math.round(hours * HOUR)
  );
  return {
    server: "a",
    policies: POLICIES,
    sequence: 0,
    from: from as number,
    until: until as number,
    ...more,
  };
}

/** How to report. */
interface ReportOptions extends
  Partial<
    Pick<
      UsageReportOptions,
      | "client"
      | "ignore"
      | "atMost"
      | "trustStops"
      | "usageDays"
      | "hidden"
      | "publicUrl"
    >
  > {
  /** The deprecated routes of the code that reports. */
  readonly routes?: readonly string[];
  readonly days?: number;
  readonly now?: number;
  readonly keptFrom?: string;
  readonly releases?: readonly ReleaseRow[];
}

/** Makes the report on a ledger with these rows and watches. */
export async function report(
  rows: readonly UsageRow[],
  heartbeats: readonly Heartbeat[],
  { days = 7, now = NOW, keptFrom, releases = [], ...options }: ReportOptions = {},
): Promise<UsageReport> {
  const ledger = {
    usage: async function* () {
      yield* rows;
      await Promise.resolve();
    },
    releases: async function* (fromDay: string) {
      yield* releases.filter(({ day }) => day >= fromDay);
      await Promise.resolve();
    },
    heartbeats: () => Promise.resolve(heartbeats.toSorted((a, b) => a.from - b.from)),
    time: () => Promise.resolve({ now, latest: 0 }),
    keptFrom: () => Promise.resolve(keptFrom),
  };
  const routes = Object.keys(POLICIES);
  return await reportUsage(ledger, { routes, days, now, usageDays: 400, ...options });
}

/** A server that has been counting for weeks. */
export const ALWAYS = [heartbeat(1000, 0)];

/** Calls in the last week, before it, and other requests. */
export const ROWS = [
  row(30, "Forgotten", 7),
  row(30, "curl", 7),
  row(40, "curl", 1, { impact: "none" }),
  row(8, "Overcast", 999), // a day too early
  row(8, "Overcast", 99, { status: "4xx", impact: "none" }),
  row(7, "Overcast", 30),
  row(6, "Overcast", 5, { phase: "brownout", status: "4xx" }),
  row(5, "curl", 60, { route: "/video/:token" }),
  row(5, "scanner", 12, { status: "4xx", impact: "none" }),
  row(0, "Overcast", 1),
];
