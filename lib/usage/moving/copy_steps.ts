/** The steps of a copy, and the parts of each. Every part is read again until it is recorded. */

import { clientDaysOf } from "../record/additions.ts";
import type { CopyPart } from "../record/copies.ts";
import { keyOf, MAX_PART_ROWS, type Session, USAGE_KEY, type UsageRow } from "../record/records.ts";
import { type ClosedRecord, intentsOf, type OwnRecord } from "./old_doubts.ts";
import type { Key, OldRecord } from "./old_record.ts";

/** A part of a step, and the key of the last record in it; left out if the step ends with it. */
interface StepPart {
  readonly part: CopyPart;
  readonly last: Key | undefined;
}

export interface Step {
  readonly name: string;
  /** Returns the part after a key. The key is empty at first. */
  readonly read: (after: Key) => Promise<StepPart>;
}

/** The position of a copy before its first part. */
export const FIRST_STEP = JSON.stringify(["intents"]);

/**
 * Returns the next part of a copy, and the position after it; `undefined` after the last one.
 *
 * @param position JSON: the name of a step, and a key in it, which is left out at first.
 */
export async function nextPart(
  steps: readonly Step[],
  position: string,
): Promise<{ part: CopyPart; to: string } | undefined> {
  const [name, ...after]: [string, ...Key] = JSON.parse(position);
  const index = steps.findIndex((step) => step.name === name);
  const step = steps[index];
  if (step === undefined) return undefined;
  const { part, last } = await step.read(after);
  const to = last === undefined ? [steps[index + 1]?.name ?? "end"] : [step.name, ...last];
  return { part, to: JSON.stringify(to) };
}

/** Returns the steps of a copy, in their order. */
export async function stepsOf(
  record: OldRecord,
  old: ClosedRecord,
  own: OwnRecord,
): Promise<Step[]> {
  // Here they have ended, and the timelines of their database mean nothing.
  const sessions = old.sessions.map((session): Session => (
    { ...session, timeline: "", ended: session.ended ?? "lapsed" }
  ));
  return [
    listed("intents", intentsOf(old, own), (intents) => ({ intents })),
    listed("holds", await record.holds(), (holds) => ({ holds })),
    listed("sessions", sessions, (sessions) => ({ sessions })),
    {
      name: "rows",
      async read(after) {
        const rows = await record.rowsAfter(after);
        // Schema 9 has no days.
        const days = record.hasDays ? [] : clientDaysOf(rows);
        const keys = rows.map((row) => USAGE_KEY.map((column) => row[column]));
        return { part: { rows: rows.toSorted(byKey), days }, last: lastIn(keys) };
      },
    },
    {
      name: "days",
      async read(after) {
        const days = record.hasDays ? await record.daysAfter(after) : [];
        const keys = days.map(({ day, route, client }) => [day, route, client]);
        return { part: { days }, last: lastIn(keys) };
      },
    },
  ];
}

/** Returns a step with records that are in memory. */
function listed<Item extends { readonly id: string }>(
  name: string,
  items: readonly Item[],
  partOf: (items: readonly Item[]) => CopyPart,
): Step {
  const sorted = items.toSorted((a, b) => a.id < b.id ? -1 : 1);
  return {
    name,
    read([after = ""]) {
      const part = sorted.filter(({ id }) => id > String(after)).slice(0, MAX_PART_ROWS);
      return Promise.resolve({ part: partOf(part), last: lastIn(part.map(({ id }) => [id])) });
    },
  };
}

/** Returns the last of the keys in a part, unless the part is the last one of its step. */
function lastIn(keys: readonly Key[]): Key | undefined {
  return keys.length < MAX_PART_ROWS ? undefined : keys.at(-1);
}

/** Sorts rows as servers do, so that two transactions that add the same ones cannot deadlock. */
function byKey(a: UsageRow, b: UsageRow): number {
  const dayAndKey = (row: UsageRow) => `${row.day}\0${keyOf(row)}`;
  return dayAndKey(a) < dayAndKey(b) ? -1 : 1;
}
