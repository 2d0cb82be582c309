/** Sessions of schema 9, in which there were no intents: a process answered first, and wrote later. */

import type { Database, Row } from "../../database/sql/database.ts";
import type { Policy, RoutePolicies } from "../../lifecycle/policy.ts";
import { type Session, SHORTEST_GAP_MS } from "../record/records.ts";

const COLUMNS = "id, policies, may_start_unregistered, public_url, contact, machine, pid, " +
  "process_started, began, reported, clock, restarted, sequence, ended, ended_by, lead";

/** The days that servers retained unless they were told otherwise. Sessions did not say it. */
const RETAIN_DAYS = 400;

/** A session whose process may have answered calls after its last heartbeat, and until when. */
export interface Silence {
  readonly session: string;
  readonly reported: number;
  /** In milliseconds since the epoch; `undefined` if nobody has said. */
  readonly until: number | undefined;
}

/** Returns all sessions, in the order in which they began, and what is doubted of them. */
export async function readVersion9(
  database: Database,
): Promise<{ sessions: Session[]; silences: Silence[] }> {
  const rows = await database.query({
    text: `SELECT ${COLUMNS} FROM media_head_session ORDER BY began, id`,
  });
  return { sessions: rows.map(sessionOf), silences: rows.flatMap(silenceOf) };
}

function sessionOf(row: Row): Session {
  const ended = row["ended"] as "stopped" | "lapsed" | "gone" | null;
  return {
    id: row["id"] as string,
    policies: withStatuses(JSON.parse(row["policies"] as string)),
    unmounted: undefined,
    mayServeUnrecorded: row["may_start_unregistered"] === 1,
    publicUrl: row["public_url"] as string | null ?? undefined,
    contact: row["contact"] as string | null ?? undefined,
    retainDays: RETAIN_DAYS,
    process: {
      machine: row["machine"] as string | null ?? undefined,
      pid: row["pid"] as number,
      started: row["process_started"] as number,
    },
    began: row["began"] as number,
    reported: row["reported"] as number,
    timeline: "",
    sequence: row["sequence"] as number,
    ended: ended === "gone" ? "lapsed" : ended ?? undefined,
  };
}

/** Gives each brownout the status of its policy: none had one of its own. */
function withStatuses(policies: RoutePolicies): RoutePolicies {
  const withStatus = (policy: Policy): Policy => {
    const { brownoutStatus: status } = policy;
    return { ...policy, brownouts: policy.brownouts.map((each) => ({ ...each, status })) };
  };
  return Object.fromEntries(
    Object.entries(policies).map(([route, policy]) => [route, withStatus(policy)]),
  );
}

/** Returns what is doubted of a session: that it is silent, or was cut off. */
function silenceOf(row: Row): Silence[] {
  const [session, reported] = [row["id"] as string, row["reported"] as number];
  if (row["ended"] === null) return [{ session, reported, until: undefined }];
  const until = endOf(row);
  return until > reported ? [{ session, reported, until }] : [];
}

/**
 * Returns when a session that is not open had ended: at its last heartbeat; or later, if the
 * operator said that its process was gone. Any clock may have been wrong, so the time that passed
 * until then is the longer of two: by the ledger's time, and by the machine's clock.
 */
function endOf(row: Row): number {
  const reported = row["reported"] as number;
  const endedBy = row["ended_by"] as number | null;
  if (endedBy === null) return reported;
  const restarted = row["restarted"] as number | null;
  const byMachine = endedBy - (row["clock"] as number);
  if (restarted !== null && byMachine <= 0) return reported; // nothing before it counts
  const since = restarted ?? reported;
  const passed = Math.max(byMachine, endedBy + (row["lead"] as number | null ?? 0) - since);
  return passed < SHORTEST_GAP_MS && restarted === null ? reported : since + passed;
}
