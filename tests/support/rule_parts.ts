/**
 * The parts of the rule by which a verdict is clear, or names what it does not know. For each of them
 * there is a schedule and a random world that show what is wrong without it.
 */

import type { LeftOut } from "./left_out.ts";
import { DAY, HOUR, MINUTE, type Process, SECOND, type World } from "./record_world.ts";

/** A world in which a process has counted for three days. */
export interface Stage {
  readonly world: World;
  readonly keeper: Process;
  readonly pass: (time: number) => Promise<void>;
  /** Starts a process, and waits until it reports. */
  readonly start: (...options: Parameters<World["start"]>) => Promise<Process>;
}

/** A schedule. Then the gate is asked for `/a`. */
export type Schedule = (stage: Stage) => Promise<unknown>;

/** Has a process count so many calls that a heartbeat takes two parts, the last one to `/a`. */
function callOften(process: Process): void {
  for (let calls = 0; calls < 100; calls++) process.call("/b");
  process.call("/a");
}

const HEARD_LATE = { done: 100, heard: 10 * SECOND };
const UNHEARD = { done: 100, broken: 200 };
const NEVER = { broken: MINUTE };

const silent: Schedule = async ({ start, pass }) => {
  const process = await start();
  process.call("/a");
  await pass(50);
  process.kill();
  await pass(2 * MINUTE);
};

const sentAgain: Schedule = async ({ start, pass }) => {
  const process = await start();
  process.commits.push(UNHEARD);
  process.call("/a");
  await pass(20 * SECOND);
};

const begunAgain: Schedule = async ({ world, pass }) => {
  const process = world.start();
  process.cut = world.now + 3 * SECOND;
  await pass(2.5 * SECOND);
  process.call("/a");
  process.commits.push(UNHEARD);
  await pass(2 * MINUTE);
};

const mountedLate: Schedule = async ({ world, pass }) => {
  const process = world.start({ mounts: ["/a", "/b"], serves: ["/a"] });
  process.mount("/b");
  await pass(93 * SECOND);
  process.call("/a");
  await pass(2 * SECOND);
  process.mount("/a");
  await pass(20 * SECOND);
};

const asleep: Schedule = async ({ start, pass }) => {
  const process = await start();
  process.sleep(2 * MINUTE);
  await pass(2 * MINUTE + 20 * SECOND);
};

const missing: Schedule = async ({ start, keeper, pass }) => {
  const process = await start();
  process.kill();
  await pass(2 * MINUTE);
  keeper.sleep(47.5 * MINUTE);
  await pass(48 * MINUTE);
};

const restored: Schedule = async ({ world: { records: [record] }, start, pass }) => {
  const process = await start();
  await record?.save();
  process.call("/a");
  await pass(2 * SECOND);
  await record?.restore();
  await pass(20 * SECOND);
};

interface Part extends LeftOut {
  readonly part: string;
  readonly schedule: Schedule;
  /** What the gate says. */
  readonly outcome: string;
  /** What is wrong without the part. */
  readonly wrong: "record" | "verdict" | "both";
}

export const PARTS: readonly Part[] = [
  {
    part: "a process that fell silent is named",
    file: "verdict/gaps.ts",
    code: "if (ended !== undefined || !isOver || !isSubstantial(session)) return [];",
    without: "return [];",
    schedule: silent,
    outcome: "clear, silent",
    wrong: "verdict",
  },
  {
    part: "one that fell silent before the period is named, too",
    file: "verdict/gaps.ts",
    code: "SILENT_BEFORE_MS = 30 * DAY_MS",
    without: "SILENT_BEFORE_MS = 0 * DAY_MS",
    async schedule({ world, start, pass }) {
      const process = await start();
      process.cut = Infinity;
      await world.skip(3 * DAY);
      process.call("/a");
      await pass(2 * MINUTE);
    },
    outcome: "clear, silent",
    wrong: "verdict",
  },
  {
    part: "the time is read before the counts are taken",
    file: "record/recorder.ts",
    code: `const reading = { ...await ledger.time(), asked };
    const fault = this.#compareClocks(reading, askedHere); // at once: writing can take long
    this.#takeCounts();`,
    without: `this.#takeCounts();
    const reading = { ...await ledger.time(), asked };
    const fault = this.#compareClocks(reading, askedHere);`,
    async schedule({ start, pass }) {
      const process = await start();
      process.fates.push({ done: SECOND, heard: 0 });
      process.call("/b");
      await pass(600);
      process.call("/a");
      await pass(650);
      process.kill();
      await pass(2 * MINUTE);
    },
    outcome: "called",
    wrong: "both",
  },
  {
    part: "a heartbeat reports that time, not that of its arrival",
    file: "record/ledger.ts",
    code: "THEN ${time} ELSE reported END`;",
    without: "THEN ${this.#now} ELSE reported END`;",
    async schedule({ start, pass }) {
      const process = await start();
      process.commits.push({ done: SECOND, heard: 0 });
      process.call("/b");
      await pass(700);
      process.call("/a");
      await pass(600);
      process.kill();
      await pass(2 * MINUTE);
    },
    outcome: "clear, silent",
    wrong: "both",
  },
  {
    part: "only the last part of a heartbeat reports",
    file: "record/recorder.ts",
    code: "const isLast = this.#backlog.isEmpty;",
    without: "const isLast = true;",
    async schedule({ start, pass }) {
      const process = await start();
      callOften(process);
      process.commits.push({ done: 100, heard: 50 }, NEVER);
      await pass(SECOND);
      process.kill();
      await pass(2 * MINUTE);
    },
    outcome: "clear, silent",
    wrong: "both",
  },
  {
    part: "so it is with that which registers the process",
    file: "record/ledger.ts",
    code: "THEN ${beforeNumber} ELSE earlier END",
    without: "THEN ${beforeNumber} ELSE now END",
    async schedule({ world, pass }) {
      const process = world.start();
      process.cut = world.now + 3 * SECOND;
      await pass(2.5 * SECOND);
      callOften(process);
      process.commits.push({ done: 100, heard: 50 }, NEVER);
      await pass(6 * SECOND);
      process.kill();
      await pass(2 * MINUTE);
    },
    outcome: "clear, silent",
    wrong: "both",
  },
  {
    part: "a process does not stop while a call is unanswered",
    file: "record/recorder.ts",
    code: "this.#unanswered === 0 && this.meter.isEmpty",
    without: "this.meter.isEmpty",
    async schedule({ start, pass }) {
      const process = await start();
      process.call("/a", 3 * SECOND);
      await pass(100);
      process.commits.push(HEARD_LATE);
      process.stop();
      await pass(4 * SECOND);
      process.kill();
      await pass(2 * MINUTE);
    },
    outcome: "clear, silent",
    wrong: "both",
  },
  {
    part: "each attempt to begin a session has the same id",
    file: "record/recorder.ts",
    code: "const { part, id, policies, start, isClockBehind, at } = sent;",
    without:
      "const { part, policies, start, isClockBehind, at } = sent; const id = crypto.randomUUID();",
    schedule: begunAgain,
    outcome: "called",
    wrong: "record",
  },
  {
    part: "a session begins once",
    file: "record/ledger.ts",
    code: "ON CONFLICT (id) DO NOTHING RETURNING",
    without: "ON CONFLICT (id) DO UPDATE SET written = excluded.written RETURNING",
    schedule: begunAgain,
    outcome: "called",
    wrong: "record",
  },
  {
    part: "a part that has landed is not sent again",
    file: "record/recorder.ts",
    code: "if (found?.sequence !== session.sequence + 1) return",
    without: "return",
    schedule: sentAgain,
    outcome: "called",
    wrong: "record",
  },
  {
    part: "a heartbeat checks that the ledger has the one before it",
    file: "record/ledger.ts",
    code: "WHERE id = $1 AND sequence = $2 AND ended IS NULL",
    without: "WHERE id = $1 AND sequence <> -$2 AND ended IS NULL",
    schedule: restored,
    outcome: "clear, lost",
    wrong: "both",
  },
  {
    part: "a loss is named",
    file: "record/ledger.ts",
    code: "WHERE id = ${text(continued.id)} AND sequence = ${number(continued.sequence)}",
    without:
      "WHERE CAST(${text(continued.id)} AS text) IS NOT NULL OR ${number(continued.sequence)} > 0",
    schedule: restored,
    outcome: "clear, lost",
    wrong: "both",
  },
  {
    part: "a loss is noticed by a process that mounts a route",
    file: "record/recorder.ts",
    code: "continued: this.#session,",
    without: "continued: part.policies && this.#session,",
    async schedule({ world: { records: [record] }, start, pass }) {
      const process = await start({ mounts: ["/a", "/b"] });
      process.mount("/a");
      await pass(2 * MINUTE);
      await record?.save();
      process.call("/a");
      await pass(2 * SECOND);
      await record?.restore();
      process.mount("/b");
      await pass(20 * SECOND);
    },
    outcome: "clear, lost",
    wrong: "both",
  },
  {
    part: "a loss is noticed by a process that has stopped",
    file: "record/recorder.ts",
    code: "continued: this.#session,",
    without: "continued: this.#session?.isStopped ? undefined : this.#session,",
    async schedule({ world: { records: [record] }, start, pass }) {
      const process = await start();
      await record?.save();
      process.call("/a");
      process.stop({ isListening: true, lingers: MINUTE });
      await pass(2 * SECOND);
      await record?.restore();
      process.call("/b");
      await pass(2 * MINUTE);
    },
    outcome: "clear, lost",
    wrong: "both",
  },
  {
    part: "a loss is named from the last report of the process that lost it",
    file: "record/ledger.ts",
    code: "(SELECT max(reported) FROM media_head_session WHERE opened = ${openedText})",
    without:
      "(SELECT max(reported) FROM media_head_session WHERE opened >= '' OR opened = ${openedText})",
    async schedule({ world, start, pass }) {
      const [record] = world.records;
      const process = await start();
      process.cut = world.now + 30 * SECOND;
      await pass(10 * SECOND);
      process.call("/a");
      await pass(10 * SECOND);
      await record?.save();
      await pass(20 * SECOND);
      await record?.restore();
      await pass(20 * SECOND);
    },
    outcome: "clear, lost",
    wrong: "both",
  },
  {
    part: "or from its start, though its machine has slept since",
    file: "record/recorder.ts",
    code:
      "Math.min(\n      this.#start,\n      Math.floor(reading.now - (now - this.#opened)),\n    )",
    without: "Math.floor(reading.now - (now - this.#opened))",
    async schedule({ world: { records: [record] }, start, pass }) {
      await record?.save();
      const process = await start();
      process.call("/a");
      await pass(5 * SECOND);
      process.sleep(5 * MINUTE);
      await pass(6 * MINUTE);
      await record?.restore();
      await pass(20 * SECOND);
    },
    outcome: "clear, lost",
    wrong: "both",
  },
  {
    part: "a session that is continued is over",
    file: "record/ledger.ts",
    code: "      ending,\n",
    without: "",
    schedule: asleep,
    outcome: "clear",
    wrong: "both",
  },
  {
    part: "so is one that began after the counts were taken",
    file: "record/ledger.ts",
    code: "id <> $2 AND ended IS NULL`,\n      values: [opened, id],",
    without: "id <> $2 AND began <= $3 AND ended IS NULL`,\n      values: [opened, id, before],",
    async schedule({ world: { records: [record] }, start, pass }) {
      const process = await start();
      await record?.save();
      await pass(2 * MINUTE);
      await record?.restore();
      callOften(process);
      await pass(5 * MINUTE);
    },
    outcome: "called",
    wrong: "both",
  },
  {
    part: "a machine that slept has stopped",
    file: "record/ledger.ts",
    code: '${isLast ? hasLived : ""}',
    without: '${isLast ? "AND CAST($6 AS bigint) > 0" : ""}',
    async schedule({ keeper, pass }) {
      keeper.sleep(10 * MINUTE);
      await pass(11 * MINUTE);
    },
    outcome: "clear, stop",
    wrong: "verdict",
  },
  {
    part: "a time without a process is named",
    file: "verdict/gaps.ts",
    code: "    ...stops,\n",
    without: "",
    async schedule({ keeper, start, pass }) {
      keeper.stop();
      await pass(5 * MINUTE);
      await start();
    },
    outcome: "clear, stop",
    wrong: "verdict",
  },
  {
    part: "a thirtieth may be missing",
    file: "verdict/gaps.ts",
    code: "LIMIT = 1 / 30",
    without: "LIMIT = 1 / 29",
    schedule: missing,
    outcome: "unknown, gaps",
    wrong: "verdict",
  },
  {
    part: "of which a process that fell silent takes a minute",
    file: "verdict/gaps.ts",
    code: "missing += SHORTEST_GAP_MS",
    without: "missing += 0",
    schedule: missing,
    outcome: "unknown, gaps",
    wrong: "verdict",
  },
  {
    part: "and what two gaps have in common counts once",
    file: "verdict/gaps.ts",
    code: "reach = Math.max(reach, until);",
    without: "",
    async schedule({ world, start, pass }) {
      const [record] = world.records;
      await start();
      await record?.save();
      await pass(10 * SECOND);
      await world.skip(30 * MINUTE);
      await record?.restore();
      await pass(20 * SECOND);
    },
    outcome: "clear, lost",
    wrong: "verdict",
  },
  {
    part: "a process that counts other routes is named",
    file: "verdict/gaps.ts",
    code: "if (Object.hasOwn(policies, route) || !isSubstantial(session)) return [];",
    without: "return [];",
    schedule: mountedLate,
    outcome: "clear, not counted",
    wrong: "verdict",
  },
  {
    part: "until its next session begins",
    file: "verdict/gaps.ts",
    code: "continued ?? (session.isOver",
    without: "(session.isOver",
    schedule: mountedLate,
    outcome: "clear, not counted",
    wrong: "verdict",
  },
  {
    part: "a route that is mounted late is not in the session from its beginning",
    file: "record/recorder.ts",
    code: "at - session.began >= MOUNTING_MS",
    without: "false",
    schedule: mountedLate,
    outcome: "clear, not counted",
    wrong: "verdict",
  },
  {
    part: "nothing is clear while a process leaves a route out",
    file: "verdict/verdict.ts",
    code: "asOf - session.began >= MOUNTING_MS",
    without: "false",
    async schedule({ start, pass }) {
      const process = await start({ mounts: ["/a", "/b"] });
      process.mount("/b");
      await pass(2 * MINUTE);
    },
    outcome: "unknown, not counted",
    wrong: "verdict",
  },
  {
    part: "the verdict is as of the last heartbeats",
    file: "verdict/evidence.ts",
    code: "reports.length > 0\n    ? Math.min(...reports)",
    without: "reports.length < 0\n    ? Math.min(...reports)",
    async schedule({ keeper, pass }) {
      keeper.call("/a");
      await pass(20);
    },
    outcome: "clear",
    wrong: "verdict",
  },
  {
    part: "what is ahead of the clock is brought back",
    file: "record/ledger.ts",
    code: '["began", "reported", "written", "lost"].map(notAfter)',
    without: '["began"].map(notAfter)',
    async schedule({ world: { records }, pass }) {
      for (const record of records) await record.jump(-HOUR);
      await pass(20 * SECOND);
    },
    outcome: "unknown, too young",
    wrong: "both",
  },
  {
    part: "on demand, a time without a process is no stop",
    file: "verdict/gaps.ts",
    code: "last.onDemand || end - last.reported",
    without: "end - last.reported",
    async schedule({ keeper, start, pass }) {
      const process = await start({ onDemand: true });
      keeper.stop();
      await pass(MINUTE);
      process.stop();
      await pass(5 * MINUTE);
      await start({ onDemand: true });
    },
    outcome: "clear",
    wrong: "verdict",
  },
  {
    part: "on demand, no process has to run",
    file: "verdict/verdict.ts",
    code: "!isCounted && !last.onDemand",
    without: "!isCounted",
    async schedule({ keeper, start, pass }) {
      const process = await start({ onDemand: true });
      keeper.stop();
      await pass(MINUTE);
      process.stop();
      await pass(5 * MINUTE);
    },
    outcome: "clear",
    wrong: "verdict",
  },
  {
    part: "on demand, a process that is ended takes nothing",
    file: "verdict/gaps.ts",
    code: "weighs: !onDemand",
    without: "weighs: true",
    async schedule({ world, start, pass }) {
      const [record] = world.records;
      const process = await start({ onDemand: true });
      process.kill();
      await record?.save();
      await pass(10 * SECOND);
      await world.skip(47.5 * MINUTE);
      await record?.restore();
      await pass(20 * SECOND);
    },
    outcome: "clear, lost, silent",
    wrong: "verdict",
  },
  {
    part: "several records make one verdict",
    file: "verdict/evidence.ts",
    code: "const sessions = records.flatMap(({ sessions }, index) => {",
    without: "const sessions = records.slice(0, 1).flatMap(({ sessions }, index) => {",
    async schedule({ world: { records: [, record] }, start, pass }) {
      const process = await start(record && { record });
      process.call("/a");
      await pass(50);
      process.kill();
      await pass(2 * MINUTE);
    },
    outcome: "clear, silent",
    wrong: "verdict",
  },
];
