/** Reports on ledgers written by hand. */

import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { RecordedHold } from "../../lib/usage/record/holds.ts";
import {
  type ClientHistory,
  isOver,
  type Session,
  type UsageRow,
} from "../../lib/usage/record/records.ts";
import { readAllSessions, type ReadSession } from "../../lib/usage/verdict/evidence.ts";
import {
  reportUsage,
  type UsageReport,
  type UsageReportOptions,
} from "../../lib/usage/verdict/report.ts";
import { COUNT, PROCESS } from "./counted_call.ts";

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
export const [AUDIO, VIDEO] = ["/audio/:token", "/video/:token"] as const;
/** What processes announce. */
export const POLICIES = { [AUDIO]: POLICY, [VIDEO]: POLICY };
/** A process that announces one route. */
export const ONLY_AUDIO = { policies: { [AUDIO]: POLICY } };
/** The policy without a date, under which a verdict can be clear. */
export const UNDATED = { ...POLICY, sunsetAt: undefined };
/** The instant that is some hours before now. */
export const before = (hours: number) => NOW - Math.round(hours * HOUR);

/** Makes a row of the ledger: days ago, client, calls. */
export function row(
  daysAgo: number,
  client: string,
  calls: number,
  more: Partial<UsageRow> = {},
): UsageRow {
  const last = NOW - daysAgo * DAY;
  const day = new Date(last).toISOString().slice(0, 10);
  return { ...COUNT, day, client, calls, last, ...more };
}

/** Returns what a ledger says of the days of the clients in rows. */
function historiesOf(rows: readonly UsageRow[]): ClientHistory[] {
  const calls = rows.filter(({ impact }) => impact === "breaking");
  return [...Map.groupBy(calls, ({ route, client }) => `${route} ${client}`).values()]
    .flatMap(([first, ...others]): ClientHistory[] => {
      if (first === undefined) return [];
      const all = [first, ...others];
      const days = [...new Set(all.map(({ day }) => day))].sort();
      const pauses = days.slice(1).map((day, at) =>
        (Date.parse(day) - Date.parse(days[at] as string)) / DAY
      );
      const last = days.at(-1) as string;
      const sum = (rows: readonly UsageRow[]) => rows.reduce((sum, { calls }) => sum + calls, 0);
      return [{
        route: first.route,
        client: first.client,
        calls: sum(all),
        days: days.length,
        first: days[0] as string,
        last,
        lastCalls: sum(all.filter(({ day }) => day === last)),
        pause: pauses.length === 0 ? undefined : Math.max(...pauses),
      }];
    });
}

/**
 * Makes a session that began, and sent its last heartbeat, some hours before now. Without an end, its
 * process fell silent then.
 */
export function session(
  beganHoursAgo: number,
  reportedHoursAgo: number,
  more: Partial<Session> = {},
): Session {
  const { id = "a", reported = before(reportedHoursAgo) } = more;
  const fixed = { id, opened: id, policies: POLICIES, process: PROCESS, retainDays: 400 };
  const times = { began: before(beganHoursAgo), reported, written: reported };
  return { ...fixed, ...times, onDemand: false, sequence: 1, ...more };
}

/** Makes a session that began some hours before now, and reports now. */
export function running(beganHoursAgo: number, more: Partial<Session> = {}): Session {
  return session(beganHoursAgo, 0, more);
}

/** Makes a session that ended with a word. */
export function stopped(
  beganHoursAgo: number,
  reportedHoursAgo: number,
  more: Partial<Session> = {},
): Session {
  const end = { id: `stopped ${beganHoursAgo}`, ended: "stopped" } as const;
  return session(beganHoursAgo, reportedHoursAgo, { ...end, ...more });
}

/** Makes a session whose process fell silent. */
export function silent(
  beganHoursAgo: number,
  reportedHoursAgo: number,
  more: Partial<Session> = {},
): Session {
  return session(beganHoursAgo, reportedHoursAgo, { id: `silent ${beganHoursAgo}`, ...more });
}

/** Returns a session as it is read now. */
export function read(session: Session): ReadSession {
  return { ...session, isOver: isOver(session, NOW) };
}

/** What a ledger has. */
interface Record {
  readonly rows?: readonly UsageRow[];
  readonly sessions: readonly Session[];
  /** The start of the record, if it has one besides its first session. */
  readonly started?: number | undefined;
  /** The ledger's time; by default now. */
  readonly now?: number | undefined;
  /** How far the database's clock is behind the ledger's time, in milliseconds. */
  readonly lag?: number | undefined;
  /** The rows that were recorded before the days on which clients called were read; by default all. */
  readonly before?: readonly UsageRow[] | undefined;
  readonly holds?: readonly RecordedHold[] | undefined;
  readonly name?: string;
}

function sourceOf(
  { rows = [], sessions, started, now = NOW, lag = 0, before = rows, holds = [], ...named }: Record,
) {
  const ledger = {
    time: () => Promise.resolve({ databaseTime: now - lag, now }),
    sessions: () => Promise.resolve(sessions.toSorted((a, b) => a.began - b.began)),
    histories: () => Promise.resolve(historiesOf(before)),
    usage: async function* (fromDay: string) {
      yield* rows.filter(({ day }) => day >= fromDay);
      await Promise.resolve();
    },
    hasClient: (name: string) => Promise.resolve(rows.some(({ client }) => client === name)),
    started: () => Promise.resolve(started),
    holds: () => Promise.resolve({ holds, faults: [] }),
  };
  return { ledger, name: named.name ?? "the record" };
}

/** How to report, and what else the ledger has. */
type ReportOptions = Partial<UsageReportOptions> & Omit<Record, "rows" | "sessions" | "name"> & {
  /** Other records. */
  readonly also?: readonly Record[];
};

/** Makes the report on a ledger with these rows and sessions. */
export async function report(
  rows: readonly UsageRow[],
  sessions: readonly Session[],
  { also = [], started, now, lag, before, holds, ...options }: ReportOptions = {},
): Promise<UsageReport> {
  const own = { rows, sessions, started, now, lag, before, holds };
  const sources = [own, ...also].map(sourceOf);
  return await reportUsage(sources, await readAllSessions(sources), { days: 7, ...options });
}

/** A process that has been counting for weeks. */
export const ALWAYS = [running(1000)];

/** Calls in the last week, before it, and other requests. */
export const ROWS = [
  row(30, "Forgotten", 7),
  row(30, "curl", 7),
  row(40, "curl", 1, { impact: "none" }),
  row(8, "Overcast", 999), // a day too early
  row(8, "Overcast", 99, { status: "4xx", impact: "none" }),
  row(7, "Overcast", 30),
  row(6, "Overcast", 5, { phase: "brownout", brownout: "2027-06-09T09:00:00Z", status: "4xx" }),
  row(5, "curl", 60, { route: "/video/:token" }),
  row(5, "scanner", 12, { status: "4xx", impact: "none" }),
  row(0, "Overcast", 1),
];
