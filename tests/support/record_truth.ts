/** What is wrong with a record, or with a verdict on it, by all that the world knows. */

import { lagOf, type Session } from "../../lib/usage/record/records.ts";
import type { Interval } from "../../lib/lifecycle/instant.ts";
import type { ReadSession } from "../../lib/usage/verdict/evidence.ts";
import type { Gap } from "../../lib/usage/verdict/gaps.ts";
import type { Cause, RouteVerdict } from "../../lib/usage/verdict/verdict.ts";
import {
  type Answer,
  type Call,
  DAY,
  MINUTE,
  type Process,
  SECOND,
  type World,
  type WorldRecord,
} from "./record_world.ts";

/** How long before its period a verdict names processes that fell silent. */
const SILENT_BEFORE = 30 * DAY;

/** How late a statement may be done. */
const LATE = 3 * MINUTE + SECOND;

/** What was found in a record, or in verdicts. */
export class Findings {
  /** What is wrong in the records. */
  readonly record: string[] = [];
  /** What is wrong with verdicts. */
  readonly verdict: string[] = [];
  /** The verdicts on a route. */
  verdicts = 0;
  /** Those that let the route be deleted. */
  clear = 0;
  /** Those of them that name a gap. */
  naming = 0;
  /** Those of them where a call is not on record, and in a gap that they name. */
  excused = 0;
  /** Those of them where a call is not on record which no record can know of. */
  beyond = 0;
  /** The calls that are on record twice, after a restore. */
  twice = 0;
  /** The verdicts on routes that nobody called in the period. */
  quiet = 0;
  /** Those of them that are unknown. */
  unknown = 0;
  /** The same, by cause. */
  readonly causes: Record<string, number> = {};

  /**
   * Adds what is wrong in a record.
   *
   * @param isCalm Whether nothing has happened to it for a while.
   */
  async checkRecord(record: WorldRecord, isCalm = true): Promise<void> {
    const { world, ledger, restores } = record;
    if (lagOf(await ledger.time()) >= MINUTE) { // until a process writes to it, which starts it again
      const isWritten = world.alive.some((process) => process.record === record);
      if (isCalm && isWritten) this.record.push("its time stays ahead of the clock");
      return;
    }
    const sessions = await ledger.sessions();
    const started = await ledger.started() ?? -Infinity;
    const answered = new Map<string, number>();
    for (const { client, route, isCounted } of world.calls) {
      if (isCounted) add(answered, `${client} ${route}`, 1);
    }
    const recorded = new Map<string, number>();
    for await (const { client, calls, route } of ledger.usage("")) {
      add(recorded, `${client} ${route}`, calls);
    }
    const twice = [...recorded].filter(([key, calls]) => calls > (answered.get(key) ?? 0));
    const unanswered = twice.filter(([key]) => !answered.has(key));
    if (unanswered.length > 0) this.record.push(`on record, and not answered: ${unanswered}`);
    if (restores > 0) this.twice = Math.max(this.twice, twice.length);
    else if (twice.length > 0) this.record.push(`on record more than once: ${twice}`);
    for (const call of world.calls.filter(({ process }) => process.record === record)) {
      const { client, route, isCounted } = call;
      if (!isCounted || recorded.has(`${client} ${route}`)) continue;
      if (call.answered < started) continue; // it may be deleted
      const own = sessionsOf(call, sessions);
      if (isVouchedFor(call, own)) this.record.push(`missing: ${describe(call, own)}`);
    }
    for (const process of world.processes.filter((process) => process.record === record)) {
      const own = sessions.filter(({ process: { pid } }) => pid === process.number);
      const losses = own.filter(({ lost }) => lost !== undefined).length;
      const what = `process ${process.number}, which lost ${restores} times at most,`;
      if (losses > restores) this.record.push(`${what} is on record with ${losses} losses`);
      if (process.losses > restores) this.record.push(`${what} warns of ${process.losses}`);
      const open = own.filter(({ ended }) => ended === undefined).length;
      if (open > 1) this.record.push(`${what} has ${open} open sessions`);
    }
  }

  /** Adds what is wrong with the answer of a gate. */
  checkAnswer(world: World, { report, records }: Answer): void {
    const { verdicts, from, asOf, days } = report;
    const start = Date.parse(from);
    const sessions = records.flatMap((record) => record.sessions);
    const callers = new Set(world.calls.map(({ client, route }) => `${client} ${route}`));
    for (const verdict of verdicts) {
      this.verdicts++;
      this.#noteQuiet(world, verdict, start);
      this.#checkCauses(world, verdict, { days, start, asOf });
      if (verdict.state === "called") this.#checkCalled(callers, verdict);
      if (verdict.state !== "clear" && verdict.state !== "announced") continue;
      this.clear++;
      this.naming += Number(verdict.gaps.length > 0);
      this.#checkClear(world, verdict, { start, asOf, sessions });
      this.#checkNames(world, verdict, sessions);
      this.#checkLeftOut(world, verdict, { sessions, asOf });
      this.#checkOutages(world, verdict, { start, asOf });
    }
  }

  #checkCalled(callers: ReadonlySet<string>, { route, clients, due }: RouteVerdict): void {
    for (const { client } of [...clients, ...due]) {
      if (!callers.has(`${client} ${route}`)) this.verdict.push(`${client} never called ${route}`);
    }
  }

  #checkClear(
    { calls }: World,
    { route, gaps, state }: RouteVerdict,
    { start, asOf, sessions }: { start: number; asOf: number; sessions: readonly Session[] },
  ): void {
    let [isExcused, isBeyond] = [false, false];
    for (const call of calls) {
      const { answered, process } = call;
      if (call.route !== route || answered < start || answered >= asOf) continue;
      const own = sessionsOf(call, sessions);
      if (gaps.some((gap) => isIn(call, gap))) isExcused = true;
      else if (isBeyondRecord(call, own, start)) isBeyond = true;
      else {
        const seen = gaps.filter((gap) => gap.process?.pid === process.number)
          .map(({ kind, start, end }) => [kind, start, end]);
        this.verdict.push(
          `${state} from ${start} to ${asOf}: ${describe(call, own)}, gaps ${JSON.stringify(seen)}`,
        );
      }
    }
    this.excused += Number(isExcused);
    this.beyond += Number(isBeyond);
  }

  /** No process that reports leaves a route out that is clear. */
  #checkLeftOut(
    { processes }: World,
    { route }: RouteVerdict,
    { sessions, asOf }: { sessions: readonly ReadSession[]; asOf: number },
  ): void {
    for (const { isOver, policies, began, process: { pid } } of sessions) {
      if (isOver || Object.keys(policies).length === 0 || asOf - began < MINUTE) continue;
      const mounted = processes[pid]?.mounted.get(route) ?? Infinity;
      if (mounted >= asOf) this.verdict.push(`${pid} leaves ${route} out, which is clear`);
    }
  }

  /** No process that reports is named as one that fell silent, and none as one that it is not. */
  #checkNames(
    { processes }: World,
    { route, gaps }: RouteVerdict,
    sessions: readonly ReadSession[],
  ): void {
    for (const { kind, process: { pid } = { pid: -1 } } of gaps) {
      const reports = sessions.some(({ process, isOver }) => process.pid === pid && !isOver);
      if (kind === "silent" && reports) this.verdict.push(`${pid} is named as silent`);
      const countsAll = processes[pid]?.options.mounts === undefined;
      if (kind === "not counted" && countsAll) this.verdict.push(`${pid} counts ${route}`);
    }
  }

  /** What is missing is a thirtieth or more of the days, or less; on demand, nobody has to run. */
  #checkCauses(
    { processes }: World,
    { route, gaps, causes }: RouteVerdict,
    { days, start, asOf }: { days: number; start: number; asOf: number },
  ): void {
    const isSeen = (what: Cause["cause"]) => causes.some(({ cause }) => cause === what);
    const missing = missingIn(gaps, start, asOf);
    if (isSeen("gaps") !== (missing >= days * 48 * MINUTE)) {
      this.verdict.push(`${missing / MINUTE} minutes of ${days} days are missing of ${route}`);
    }
    const onDemand = processes.every(({ options }) => options.onDemand);
    if (onDemand && (isSeen("no process") || gaps.some(({ kind }) => kind === "stop"))) {
      this.verdict.push(`on demand, ${route} is stopped`);
    }
  }

  /**
   * A time without a process has to be named if it is long: the last report may be of a time that was
   * read late.
   */
  #checkOutages(
    world: World,
    { gaps, route }: RouteVerdict,
    { start, asOf }: { start: number; asOf: number },
  ): void {
    const isPlain = world.records.every(({ jumps }) => jumps === 0) &&
      world.processes.every(({ options }) => !options.onDemand && options.mounts === undefined);
    if (!isPlain) return;
    const lives = world.processes.flatMap(livesOf).sort((a, b) => a.start - b.start);
    let reach = lives[0]?.start ?? Infinity;
    for (const { start: next, end } of [...lives, { start: asOf, end: asOf }]) {
      const until = Math.min(next, asOf);
      const isNamed = gaps.some((gap) =>
        gap.start <= reach + LATE && (gap.end ?? -Infinity) >= until - 1
      );
      if (reach > start && until - reach > LATE + 2 * MINUTE && !isNamed) {
        this.verdict.push(`nobody served ${route} from ${reach} to ${until}, which is not named`);
      }
      reach = Math.max(reach, end);
    }
  }

  #noteQuiet(world: World, { route, state, causes }: RouteVerdict, start: number): void {
    const isCalled = world.calls
      .some((call) => call.route === route && call.answered >= start - DAY);
    if (isCalled || state === "called") return;
    this.quiet++;
    if (state !== "unknown") return;
    this.unknown++;
    for (const { cause } of causes) this.causes[cause] = (this.causes[cause] ?? 0) + 1;
  }
}

/**
 * Returns when a process lived. A sleep does not show where it was also suspended: nobody knows for
 * which of both an answer of the ledger waited.
 */
function livesOf({ began, ended, sleeps, freezes }: Process): Interval[] {
  const shown = sleeps.filter(({ start, end }) =>
    freezes.filter((each) => each.start < end + MINUTE && each.end > start - MINUTE).length === 1
  );
  const starts = [began, ...shown.map(({ end }) => end)];
  const ends = [...shown.map(({ start }) => start), ended];
  return starts.map((start, at) => ({ start, end: Math.min(ends[at] as number, ended) }))
    .filter(({ start, end }) => start < end);
}

/** Returns how much of a period is missing, in milliseconds. */
function missingIn(gaps: readonly Gap[], start: number, end: number): number {
  const silent = gaps.filter((gap) =>
    gap.kind === "silent" && !gap.onDemand && gap.start >= start && gap.start < end
  );
  const edges = gaps.filter(({ kind, weighs }) => kind !== "silent" && weighs).flatMap((gap) => [
    { at: Math.min(Math.max(gap.start, start), end), by: 1 },
    { at: Math.min(Math.max(gap.end ?? end, start), end), by: -1 },
  ]).sort((a, b) => a.at - b.at);
  let [missing, depth, last] = [silent.length * MINUTE, 0, start];
  for (const { at, by } of edges) {
    if (depth > 0) missing += at - last;
    [depth, last] = [depth + by, at];
  }
  return missing;
}

/** Returns the sessions of the process that answered a call, the last one last. */
function sessionsOf({ process }: Call, sessions: readonly Session[]): Session[] {
  return sessions.filter(({ process: { pid } }) => pid === process.number)
    .sort((a, b) => a.began - b.began);
}

/** Returns whether a record vouches for a call that is not in it. */
function isVouchedFor({ answered, arrived }: Call, own: readonly Session[]): boolean {
  const isLost = own.some(({ lost = Infinity, began }) => lost <= answered && answered <= began);
  if (isLost) return false;
  const last = own.at(-1);
  const isStopped = last?.ended === "stopped" && arrived < last.reported;
  return isStopped || answered < Math.max(...own.map(({ reported }) => reported));
}

/** Returns whether a gap is about the process of a call, and has its time. */
function isIn({ answered, process, isCounted }: Call, gap: Gap): boolean {
  if (gap.process?.pid !== process.number) return false;
  if (gap.kind === "not counted" && isCounted) return false;
  return gap.start <= answered && answered <= (gap.end ?? Infinity);
}

/** Returns whether no record can know of a call, as DESIGN has it. */
function isBeyondRecord(call: Call, own: readonly Session[], start: number): boolean {
  const { answered, arrived, isCounted } = call;
  const last = own.at(-1);
  if (last === undefined || own.every(({ reported }) => reported < start - SILENT_BEFORE)) {
    return true; // it never registered, its registration was lost, or it is long ago
  }
  const isAfterStop = (isCounted ? arrived : answered) >= last.reported;
  if (last.ended === "stopped" && isAfterStop) return true; // it is not written
  return !isCounted && isBeforeMounting(call, own);
}

/**
 * Returns whether a process that did not count a call had registered only later, or had its first
 * minute to mount the route.
 */
function isBeforeMounting({ answered, route, process }: Call, own: readonly Session[]): boolean {
  const session = own.findLast(({ began }) => began <= answered);
  if (session === undefined) return true;
  const { began, reported, policies } = session;
  if (Object.keys(policies).length === 0) return reported - began < MINUTE;
  const mounted = process.mounted.get(route) ?? Infinity;
  return Object.hasOwn(policies, route) && mounted - began < MINUTE;
}

function describe({ client, route, answered, arrived, process }: Call, own: readonly Session[]) {
  const times = own.map(({ began, reported, ended, lost }) => [began, reported, ended, lost]);
  return `${client} called ${route}, arrived ${arrived}, answered ${answered} by ` +
    `${process.number} (${JSON.stringify(times)})`;
}

function add(sums: Map<string, number>, key: string, calls: number): void {
  sums.set(key, calls + (sums.get(key) ?? 0));
}
