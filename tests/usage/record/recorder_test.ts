import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { MAX_NEW_NAMES_A_DAY } from "../../../lib/usage/record/client_names.ts";
import { Backlog, type RecorderOptions } from "../../../lib/usage/record/recorder.ts";
import { MAX_PART_ROWS, type Session } from "../../../lib/usage/record/records.ts";
import { COUNT, DAY, NOON, PROCESS } from "../../support/counted_call.ts";
import { addRows } from "../../support/ledger_rows.ts";
import { openScene, ROUTE, type Times } from "../../support/recorder_scene.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

type Scene = Awaited<ReturnType<typeof openScene>>;
type Process = Awaited<ReturnType<Scene["start"]>>;

/** Its process, in a line of the log. */
const PROCESS_FACTS = { ...PROCESS, started: new Date(PROCESS.started).toISOString() };

/** A session in a table: by default, it is stopped. */
type Row = [began: number, reported: number, ended?: "stopped" | "continued" | "open"];

function timesOf(rows: readonly Row[]): Times[] {
  return rows.map(([began, reported, ended = "stopped"]: Row) => {
    return [began, reported, ended === "open" ? undefined : ended];
  });
}

/** A name of letters for each number. */
function nameOf(index: number): string {
  return `App-${index}`.replaceAll(/\d/g, (digit) => "abcdefghij"[Number(digit)] as string);
}

/** What a start meets, and the seconds that it takes. It registers once that is over. */
const STARTS: [
  what: string,
  method: keyof Scene["faults"],
  fault: "away" | "unheard" | "hung",
  seconds: number,
][] = [
  ["is away", "open", "away", 0],
  ["hangs while it connects", "open", "hung", 2],
  ["is locked", "begin", "away", 0],
  ["hangs while it is read", "sessions", "hung", 2],
  ["hangs while it is written", "begin", "hung", 2],
  ["does not say whether it was written", "begin", "unheard", 0],
];

for (const [what, method, fault, seconds] of STARTS) {
  Deno.test(`Recorder starts though the ledger ${what}, says so, and registers later with what it counted`, async () => {
    await using scene = await openScene();
    scene.faults[method] = fault;
    const registered: number[] = [];
    const onRegister = (sessions: readonly Session[]) => registered.push(sessions.length);
    const { recorder, events, call, stop } = await scene.start({ onRegister });
    assertEquals([scene.timers.now(), recorder.isRegistered], [seconds * 1_000, false]);
    assertEquals(
      recorder.fault,
      "no record of calls: the process is not registered yet (see the log)",
    );
    assertEquals(events.map(({ event }) => event), ["error"]);
    call();
    await scene.pass(MINUTE);
    assertEquals([recorder.isRegistered, registered], [false, []]);
    scene.faults[method] = undefined;
    scene.release();
    await scene.pass(5_000);
    assertEquals([recorder.fault, registered], [undefined, [0]]);
    assertEquals(await scene.calls(), 1);
    await stop();
    const [[began = 0, , ended] = [], ...others] = await scene.sessions();
    assertEquals([ended, others], ["stopped", []]);
    assertEquals(began >= MINUTE, fault !== "unheard");
    assertEquals(events.map(({ event }) => event), ["error", "session"]);
  });
}

Deno.test("Recorder.start() rejects with what waiting does not mend, and tries no more", async () => {
  const lasting = [
    new StorageError("sqlite", "unwritable", { isLasting: true }),
    new RefusedError("no pg"),
    new TypeError("a bug"),
  ];
  for (const method of ["open", "begin"] as const) {
    for (const error of lasting) {
      await using scene = await openScene();
      scene.faults[method] = error;
      const { recorder, events } = scene.make();
      assertEquals(await assertRejects(() => recorder.start(), Error), error);
      assertEquals([scene.timers.pending, scene.watched.open, events], [0, 0, []]);
    }
  }
});

Deno.test("Recorder takes what waiting does not mend for a fault, once it runs", async () => {
  await using scene = await openScene();
  scene.faults.open = "away";
  const { recorder, events, call, stop } = await scene.start();
  scene.faults.open = new StorageError("sqlite", "unwritable", { isLasting: true });
  call();
  await scene.pass(5_000);
  assertEquals(events.map(({ cause }) => cause), [
    "StorageError: sqlite: down",
    "StorageError: sqlite: unwritable",
  ]);
  scene.faults.open = undefined;
  await scene.pass(5_000);
  assertEquals([recorder.fault, await scene.calls()], [undefined, 1]);
  await stop();
});

Deno.test("Recorder sums the counts of several processes in one ledger", async () => {
  await using scene = await openScene();
  const processes = await Promise.all([1, 2, 3].map(() => scene.start()));
  assertEquals(await scene.sessions(), Array(3).fill([0, 0, undefined]));
  for (let round = 0; round < 5; round++) {
    for (const { call } of processes) call();
    await scene.pass(1_000);
  }
  // A heartbeat begins a second after the last one at the earliest.
  assertEquals(await scene.sessions(), Array(3).fill([0, 5_000, undefined]));
  for (const { stop } of processes) await stop();
  assertEquals(await Array.fromAsync(scene.ledger.usage("")), [
    { ...COUNT, day: "2027-02-01", client: "app curl", calls: 15, last: NOON + 5_000 },
  ]);
  assertEquals(await scene.sessions(), Array(3).fill([0, 5_000, "stopped"]));
});

Deno.test("Recorder neither loses nor repeats counts in an outage, and logs it once", async () => {
  await using scene = await openScene();
  const { recorder, events, call, stop } = await scene.start();
  for (const fault of ["away", "unheard"] as const) {
    for (const method of ["time", "write", "session"] as const) {
      scene.faults[method] = fault;
      // The answer to a write is looked for where the process does not know what became of it.
      if (method === "session") scene.faults.write = "unheard";
      for (let round = 0; round < 4; round++) {
        for (const client of ["a", "b/1.0", "c"]) call(client);
        await scene.pass(5_000);
      }
      assertEquals(recorder.fault, "no record of calls: the ledger fails (see the log)", method);
      assertEquals(recorder.unrecorded() >= 9, true);
      scene.faults.write = scene.faults[method] = undefined;
      await scene.pass(5_000);
      assertEquals([recorder.fault, recorder.unrecorded()], [undefined, 0]);
    }
  }
  assertEquals(new Set(events.map(({ cause }) => cause)), new Set(["StorageError: sqlite: down"]));
  await stop();
  const rows = await Array.fromAsync(scene.ledger.usage(""));
  assertEquals(rows.map(({ client, release, calls }) => [client, release, calls]), [
    ["app a", "", 24],
    ["app b", "1.0", 24],
    ["app c", "", 24],
  ]);
  assertEquals(await scene.sessions(), [[0, 150_000, "stopped"]], "nothing is missing");
});

Deno.test("Recorder never writes twice at once, however long it takes", async () => {
  await using scene = await openScene();
  const { recorder, call, stop } = await scene.start({ ...LATER });
  for (const method of ["write", "time"] as const) {
    scene.faults[method] = "hung";
    for (let round = 0; round < 30; round++) {
      call();
      recorder.mount(ONE);
      recorder.arrive();
      recorder.leave();
      void recorder.flush();
      await scene.pass(5_000);
    }
  }
  const stopped = stop();
  scene.release();
  await stopped;
  assertEquals([scene.watched.most, await scene.calls()], [1, 60]);
  assertEquals((await scene.sessions()).map(([, , ended]) => ended), ["stopped"]);
});

/**
 * What happens before the heartbeats of a process at 5, 10 and 15 s, or in the middle one, once its
 * time was read: how far the database's clock jumps, and how long the process is suspended.
 */
const JUMPS: [what: string, at: number[], database: number, suspended: number, sessions: Row[]][] =
  [
    ["sleeps for an hour", [1], HOUR, 0, [[0, 5_000, "continued"], [HOUR + 10_000, HOUR + 15_000]]],
    ["sleeps for a minute", [1], MINUTE, 0, [[0, 5_000, "continued"], [70_000, 75_000]]],
    ["sleeps for less", [1], MINUTE - 1, 0, [[0, 74_999]]],
    ["sleeps for less, twice", [1, 2], MINUTE - 1, 0, [[0, 134_998]]],
    ["is suspended", [1], 0, HOUR, [[0, HOUR + 15_000]]],
    ["had booted three days slow", [0], 3 * DAY, 0, [
      [0, 0, "continued"],
      [3 * DAY + 5_000, 3 * DAY + 15_000],
    ]],
    ["sleeps before it stops", [2], HOUR, 0, [
      [0, 10_000, "continued"],
      [HOUR + 15_000, HOUR + 15_000],
    ]],
    ["sleeps in a heartbeat", [1.5], HOUR, 0, [
      [0, 10_000, "continued"],
      [HOUR + 15_000, HOUR + 15_000],
    ]],
    ["has its clock set back by less than a minute", [1], 1 - MINUTE, 0, [[0, 5_000]]],
    ["has its clock set back by a day", [1], -DAY, 0, [
      [10_000 - DAY, 10_000 - DAY, "continued"],
      [10_000 - DAY, 15_000 - DAY],
    ]],
  ];

for (const [what, at, database, suspended, sessions] of JUMPS) {
  Deno.test(`Recorder begins another session after a time that it did not live through: the machine ${what}`, async () => {
    await using scene = await openScene();
    const { recorder, events, call, stop } = await scene.start();
    const jump = () => {
      scene.sleep(database);
      scene.timers.suspend(suspended);
    };
    const clients = Array.from({ length: MAX_PART_ROWS + 1 }, (_, index) => nameOf(index));
    for (const number of [0, 1, 2]) {
      await scene.pass(4_900);
      for (const client of clients) call(client); // several parts
      await scene.pass(99);
      if (at.includes(number)) jump();
      if (at.includes(number + 0.5)) {
        scene.watched.onAsk = (method) => {
          if (method !== "write") return;
          scene.watched.onAsk = () => {};
          jump();
        };
      }
      await scene.pass(1);
      if (number === 2) await stop();
      assertEquals(await scene.calls(), (number + 1) * clients.length);
    }
    assertEquals(await scene.sessions(), timesOf(sessions));
    const isAgain = what.includes("by a day");
    assertEquals(await scene.ledger.started(), isAgain ? NOON + 10_000 - DAY : undefined);
    const began = sessions.slice(1).map(() => ({ event: "session", ...PROCESS_FACTS }));
    assertEquals(events.map(({ session, ...rest }) => session ? rest : {}), began);
    if (began.length > 0) assertEquals(events[0]?.["session"], recorder.session);
  });
}

Deno.test("Recorder begins one session only, where it is not known whether it has", async () => {
  await using scene = await openScene();
  const { events, call, stop } = await scene.start();
  scene.sleep(HOUR);
  scene.faults.begin = "unheard";
  call();
  await scene.pass(2_000);
  scene.faults.begin = undefined;
  await scene.pass(5_000);
  await stop();
  assertEquals(
    await scene.sessions(),
    timesOf([[0, 0, "continued"], [HOUR + 1_000, HOUR + 7_000]]),
  );
  assertEquals([await scene.calls(), ...events.map(({ event }) => event)], [1, "error", "session"]);
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

const LOST = "The ledger does not have this process's last heartbeat as it was written, as if it " +
  "had been restored, replaced or copied. Verdicts name the time whose calls are lost";

/**
 * What the ledger has of a process that has reported at 5 and 10 s, its sessions at the end, since when
 * its calls are lost, and how many of the four are on record.
 */
const LOSSES: [what: string, sessions: Row[], lost: number, calls: number][] = [
  ["an earlier copy", [[0, 5_000, "continued"], [15_000, 20_000]], 5_000, 3],
  [
    "an earlier copy, and the machine has slept",
    [
      [0, 5_000, "continued"],
      [HOUR + 15_000, HOUR + 20_000],
    ],
    5_000,
    3,
  ],
  ["a copy from before it started", [[15_000, 20_000]], 0, 2],
  ["what another life of it recorded", [[0, 10_000, "continued"], [15_000, 20_000]], 10_000, 4],
];

for (const [what, sessions, lost, calls] of LOSSES) {
  Deno.test(`Recorder names what the ledger has lost: it has ${what}`, async () => {
    await using scene = await openScene();
    const { ledger } = scene;
    await scene.start({ onDemand: true });
    let restore = what.includes("before it started") ? await scene.copy() : undefined;
    const { recorder, events, call, stop } = await scene.start();
    const { session: id } = recorder;
    for (const _ of [1, 2]) {
      await scene.pass(4_900);
      call();
      await scene.pass(100);
      if (what.includes("copy")) restore ??= await scene.copy();
    }
    await restore?.();
    if (what.includes("another life")) {
      const { id: session, sequence } = await ledger.session(id) as Session;
      const part = { counts: [], before: 0, lived: 0, isLast: false, isStopped: false };
      await ledger.write(part, { id: session, sequence }, undefined);
    }
    for (const round of [1, 2]) {
      await scene.pass(4_900);
      call();
      if (round === 1 && what.includes("slept")) scene.sleep(HOUR);
      await scene.pass(100);
    }
    await stop();
    assertEquals(recorder.unrecorded(), 0);
    const own = (await ledger.sessions()).filter(({ onDemand }) => !onDemand);
    const times = own.map(({ began, reported, ended }) => [began - NOON, reported - NOON, ended]);
    assertEquals(times, timesOf(sessions));
    assertEquals(own.map(({ lost }) => lost), [
      ...sessions.slice(1).map(() => undefined),
      NOON + lost,
    ]);
    const facts = { session: recorder.session, ...PROCESS_FACTS };
    assertEquals(events, [{ event: "warning", ...facts, message: LOST }]);
    assertEquals([await scene.calls(), await ledger.started()], [calls, undefined]);
  });
}

/** What becomes of the first part of two, and of the ledger, before it is sent again. */
const OUTCOMES: [fault: "away" | "unheard" | "hung", isRestored: boolean][] = [
  ["unheard", false],
  ["away", false],
  ["unheard", true],
  ["hung", false],
];

for (const [fault, isRestored] of OUTCOMES) {
  Deno.test(`Recorder sends a part again as it was: ${fault}${isRestored ? ", then restored" : ""}`, async () => {
    await using scene = await openScene();
    const { recorder, call, stop } = await scene.start();
    const restore = await scene.copy();
    for (let index = 0; index < 150; index++) call(nameOf(index));
    scene.faults.write = fault;
    await scene.pass(1_500);
    scene.faults.write = undefined;
    if (isRestored) await restore();
    for (let index = 0; index < 120; index++) call(nameOf(index)); // the same rows
    scene.release();
    await stop();
    assertEquals([await scene.calls(), recorder.unrecorded()], [270, 0]);
    const [[began, , ended] = [], ...others] = await scene.sessions();
    assertEquals([began, ended, others], [0, "stopped", []]);
  });
}

Deno.test("Recorder goes on with its session after an outage in the middle of a heartbeat", async () => {
  await using scene = await openScene();
  const { call, stop } = await scene.start();
  for (let index = 0; index < 250; index++) call(nameOf(index));
  let parts = 0;
  scene.watched.onAsk = (method) => {
    if (method === "write" && ++parts === 2) scene.faults.write = "away";
  };
  for (const _ of [1, 2]) { // before the heartbeat, and in it
    scene.timers.suspend(2 * MINUTE);
    await scene.pass(100);
  }
  scene.faults.write = undefined;
  await stop();
  assertEquals([await scene.sessions(), await scene.calls()], [[[0, 240_200, "stopped"]], 250]);
});

Deno.test("Recorder writes in small parts, reports with the last one, and yields to requests", async () => {
  await using scene = await openScene();
  scene.clocks.database += DAY / 2 - 4_900; // midnight is a second before the heartbeat
  const { call, stop } = await scene.start();
  const began = (await scene.sessions())[0]?.[0] as number;
  const seen: [rows: number, reported: number | undefined][] = [];
  let partsBeforeAnswer = 0;
  scene.watched.onAsk = async (method: string) => {
    if (method !== "write") return;
    if (seen.length === 0) setTimeout(() => partsBeforeAnswer = seen.length); // a request comes
    const reported = (await scene.sessions())[0]?.[1] as number;
    seen.push([(await Array.fromAsync(scene.ledger.usage(""))).length, reported - began]);
  };
  await scene.pass(4_950);
  for (let index = 0; index < 250; index++) call(nameOf(index));
  await scene.pass(50);
  assertEquals(seen, [[0, 0], [MAX_PART_ROWS, 0], [2 * MAX_PART_ROWS, 0]]);
  assertEquals(partsBeforeAnswer, 1);
  assertEquals((await scene.sessions())[0]?.[1], began + 5_000);
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

const [ONE, OTHER] = ["/v1/one", "/v1/other"] as const;

/** Options of a process that mounts two routes later. */
const LATER = {
  policies: Object.fromEntries(
    [ONE, OTHER].map((route) => [route, definePolicy({ deprecatedAt: "2027-01-01" })]),
  ),
  isMountedLater: true,
};

/** When a process registers and mounts its routes, in seconds, and what its sessions have mounted. */
const MOUNTS: [
  what: string,
  registers: number,
  mounts: [at: number, route: string][],
  sessions: [began: number, mounted: string[], ended?: Session["ended"]][],
][] = [
  ["in its first minute", 0, [[1, ONE], [2, ONE], [59, OTHER]], [[0, [ONE, OTHER]]]],
  ["later", 0, [[1, ONE], [61, OTHER]], [[0, [ONE], "continued"], [61, [ONE, OTHER]]]],
  ["later, both at once", 0, [[61, ONE], [61, OTHER]], [
    [0, [], "continued"],
    [61, [ONE, OTHER]],
  ]],
  ["later, and soon after that", 0, [[61, ONE], [90, OTHER]], [
    [0, [], "continued"],
    [61, [ONE, OTHER]],
  ]],
  ["before it is registered", 70, [[0, ONE], [65, OTHER]], [[70, [ONE, OTHER]]]],
  ["not", 0, [], [[0, []]]],
];

for (const [what, registers, mounts, expected] of MOUNTS) {
  Deno.test(`Recorder has a session announce the routes that are mounted in its first minute: ${what}`, async () => {
    await using scene = await openScene();
    if (registers > 0) scene.faults.open = "away";
    const { recorder, stop } = await scene.start(LATER);
    const pass = (at: number) => scene.pass(Math.max(0, at * 1_000 - scene.timers.now()));
    for (const [at, route] of mounts) {
      await pass(at);
      recorder.mount(route);
    }
    await pass(registers);
    scene.faults.open = undefined;
    await recorder.flush();
    await pass(100);
    await stop();
    const sessions = (await scene.ledger.sessions()).map(({ began, policies, ended }) => {
      return [(began - NOON) / 1_000, Object.keys(policies).sort(), ended];
    });
    assertEquals(
      sessions,
      expected.map(([began, mounted, ended = "stopped"]) => [began, mounted, ended]),
    );
  });
}

Deno.test("Recorder says once which routes are not mounted, a minute after the first one was", async () => {
  await using scene = await openScene();
  const { recorder, events, stop } = await scene.start(LATER);
  await scene.pass(10 * MINUTE);
  assertEquals([recorder.fault, events], [undefined, []], "none is");
  recorder.mount(ONE);
  await scene.pass(MINUTE - 1);
  assertEquals(recorder.fault, undefined);
  await scene.pass(MINUTE);
  const message = `${OTHER}: not mounted, so calls are not counted`;
  assertEquals(recorder.fault, message);
  assertEquals(events.slice(1), [{ event: "warning", session: recorder.session, message }]);
  recorder.mount(OTHER);
  assertEquals(recorder.fault, undefined);
  await stop();
});

Deno.test("Recorder knows mounts by the names that they were given", async () => {
  await using scene = await openScene();
  const names = ["__proto__", "constructor"];
  const policies = Object.fromEntries(names.map((name) => [name, LATER.policies[ONE]]));
  const { recorder, stop } = await scene.start({ ...LATER, policies } as typeof LATER);
  for (const name of names) recorder.mount(name);
  await recorder.flush();
  assertEquals(Object.keys((await scene.ledger.sessions())[0]?.policies ?? {}), names);
  await stop();
});

Deno.test("Recorder says that a deleted route is called until thirty days without a call have passed", async () => {
  await using scene = await openScene();
  await addRows(scene.database, [{ ...COUNT, client: "app curl", calls: 1, last: NOON }]);
  const { recorder, events, stop } = await scene.start({ ...LATER, retainDays: 400 });
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

/**
 * What happens to a process before it is closed at 4 s, and after that; how many seconds closing takes,
 * its sessions then, and its sessions in the end.
 */
const ENDS: [
  what: string,
  before: (process: Process, scene: Scene) => void,
  after: (process: Process, scene: Scene) => void,
  took: number,
  then: Row[],
  inTheEnd: Row[],
][] = [
  ["nothing is left to do", () => {}, () => {}, 0, [[0, 4_000]], [[0, 4_000]]],
  ["calls are counted", ({ call }) => call(), () => {}, 0, [[0, 4_000]], [[0, 4_000]]],
  [
    "a call is answered in time",
    (process) => {
      process.recorder.arrive();
      setTimeout(() => answer(process), 3_000);
    },
    () => {},
    3,
    [[0, 7_000]],
    [[0, 7_000]],
  ],
  [
    "a call is answered later",
    ({ recorder }) => recorder.arrive(),
    answer,
    10,
    [[0, 9_000, "open"]],
    [[0, 14_000]],
  ],
  [
    "one client goes away, and then another",
    ({ recorder }) => {
      recorder.arrive();
      recorder.arrive();
      recorder.leave();
    },
    ({ recorder }) => recorder.leave(),
    10,
    [[0, 9_000, "open"]],
    [[0, 14_000]],
  ],
  [
    "a write hangs",
    ({ call }, { faults }) => {
      call();
      faults.write = "hung";
    },
    (_, { release }) => release(),
    10,
    [[0, 0, "open"]],
    [[0, 4_000]],
  ],
  [
    "the ledger hangs",
    ({ call }, { faults }) => {
      call();
      faults.time = "hung";
    },
    (_, { release }) => release(),
    10,
    [[0, 0, "open"]],
    [[0, 14_000]],
  ],
  [
    "the ledger is away",
    ({ call }, { faults }) => {
      call();
      faults.time = "away";
    },
    (_, { faults }) => delete faults.time,
    10,
    [[0, 0, "open"]],
    [[0, 15_000]],
  ],
  [
    "the ledger is away for a moment",
    ({ call }, { faults }) => {
      call();
      faults.write = "unheard";
      setTimeout(() => delete faults.write, 500);
    },
    () => {},
    1,
    [[0, 4_000]],
    [[0, 4_000]],
  ],
  [
    "a call comes with the last write",
    ({ call }, { watched }) => {
      watched.onAsk = (method) => {
        if (method !== "write") return;
        watched.onAsk = () => {};
        call();
      };
    },
    () => {},
    1,
    [[0, 4_000], [5_000, 5_000]],
    [[0, 4_000], [5_000, 5_000]],
  ],
  [
    "a call comes after the last write",
    () => {},
    ({ call }) => call(),
    0,
    [[0, 4_000]],
    [[0, 4_000], [5_000, 5_000]],
  ],
  [
    "a call comes after the last write, and is not answered",
    () => {},
    ({ recorder, call }) => {
      recorder.arrive();
      call();
      setTimeout(() => recorder.leave(), 8_000);
    },
    0,
    [[0, 4_000]],
    [[0, 4_000], [5_000, 12_000]],
  ],
];

function answer({ recorder, call }: Pick<Process, "recorder" | "call">): void {
  call();
  recorder.leave();
}

for (const [what, before, after, took, then, inTheEnd] of ENDS) {
  Deno.test(`Recorder.close() waits ten seconds at most, and what is left is recorded later: ${what}`, async () => {
    await using scene = await openScene();
    const process = await scene.start();
    let made = 0;
    const counted = { ...process, call: () => void (made++, process.call()) };
    await scene.pass(4_000);
    before(counted, scene);
    const closing = process.recorder.close();
    assert(process.recorder.close() === closing);
    await scene.timers.during(closing);
    assertEquals([scene.timers.now(), await scene.sessions()], [
      4_000 + took * 1_000,
      timesOf(then),
    ]);
    assertEquals(process.recorder.unrecorded() + await scene.calls(), made, "none is forgotten");
    after(counted, scene);
    await scene.pass(10_000);
    assertEquals([await scene.sessions(), await scene.calls()], [timesOf(inTheEnd), made]);
    assertEquals([scene.timers.pending, scene.watched.open], [0, 0]);
  });
}

Deno.test("Recorder.close() registers a process that could not be before, if it can now", async () => {
  for (const isInTime of [true, false]) {
    await using scene = await openScene();
    scene.faults.open = "away";
    const { recorder, call } = await scene.start();
    call();
    await scene.pass(4_000); // it has tried at 0 and 1 s
    if (isInTime) scene.faults.open = undefined;
    await scene.timers.during(recorder.close());
    assertEquals(scene.timers.now(), isInTime ? 4_000 : 14_000);
    assertEquals([recorder.isRegistered, recorder.unrecorded()], isInTime ? [true, 0] : [false, 1]);
    scene.faults.open = undefined;
    await scene.pass(10_000);
    const at = isInTime ? 4_000 : 14_000;
    assertEquals([await scene.sessions(), await scene.calls()], [[[at, at, "stopped"]], 1]);
  }
});

Deno.test("Recorder adds every call to the metrics once, even if the ledger fails", async () => {
  await using scene = await openScene();
  let [sum, recording] = [0, -1];
  const metrics: RecorderOptions["metrics"] = {
    add: (counts) => sum += counts.reduce((calls, count) => calls + count.calls, 0),
    setRecording: (isRecording) => recording = Number(isRecording),
    announce() {},
  };
  const { call, stop } = await scene.start({ metrics });
  for (const fault of ["away", "unheard", undefined] as const) {
    scene.faults.write = fault;
    for (let round = 0; round < 4; round++) {
      call();
      await scene.pass(5_000);
    }
    assertEquals(recording, Number(fault === undefined));
  }
  await stop();
  assertEquals([sum, await scene.calls()], [12, 12]);
});

Deno.test("Recorder dates calls by the ledger's time, and says that the machine's clock is wrong", async () => {
  const offsets = [0, MINUTE - 1, -MINUTE + 1, MINUTE, -MINUTE, -20 * DAY, 20 * DAY, 0];
  await using scene = await openScene();
  const { recorder, events, call, stop } = await scene.start();
  for (const offset of offsets) {
    scene.clocks.here = scene.clocks.database + offset;
    call();
    await scene.pass(5_000);
    const isOff = Math.abs(offset) >= MINUTE;
    const fault = isOff ? "the clock here is not the database's (see the log)" : undefined;
    assertEquals(recorder.fault, fault, `${offset}`);
  }
  await stop();
  assertEquals(await scene.sessions(), [[0, 40_000, "stopped"]]);
  const rows = await Array.fromAsync(scene.ledger.usage(""), ({ day, calls }) => [day, calls]);
  assertEquals(rows, [["2027-02-01", offsets.length]]);
  assertEquals(events.map(({ event }) => event), ["error"], "the rest is counted");
  assertStringIncludes(
    String(events[0]?.["cause"]),
    "here, but 2027-02-01T12:00:15.100Z in the database",
  );
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
