/** What a process records, and says of its record, whatever happens to it, the ledger and the clocks. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { MAX_NEW_NAMES_A_DAY } from "../../../lib/usage/record/client_names.ts";
import { Backlog, clockFault, type RecorderOptions } from "../../../lib/usage/record/recorder.ts";
import { MAX_PART_ROWS, type Session } from "../../../lib/usage/record/records.ts";
import { COUNT, DAY, NOON, PROCESS } from "../../support/counted_call.ts";
import { addRows, begin, HEARTBEAT } from "../../support/ledger_rows.ts";
import { openScene, ROUTE } from "../../support/recorder_scene.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

type Scene = Awaited<ReturnType<typeof openScene>>;
type Method = keyof Scene["faults"];
type Fault = "away" | "unheard" | "hung";

/** A process in a scene, and what has become of it. */
type Stage = ReturnType<typeof enter>;

/** Something that happens to the process, the ledger or the clocks. */
type Step = (stage: Stage) => unknown;

/** What stands at an instant. */
type State = Awaited<ReturnType<typeof stateOf>>;

/** What a process does, what happens from its start until it stops, and what stands then. */
type Situation = [
  what: string,
  happens: Step[],
  sessions: string,
  more?: Partial<State> & {
    readonly options?: Partial<RecorderOptions>;
    /** What happens before the start. */
    readonly before?: Step[];
  },
];

/** Makes a process that is not started. */
function enter(scene: Scene, options: Partial<RecorderOptions> = {}) {
  const told = { calls: 0, isRecording: false, found: [] as number[] };
  const process = scene.make({
    onRegister: (sessions) => told.found.push(sessions.length),
    metrics: {
      add: (counts) => told.calls += counts.reduce((sum, { calls }) => sum + calls, 0),
      setRecording: (isRecording) => told.isRecording = isRecording,
      announce() {},
    },
    ...options,
  });
  return { ...process, scene, told, made: 0, restore: (() => {}) as () => unknown };
}

async function stateOf({ scene, recorder, events, told }: Stage) {
  const started = await scene.ledger.started();
  const sessions = await scene.ledger.sessions();
  return {
    /** Milliseconds since noon. */
    now: scene.timers.now(),
    sessions: await scene.sessions(),
    /** The routes that each session announces. */
    routes: sessions.map(({ policies }) => Object.keys(policies).sort().join(" ")).join("; "),
    /** The number of calls on record. */
    calls: await scene.calls(),
    unrecorded: recorder.unrecorded(),
    fault: recorder.fault,
    /** The log: each event, and what it says. */
    events: events.map(({ event, message = "", cause = message }) => `${event} ${cause}`.trim()),
    isRegistered: recorder.isRegistered,
    /** How many sessions the process found on record, each time that it said that it registered. */
    found: told.found,
    /** Milliseconds since noon at which the record was started again, if it was. */
    started: started && started - NOON,
  };
}

/** What stands in the end, unless a situation says otherwise. */
const END = { unrecorded: 0, fault: undefined, isRegistered: true, found: [0], started: undefined };

const stands = (expected: Partial<State>): Step => async (stage) => {
  const state = await stateOf(stage);
  assertEquals(state, { ...state, ...expected });
};

/** A name of letters for each number. */
function nameOf(index: number): string {
  return `App-${index}`.replaceAll(/\d/g, (digit) => "abcdefghij"[Number(digit)] as string);
}

/** Counts a call of each of some clients. */
const counts = (clients = 1): Step => (stage) => {
  for (let index = 0; index < clients; index++) stage.call(nameOf(index));
  stage.made += clients;
};

const passes = (time: number): Step => ({ scene }) => scene.pass(time);
const sleeps = (time: number): Step => ({ scene }) => scene.sleep(time);
const setsClocks = sleeps; // the process does not live through either
const isSuspended = (time: number): Step => ({ scene }) => scene.timers.suspend(time);

const fails = (method: Method, fault?: Fault | Error): Step => ({ scene }) => {
  scene.faults[method] = fault;
};
const mends: Step = ({ scene }) => scene.mend();
const copies: Step = async (stage) => stage.restore = await stage.scene.copy();
const restores: Step = ({ restore }) => restore();

const mounts = (route: string): Step => ({ recorder }) => recorder.mount(route);
const arrives: Step = ({ recorder }) => recorder.arrive();
const leaves: Step = ({ recorder }) => recorder.leave();
const answers: Step = (stage) => [counts(), leaves].forEach((step) => step(stage));

const later = (time: number, step: Step): Step => (stage) => void setTimeout(step, time, stage);

/** Something happens as a part of a heartbeat is to be written. */
const atWrite = (number: number, step: Step): Step => (stage) => {
  let writes = 0;
  stage.scene.watched.onAsk = (method) => method === "write" && ++writes === number && step(stage);
};

/** A heartbeat after five seconds and some calls, and what happens just before it. */
const beats = (clients: number, ...steps: Step[]): Step[] => [
  ...[passes(4_900), counts(clients), passes(99), ...steps, passes(1)],
  stands({ unrecorded: 0 }),
];

/** Closing takes some seconds, and leaves sessions. No call is forgotten. */
const closes = (seconds: number, sessions: string): Step => async (stage) => {
  const { scene, recorder } = stage;
  const now = scene.timers.now() + seconds * 1_000;
  const closing = recorder.close();
  assert(recorder.close() === closing);
  await scene.timers.during(closing);
  await stands({ now, sessions })(stage);
  assertEquals(recorder.unrecorded() + await scene.calls(), stage.made);
};

const UNREGISTERED = "no record of calls: the process is not registered yet (see the log)";
const FAILS = "no record of calls: the ledger fails (see the log)";
const CLOCK = "the clock here is not the database's (see the log)";
const DOWN = "error StorageError: sqlite: down";
const LOST = "The ledger does not have this process's last heartbeat as it was written, as if it " +
  "had been restored, replaced or copied. Verdicts name the time whose calls are lost";
const LASTING = new StorageError("sqlite", "unwritable", { isLasting: true });

/** What a start meets, for how long it waits, and the session that begins later. */
const STARTS: [what: string, Method, Fault, waits: number, session: string][] = [
  ["is away", "open", "away", 0, "61 to 65"],
  ["hangs while it connects", "open", "hung", 2_000, "62 to 67"],
  ["is locked", "begin", "away", 0, "61 to 65"],
  ["hangs while it is read", "sessions", "hung", 2_000, "62 to 67"],
  ["hangs while it is written", "begin", "hung", 2_000, "62 to 67"],
  ["does not say whether it was written", "begin", "unheard", 0, "0 to 65"],
];

const starts = STARTS.map(([what, method, fault, now, session]): Situation => {
  const error = now > 0 ? "error StorageError: ledger: no answer within 2 s" : DOWN;
  const waits = { isRegistered: false, found: [], fault: UNREGISTERED, events: [error] };
  return [
    `starts though the ledger ${what}, says so, and registers later with what it counted`,
    [
      ...[stands({ ...waits, now }), counts(), passes(MINUTE), stands(waits), mends],
      ...[passes(5_000), stands({ fault: undefined, found: [0], calls: 1 })],
    ],
    session,
    { before: [fails(method, fault)], events: [error, "session"] },
  ];
});

/** What fails, and after what. */
const OUTAGES: [what: string, Method, sessions: string, ...first: Step[]][] = [
  ["the clock", "time", "0 to 20"],
  ["a write", "write", "0 to 20"],
  ["the search for a write", "session", "0 to 25", fails("write", "unheard"), passes(5_000)],
];

const outages = (["away", "unheard"] as const).flatMap((fault) =>
  OUTAGES.map(([what, method, sessions, ...first]): Situation => [
    `neither loses nor repeats counts in an outage, and logs it once: ${what} is ${fault}`,
    [
      ...[counts(3), ...first, fails("write"), fails(method, fault)],
      ...[1, 2, 3].flatMap(() => [counts(3), passes(5_000)]),
      ...[stands({ fault: FAILS, unrecorded: 12 }), mends, passes(5_000)],
      stands({ fault: undefined, unrecorded: 0 }),
    ],
    sessions,
    { events: [DOWN] },
  ])
);

/** What happens before one of the heartbeats at 5, 10 and 15 s, or before two. */
const JUMPS: [what: string, Step, heartbeats: number[], sessions: string, started?: number][] = [
  ["sleeps for an hour", sleeps(HOUR), [2], "0 to 5, then 3610 to 3615"],
  ["sleeps for a minute", sleeps(MINUTE), [2], "0 to 5, then 70 to 75"],
  ["sleeps for less", sleeps(MINUTE - 1), [2], "0 to 74.999"],
  ["sleeps for less, twice", sleeps(MINUTE - 1), [2, 3], "0 to 134.998"],
  ["is suspended", isSuspended(HOUR), [2], "0 to 3615"],
  ["had booted three days slow", setsClocks(3 * DAY), [1], "0 to 0, then 259205 to 259215"],
  ["sleeps before it stops", sleeps(HOUR), [3], "0 to 10, then 3615 to 3615"],
  ["sleeps in a heartbeat", atWrite(1, sleeps(HOUR)), [2], "0 to 10, then 3615 to 3615"],
  ["has its clock set back by less than a minute", setsClocks(1 - MINUTE), [2], "0 to 5"],
  [
    "has its clock set back by a day",
    setsClocks(-DAY),
    [2],
    "-86390 to -86390, then -86390 to -86385",
    10_000 - DAY,
  ],
];

const jumps = JUMPS.map(([what, step, heartbeats, sessions, started]): Situation => [
  `begins another session after a time that it did not live through: the machine ${what}`,
  [1, 2, 3].flatMap((at) => beats(MAX_PART_ROWS + 1, ...heartbeats.includes(at) ? [step] : [])),
  sessions,
  { started },
]);

const recordsElsewhere: Step = async ({ scene: { ledger }, recorder }) => {
  const session = await ledger.session(recorder.session) as Session;
  await ledger.write({ ...HEARTBEAT, isLast: false }, session, undefined);
};

/** What happens after two heartbeats, and how many of four calls are on record in the end. */
const LOSSES: [what: string, sessions: string, calls: number, first: Step, ...then: Step[]][] = [
  ["an earlier copy", "0 to 5, then 15 to 20, lost since 5", 3, copies, restores],
  [
    "an earlier copy, and the machine has slept",
    "0 to 5, then 3615 to 3620, lost since 5",
    3,
    copies,
    restores,
    sleeps(HOUR),
  ],
  ["a copy from before it started", "15 to 20, lost since 0", 2, () => {}, restores],
  [
    "another life's heartbeat",
    "0 to 10, then 15 to 20, lost since 10",
    4,
    () => {},
    recordsElsewhere,
  ],
];

const losses = LOSSES.map(([what, sessions, calls, first, ...then]): Situation => [
  `names what the ledger has lost: it has ${what}`,
  [...beats(1), first, ...beats(1), ...then, ...beats(1), ...beats(1)],
  `0 to 0, open; ${sessions}`, // that of another process first
  {
    before: [({ scene }) => begin(scene.ledger), copies],
    ...{ calls, found: [1], events: [`warning ${LOST}`] },
  },
]);

/** What becomes of the first part of two, and then of the ledger. */
const OUTCOMES: [what: string, Fault, events: string[], ...then: Step[]][] = [
  ["it is not known whether it was written", "unheard", [DOWN]],
  ["it is not known, and the ledger is restored", "unheard", [DOWN], restores],
  ["it was not written", "away", [DOWN]],
  ["it hung", "hung", []],
];

const outcomes = OUTCOMES.map(([what, fault, events, ...then]): Situation => [
  `sends a part again as it was: ${what}`,
  // The same rows are counted before and after it.
  [copies, counts(150), fails("write", fault), passes(1_500), ...then, counts(120), mends],
  "0 to 1.5",
  { events },
]);

const [ONE, OTHER] = ["/one", "/other"] as const;

/** Options of a process that mounts its routes later. */
function laterOf(...routes: string[]): Partial<RecorderOptions> {
  const policy = definePolicy({ deprecatedAt: "2027-01-01" });
  const policies = Object.fromEntries(routes.map((route) => [route, policy]));
  return { policies, isMountedLater: true };
}

const options = laterOf(ONE, OTHER);
const UNMOUNTED = "/other: not mounted, so calls are not counted";

/** When each route is mounted, and which routes each session announces. */
const MOUNTS: [what: string, one: number, other: number, sessions: string, routes: string][] = [
  ["in its first minute", 1_000, 59_000, "0 to 59", "/one /other"],
  ["later", 1_000, 60_500, "0 to 56, then 60.5 to 60.5", "/one; /one /other"],
  ["later, both at once", 61_000, 61_000, "0 to 60, then 61 to 61", "; /one /other"],
  ["later, and soon after that", 61_000, 90_000, "0 to 60, then 61 to 90", "; /one /other"],
];

const mountings = MOUNTS.map(([what, one, other, sessions, routes]): Situation => [
  `has a session announce the routes that are mounted in its first minute: ${what}`,
  [passes(one), mounts(ONE), mounts(ONE), passes(other - one), mounts(OTHER)],
  sessions,
  { options, routes },
]);

/** What happens at 4 s, when the process is closed, and what sessions stand ten seconds later. */
const CLOSINGS: [what: string, happens: Step[], sessions: string, events?: string[]][] = [
  ["nothing is left", [closes(0, "0 to 4")], "0 to 4"],
  ["calls are counted", [counts(), closes(0, "0 to 4")], "0 to 4"],
  ["a call is answered", [arrives, later(3_000, answers), closes(3, "0 to 7")], "0 to 7"],
  ["a call is answered late", [arrives, closes(10, "0 to 9, open"), answers], "0 to 14"],
  [
    "two clients go away",
    [arrives, arrives, leaves, closes(10, "0 to 9, open"), leaves],
    "0 to 14",
  ],
  [
    "a write hangs",
    [counts(), fails("write", "hung"), closes(10, "0 to 0, open"), mends],
    "0 to 4",
  ],
  [
    "the ledger hangs",
    [counts(), fails("time", "hung"), closes(10, "0 to 0, open"), mends],
    "0 to 14",
  ],
  [
    "the ledger is away",
    [counts(), fails("time", "away"), closes(10, "0 to 0, open"), mends],
    "0 to 15",
    [DOWN],
  ],
  [
    "the ledger is away for a moment",
    [counts(), fails("write", "unheard"), later(500, mends), closes(1, "0 to 4")],
    "0 to 4",
    [DOWN],
  ],
  [
    "a call comes with the last write",
    [atWrite(1, counts()), closes(1, "0 to 4; 5 to 5")],
    "0 to 4; 5 to 5",
  ],
  ["a call comes after the last write", [closes(0, "0 to 4"), counts()], "0 to 4; 5 to 5"],
  [
    "a call comes after the last write, and is not answered",
    [closes(0, "0 to 4"), arrives, counts(), later(8_000, leaves)],
    "0 to 4; 5 to 12",
  ],
];

const closings = CLOSINGS.map(([what, happens, sessions, events]): Situation => [
  `is closed in ten seconds at most, and what is left is recorded later: ${what}`,
  [passes(4_000), ...happens, passes(10_000)],
  sessions,
  events ? { events } : {},
]);

const before = [fails("open", "away")];

const OTHERS: Situation[] = [
  [
    "registers as it is closed, if it can only then",
    [counts(), passes(4_000), mends, closes(0, "4 to 4")],
    "4 to 4",
    { before, events: [DOWN, "session"] },
  ],
  [
    "registers after it was closed, if it can only then",
    [counts(), passes(4_000), closes(10, ""), mends, passes(10_000)],
    "14 to 14",
    { before, events: [DOWN, "session"] },
  ],
  [
    "names what is lost since it opened the record, even if it registered later",
    [passes(3_000), mends, passes(5_000), restores, passes(5_000)],
    "11 to 13, lost since 0",
    { before: [copies, ...before], events: [DOWN, "session", `warning ${LOST}`] },
  ],
  [
    "takes what waiting does not mend for a fault, once it runs",
    [fails("open", LASTING), counts(), passes(5_000), mends, passes(5_000)],
    "6 to 10",
    { before, events: [DOWN, "error StorageError: sqlite: unwritable", "session"] },
  ],
  [
    "never writes twice at once, however long it takes",
    [
      ...(["write", "time"] as const).flatMap((method) => [
        fails(method, "hung"),
        ...Array.from({ length: 30 }, () => [
          ...[counts(), mounts(ONE), arrives, leaves],
          ({ recorder }: Stage) => void recorder.flush(),
          passes(5_000),
        ]).flat(),
      ]),
      ({ recorder }) => void recorder.close(),
      mends,
    ],
    "0 to 300",
    { options: laterOf(ONE) },
  ],
  [
    "begins one session only, where it is not known whether it has",
    [
      ...[sleeps(HOUR), fails("begin", "unheard"), counts(), passes(2_000)],
      ...[mends, passes(5_000)],
    ],
    "0 to 0, then 3601 to 3607",
    { events: [DOWN, "session"] },
  ],
  [
    "goes on with its session after an outage in the middle of a heartbeat",
    [
      ...[counts(250), atWrite(2, fails("write", "away"))],
      ...[isSuspended(2 * MINUTE), passes(100)], // before the heartbeat
      ...[isSuspended(2 * MINUTE), passes(100), mends], // and in it
    ],
    "0 to 240.2",
    { events: [DOWN, DOWN] },
  ],
  [
    "announces at its registration what it has mounted before",
    [mounts(ONE), passes(65_000), mounts(OTHER), passes(5_000), mends, passes(5_000)],
    "71 to 75",
    {
      ...{ options, before, routes: "/one /other" },
      events: [DOWN, DOWN, `warning ${UNMOUNTED}`, "session"],
    },
  ],
  [
    "says once which routes are not mounted, a minute after the first one was",
    [
      ...[passes(10 * MINUTE), stands({ fault: undefined, events: [], routes: "" })],
      ...[mounts(ONE), passes(30_000), mounts("/two"), passes(29_999)],
      ...[stands({ fault: undefined }), passes(1), stands({ fault: UNMOUNTED }), passes(15_000)],
      ...[mounts(OTHER), stands({ fault: undefined })],
    ],
    "0 to 600, then 600 to 675, then 675 to 675",
    {
      ...{ options: laterOf(ONE, "/two", OTHER), routes: "; /one /two; /one /other /two" },
      events: ["session", `warning ${UNMOUNTED}`, "session"],
    },
  ],
  [
    "knows mounts by the names that they were given",
    [mounts("__proto__"), mounts("constructor")],
    "0 to 0",
    { options: laterOf("__proto__", "constructor"), routes: "__proto__ constructor" },
  ],
  [
    "dates calls by the ledger's time, and says that the machine's clock is wrong",
    [
      ...[0, MINUTE - 1, 1 - MINUTE, MINUTE, -MINUTE, -20 * DAY, 20 * DAY, 0].flatMap((offset) => [
        ({ scene: { clocks } }: Stage) => clocks.here = clocks.database + offset,
        ...[counts(), passes(5_000)],
        stands({ fault: Math.abs(offset) < MINUTE ? undefined : CLOCK }),
      ]),
      async ({ scene: { ledger } }) =>
        assertEquals(await Array.fromAsync(ledger.usage(""), ({ day }) => day), ["2027-02-01"]),
    ],
    "0 to 40",
    { events: [`error ${clockFault({ here: NOON + 75_100, inDatabase: NOON + 15_100 })}`] },
  ],
];

const SITUATIONS = [starts, outages, jumps, losses, outcomes, mountings, closings, OTHERS].flat();

for (const [what, happens, sessions, { options, before = [], ...end } = {}] of SITUATIONS) {
  Deno.test(`Recorder ${what}`, async () => {
    await using scene = await openScene();
    const stage = enter(scene, options);
    const { recorder, told } = stage;
    for (const step of before) await step(stage);
    await scene.timers.during(recorder.start());
    for (const step of happens) {
      await step(stage);
      assertEquals(told.isRecording, !recorder.fault?.startsWith("no record"));
    }
    await stage.stop();
    const events = sessions.split(/; |, then /).slice(1).map(() => "session");
    await stands({ ...END, sessions, calls: stage.made, events, ...end })(stage);
    assertEquals(told.calls, stage.made, "each call is in the metrics once");
    const { most, open } = scene.watched;
    assertEquals(
      [most, open, scene.timers.pending],
      [1, 0, 0],
      "one at a time, and nothing is left",
    );
    const begun = stage.events.filter(({ event, message }) =>
      event === "session" || message === LOST
    );
    for (const { event: _, session: _a, message: _b, ...facts } of begun) {
      assertEquals(facts, { ...PROCESS, started: new Date(PROCESS.started).toISOString() });
    }
    if (begun.length > 0) assertEquals(begun.at(-1)?.["session"], recorder.session);
  });
}

Deno.test("Recorder.start() rejects with what waiting does not mend, and tries no more", async () => {
  for (const method of ["open", "begin"] as const) {
    for (const error of [LASTING, new RefusedError("no pg"), new TypeError("a bug")]) {
      await using scene = await openScene();
      scene.faults[method] = error;
      const { recorder, events } = scene.make();
      assertEquals(await assertRejects(() => recorder.start(), Error), error);
      assertEquals([scene.timers.pending, scene.watched.open, events], [0, 0, []]);
    }
  }
});

Deno.test("Recorder sums the counts of several processes in one ledger", async () => {
  await using scene = await openScene();
  const processes = await Promise.all([1, 2, 3].map(() => scene.start()));
  for (let round = 0; round < 5; round++) {
    for (const { call } of processes) call();
    await scene.pass(1_000);
  }
  // A heartbeat begins a second after the last one at the earliest.
  assertEquals(await scene.sessions(), "0 to 5, open; 0 to 5, open; 0 to 5, open");
  for (const { stop } of processes) await stop();
  assertEquals(await Array.fromAsync(scene.ledger.usage("")), [
    { ...COUNT, day: "2027-02-01", client: "app curl", calls: 15, last: NOON + 5_000 },
  ]);
  assertEquals(await scene.sessions(), "0 to 5; 0 to 5; 0 to 5");
});

Deno.test("Recorder brings instants back to the time at which it does so, however late", async () => {
  await using scene = await openScene();
  const late = await scene.start();
  scene.clocks.database -= DAY;
  scene.faults.begin = "away";
  await scene.pass(5_000); // it meets the clock, and is suspended, as one process of several
  scene.faults.begin = undefined;
  const other = await scene.start();
  scene.timers.suspend(2 * DAY);
  other.call();
  await other.recorder.flush();
  const rows = await Array.fromAsync(scene.ledger.usage(""));
  await late.recorder.flush();
  assertEquals(await Array.fromAsync(scene.ledger.usage("")), rows, "calls stay on their day");
  assertEquals(rows.map(({ day }) => day), ["2027-02-02"]);
  assertEquals(await scene.ledger.started(), scene.clocks.database);
  for (const { stop } of [late, other]) await stop();
});

Deno.test("Recorder writes in small parts, reports with the last one, and yields to requests", async () => {
  await using scene = await openScene();
  scene.clocks.database += DAY / 2 - 4_900; // midnight is a second before the heartbeat
  const { call, stop } = await scene.start();
  const reported = async () => (await scene.ledger.sessions())[0]?.reported ?? 0;
  const began = await reported();
  const seen: [rows: number, reported: number][] = [];
  let partsBeforeAnswer = 0;
  scene.watched.onAsk = async (method: string) => {
    if (method !== "write") return;
    if (seen.length === 0) setTimeout(() => partsBeforeAnswer = seen.length); // a request comes
    seen.push([(await Array.fromAsync(scene.ledger.usage(""))).length, await reported() - began]);
  };
  await scene.pass(4_950);
  for (let index = 0; index < 250; index++) call(nameOf(index));
  await scene.pass(50);
  assertEquals(seen, [[0, 0], [MAX_PART_ROWS, 0], [2 * MAX_PART_ROWS, 0]]);
  assertEquals(partsBeforeAnswer, 1);
  assertEquals(await reported(), began + 5_000);
  const days = await Array.fromAsync(scene.ledger.usage(""), ({ day }) => day);
  assertEquals([days.length, ...new Set(days)], [250, "2027-02-02"], "dated as they are written");
  scene.watched.onAsk = () => {};
  await stop();
});

Deno.test("Recorder refuses a route whose name could not be read back", async () => {
  await using scene = await openScene();
  const { pathname } = new URLPattern({ pathname: "/(a\u0001)/:token" }); // as a media server's
  for (const name of [pathname, "\0", "/v1\n", "\x7f", "\x85", "a\ud800", "\udc00b"]) {
    const policies = { [name]: definePolicy({ deprecatedAt: "2027-01-01" }) };
    await assertRejects(() => scene.start({ policies }), TypeError, "well-formed Unicode");
  }
});

Deno.test("Recorder says that a deleted route is called until thirty days without a call have passed", async () => {
  await using scene = await openScene();
  await addRows(scene.database, [{ ...COUNT, client: "app curl", calls: 1, last: NOON }]);
  const { recorder, events, stop } = await scene.start({ ...laterOf(ONE), retainDays: 400 });
  const text = `${ROUTE} is not served any more, but was called once since 2027-01-02, ` +
    "the last by app curl";
  assertEquals(recorder.deletedRoutes, [text]);
  assertEquals(events, [{ event: "warning", message: text }]);
  assertEquals(recorder.fault, undefined, "the record is not at fault");
  for (let day = 1; day <= 31; day++) {
    scene.timers.suspend(DAY);
    await scene.pass(5_000);
    assertEquals(recorder.deletedRoutes.length, day <= 30 ? 1 : 0, `${day}`);
  }
  await stop();
});

Deno.test("Recorder keeps the names of recent clients across a restart", async () => {
  await using scene = await openScene();
  const recent = { ...COUNT, client: "app Recent", calls: 1, last: NOON - 7 * DAY };
  const older = { ...recent, client: "app Older", last: NOON - 8 * DAY };
  await addRows(scene.database, [recent, older]);
  const { call, stop } = await scene.start();
  for (let index = 0; index < 1_100; index++) {
    for (const _ of [1, 2]) call(nameOf(index));
  }
  for (const name of ["Recent", "Older"]) call(name);
  await stop();
  const rows = await Array.fromAsync(scene.ledger.usage("2027-02-01"), ({ client }) => client);
  assertEquals(rows.length, MAX_NEW_NAMES_A_DAY + 2);
  assertEquals([rows.includes("app Recent"), rows.includes("app Older")], [true, false]);
});

Deno.test("Recorder deletes expired days while it runs, and nothing once it is closing", async () => {
  await using scene = await openScene();
  const clients = Array.from({ length: 150 }, (_, index) => nameOf(index));
  await addRows(
    scene.database,
    clients.map((client) => ({ ...COUNT, client, calls: 1, last: NOON - 30 * DAY })),
  );
  const { stop } = await scene.start();
  await scene.pass(5_000);
  assertEquals(await scene.calls(), 150, "nobody counted a day ago");
  scene.timers.suspend(DAY);
  for (const [pass, left] of [[0, 50], [5_000, 0]] as const) {
    await scene.pass(pass);
    assertEquals(await scene.calls(), left);
  }
  const asked: string[] = [];
  scene.watched.onAsk = (method) => asked.push(method);
  scene.timers.suspend(DAY);
  await stop();
  assertEquals([asked.includes("write"), asked.includes("forget")], [true, false]);
});

Deno.test("Backlog sums the counts of each key, and gives them in parts", () => {
  const backlog = new Backlog();
  assertEquals([backlog.isEmpty, backlog.calls, backlog.takePart()], [true, 0, []]);
  const clients = Array.from({ length: MAX_PART_ROWS + 1 }, (_, index) => `app ${index}`);
  for (const calls of [1, 2]) {
    backlog.add(clients.map((client) => ({ ...COUNT, client, calls })));
  }
  assertEquals([backlog.isEmpty, backlog.calls], [false, 3 * clients.length]);
  const sums = clients.map((client) => ({ ...COUNT, client, calls: 3 }));
  assertEquals(backlog.takePart(), sums.slice(0, MAX_PART_ROWS));
  assertEquals([backlog.isEmpty, backlog.calls], [false, 3]);
  assertEquals(backlog.takePart(), sums.slice(MAX_PART_ROWS));
  assertEquals([backlog.isEmpty, backlog.calls, backlog.takePart()], [true, 0, []]);
});

Deno.test("clockFault() says both times if they differ by a minute or more", () => {
  const faultAt = (offset: number) => clockFault({ here: NOON + offset, inDatabase: NOON });
  assertEquals([0, MINUTE - 1, 1 - MINUTE].map(faultAt), Array(3).fill(undefined));
  for (const [offset, time] of [[MINUTE, "12:01:00"], [-MINUTE, "11:59:00"]] as const) {
    assertEquals(
      faultAt(offset),
      `it is 2027-02-01T${time}.000Z here, but 2027-02-01T12:00:00.000Z in the database: correct ` +
        "the clock that is wrong. Phases begin and end by the clock here; calls are recorded by " +
        "the database's",
    );
  }
});
