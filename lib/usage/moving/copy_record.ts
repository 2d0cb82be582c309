/**
 * Copying an older record into one that is in use.
 *
 * 1. The copy begins in the record in use, so that it knows the copy's id.
 * 2. The older record is closed under that id. From then on, what is copied does not change, and a
 *    command that is repeated, or run twice at once, finds the same copy.
 * 3. Copies are made one after another: while another one is under way, this one is refused. So is a
 *    record that has a session in common with one that was copied before.
 * 4. Intents, holds, sessions, rows and days follow, a few at a time. Each part is one transaction
 *    that also moves the copy's position. Intents come first: they have every doubt that a session
 *    could hide.
 * 5. Once all are there, one transaction moves the start of the record.
 */

import { RefusedError } from "../../errors/refused_error.ts";
import { DAY_MS, dayOf, formatInstant } from "../../http/timestamp.ts";
import { quoted } from "../../input/printable.ts";
import { type Copy, FIRST } from "../record/copies.ts";
import type { Ledger } from "../record/ledger.ts";
import { isRunning, type Session, SHORTEST_GAP_MS } from "../record/records.ts";
import { textOf } from "../output/phrase.ts";
import { sessionText } from "../output/wording.ts";
import { FIRST_STEP, nextPart, stepsOf } from "./copy_steps.ts";
import { type OwnRecord, routesOf } from "./old_doubts.ts";
import { type Closing, closingIn, type OldRecord, type OldState } from "./old_record.ts";

interface CopyOptions {
  /** The name of the record in use, for people. */
  readonly into: string;
  /** Called with the rows that were copied so far, and the rows in all. */
  readonly onProgress?: (rows: number, all: number) => void;
}

export interface CopyResult {
  /** Whether the record had been copied before, so that nothing was to do. */
  readonly isRepeated: boolean;
  /** The sessions of the older record. */
  readonly sessions: number;
  /** The time of its last heartbeat, in milliseconds since the epoch. */
  readonly reported: number;
  /** The start of the record in use, now. */
  readonly started: number | undefined;
}

/**
 * Copies a record, once, and closes it first. Continues a copy that was interrupted.
 *
 * @throws {RefusedError} If it was copied into another record; or if nothing was done, because a
 *   process is counting in it, a clock is wrong, or the two records do not belong together.
 */
export async function copyRecord(
  record: OldRecord,
  ledger: Ledger,
  { into, onProgress = () => {} }: CopyOptions,
): Promise<CopyResult> {
  const { old, copy } = await close(record, ledger, into);
  const isRepeated = copy.completed !== undefined;
  if (!isRepeated) await copyParts(copy, old, record, ledger, onProgress);
  return {
    isRepeated,
    sessions: old.sessions.length,
    reported: Math.max(...old.sessions.map(({ reported }) => reported)),
    started: await ledger.started(),
  };
}

type ClosedState = OldState & { readonly closing: Closing };

/** Closes the record, unless it is closed, and returns the copy for which it was. */
async function close(
  record: OldRecord,
  ledger: Ledger,
  into: string,
): Promise<{ old: ClosedState; copy: Copy }> {
  // Read first, because another command may close the record and copy its sessions meanwhile.
  const own = await ledger.sessions();
  const isBusy = await ledger.copies.isAnyUnderWay();
  const state = await record.read();
  if (state.closing === undefined) {
    if (isBusy) throw anotherIsCopied();
    await requireCopyable(state, record, { ledger, own });
    const id = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
    await ledger.copies.begin(id);
    await record.close(id, into);
    if ((await record.read()).closing?.id !== id) await ledger.copies.forget(id);
  }
  const old = await record.read();
  const { closing } = old;
  if (closing === undefined) { // a process came back meanwhile
    requireSilence(old, record);
    throw new RefusedError(`${record.name} changed meanwhile: run the command again`);
  }
  const copy = await ledger.copies.find(closing.id);
  if (copy !== undefined) {
    if (copy.position === FIRST) requireOthers(old, record, own);
    if (copy.completed === undefined) await requireSameTime(old, record, ledger);
    return { old: { ...old, closing }, copy };
  }
  throw wasCopied(record.name, closing);
}

function wasCopied(name: string, { into, at }: Closing): RefusedError {
  return new RefusedError(
    `${name} was copied into ${quoted(into)} at ${formatInstant(at)}; ` +
      "expected a record that was not copied into another one",
  );
}

/** @throws {RefusedError} If a record cannot be copied into another one. */
async function requireCopyable(
  old: OldState,
  record: OldRecord,
  { ledger, own }: { readonly ledger: Ledger; readonly own: readonly Session[] },
): Promise<void> {
  const { sessions } = old;
  const { name } = record;
  if (sessions.length === 0) {
    throw new RefusedError(`${name} has no sessions, so there is nothing to copy`);
  }
  const closing = closingIn(own);
  if (closing !== undefined) throw wasCopied("the record in use", closing);
  requireOthers(old, record, own);
  requireSilence(old, record);
  await requireSameTime(old, record, ledger);
  const [theirs, ours] = [routesOf(sessions), routesOf(own)];
  if (own.length > 0 && !theirs.some((route) => ours.includes(route))) {
    throw new RefusedError(
      `${name} shares no route with the record in use: it has ` +
        `${listText(theirs)}, and the record in use has ${listText(ours)}`,
    );
  }
}

/** @throws {RefusedError} If two records have a session in common. */
function requireOthers(
  { sessions }: OldState,
  { name }: OldRecord,
  own: readonly Session[],
): void {
  const known = new Set(own.map(({ id }) => id));
  const found = sessions.find(({ id }) => known.has(id));
  if (found === undefined) return;
  throw new RefusedError(
    `${name} is the record in use itself, or one is a copy of the other: both have ` +
      `${textOf(sessionText(found))}; expected records of different processes`,
  );
}

function anotherIsCopied(): RefusedError {
  return new RefusedError(
    "another record is being copied into this one, or that was interrupted: complete it first, " +
      "by the same command",
  );
}

/**
 * Checks that the instants of a record mean in another one what they meant.
 *
 * @throws {RefusedError} If the clocks of their databases differ, or the record is ahead of them.
 */
async function requireSameTime(
  { sessions, time: { databaseTime } }: OldState,
  { name }: OldRecord,
  ledger: Ledger,
): Promise<void> {
  const here = await ledger.time();
  if (Math.abs(databaseTime - here.databaseTime) >= SHORTEST_GAP_MS) {
    const [there, inUse] = [formatInstant(databaseTime), formatInstant(here.databaseTime)];
    throw new RefusedError(
      `it is ${there} in the database of ${name}, but ${inUse} in that of the record in use: ` +
        "correct the clock that is wrong",
    );
  }
  const last = Math.max(...sessions.map(({ reported }) => reported));
  if (last <= here.databaseTime) return;
  throw new RefusedError(
    `the last heartbeat in ${name} is dated ${formatInstant(last)}, and now it is only ` +
      `${formatInstant(here.databaseTime)}: a clock was ahead. Wait until then`,
  );
}

/** @throws {RefusedError} If a process may be counting in a record. */
function requireSilence({ sessions, time }: OldState, { name }: OldRecord): void {
  const running = sessions.find((session) => isRunning(session, time.now));
  if (running !== undefined) {
    const reported = formatInstant(running.reported);
    throw new RefusedError(
      `${
        textOf(sessionText(running))
      } sent a heartbeat to ${name} at ${reported}, less than a minute ago: ` +
        "stop it, or wait for a minute if it was killed",
    );
  }
}

function listText(routes: readonly string[]): string {
  return routes.map(quoted).join(", ") || "none";
}

/** Copies everything, from where the copy is. */
async function copyParts(
  begun: Copy,
  old: ClosedState,
  record: OldRecord,
  ledger: Ledger,
  onProgress: (rows: number, all: number) => void,
): Promise<void> {
  if (begun.position === FIRST) await ledger.copies.claim(begun, FIRST_STEP);
  let copy = await ledger.copies.find(begun.id);
  if (copy?.position === FIRST) throw anotherIsCopied();
  const closed = { ...old, started: await record.started() };
  const steps = await stepsOf(record, closed, await readOwn(ledger, old));
  const all = await record.count();
  let rows = 0;
  while (copy !== undefined && copy.completed === undefined) {
    const next = await nextPart(steps, copy.position);
    if (next === undefined) {
      await complete(copy, old, record, ledger);
    } else if (await ledger.copies.add(copy, next.part, next.to)) {
      copy = { ...copy, position: next.to };
      const { length } = next.part.rows ?? [];
      rows += length;
      if (length > 0) onProgress(rows, all);
      continue;
    }
    copy = await ledger.copies.find(copy.id); // which another command may have moved
  }
}

async function complete(
  copy: Copy,
  old: ClosedState,
  record: OldRecord,
  ledger: Ledger,
): Promise<void> {
  const own = await readOwn(ledger, old);
  const { sessions } = old;
  const started = startOf({ sessions, started: await record.started() }, own);
  await ledger.copies.complete(copy, { found: own.started, started, now: own.now });
}

/**
 * Reads the record in use, without what was copied. Its start is read first: if it moves meanwhile, no
 * copy is completed.
 */
async function readOwn(ledger: Ledger, old: ClosedState): Promise<OwnRecord> {
  const started = await ledger.started();
  const copied = new Set(old.sessions.map(({ id }) => id));
  const sessions = (await ledger.sessions()).filter(({ id }) => !copied.has(id));
  const { now } = await ledger.time();
  return { sessions, started, now };
}

type Beginning = Pick<OwnRecord, "sessions" | "started">;

/**
 * Returns the start of a record that consists of two: the first session of both; or, where one of
 * them was started again, or lacks its oldest days, that instant.
 */
export function startOf(old: Beginning, own: OwnRecord): number {
  const both = [old, ...own.started === undefined ? [] : [own]];
  const later = both.filter((each) => !startsWithSession(each));
  const startsOf = (records: readonly Beginning[]) =>
    records.map(({ started = Infinity }) => started);
  const start = later.length > 0 ? Math.max(...startsOf(later)) : Math.min(...startsOf(both));
  // Servers may have deleted days while they were copied.
  const days = Math.min(...own.sessions.map(({ retainDays }) => retainDays));
  const retained = days === Infinity ? start : Date.parse(dayOf(own.now - days * DAY_MS));
  return Math.max(start, retained);
}

/** Servers that delete days move the start to a midnight, and some begin just then. */
function startsWithSession({ sessions, started = Infinity }: Beginning): boolean {
  const first = Math.min(...sessions.map(({ began }) => began));
  return started % DAY_MS !== 0 && started <= first && first - started < SHORTEST_GAP_MS;
}
