import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { MAX_NEW_NAMES_A_DAY } from "../../../lib/usage/record/client_names.ts";
import type { Ledger } from "../../../lib/usage/record/ledger.ts";
import type { RecorderOptions } from "../../../lib/usage/record/recorder.ts";
import {
  type FlushPart,
  LEASE_MS,
  MAX_PART_ROWS,
  type Session,
} from "../../../lib/usage/record/records.ts";
import { COUNT, DAY, NOON, PROCESS } from "../../support/counted_call.ts";
import { fakeTimers } from "../../support/fake_timers.ts";
import { addRows, begin, FOREVER } from "../../support/ledger_rows.ts";
import { down, openScene, ROUTE, type Times } from "../../support/recorder_scene.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Its process, in a line of the log. */
const PROCESS_FACTS = { ...PROCESS, started: new Date(PROCESS.started).toISOString() };

/** The same in a table: by default, the session is stopped. */
type Row = [began: number, reported: number, ended?: Session["ended"]];

function timesOf(rows: Row[]): Times[] {
  return rows.map(([began, reported, ended = "stopped"]) => [began, reported, ended]);
}

/** Returns a ledger whose `add()` fails before its transaction or after it, so that its outcome is unknown. */
function failing(ledger: Ledger) {
  const add = ledger.add.bind(ledger);
  const failure: { when?: "before" | "after" | undefined; readonly sent: FlushPart[] } = {
    sent: [],
  };
  ledger.add = async (part, ...rest) => {
    failure.sent.push(part);
    if (failure.when === "before") return await down();
    const time = await add(part, ...rest);
    return failure.when === "after" ? await down() : time;
  };
  return { ledger, failure };
}

Deno.test("Recorder sums the counts of several servers in one ledger", async () => {
  await using scene = await openScene();
  const servers = await Promise.all([1, 2, 3].map(() => scene.start()));
  assertEquals(await scene.sessions(), Array(3).fill([0, 0, undefined]));
  for (let round = 0; round < 5; round++) {
    scene.pass(1_000);
    for (const { call } of servers) call();
    await Promise.all(servers.map(({ recorder }) => recorder.flush()));
  }
  assertEquals(await scene.sessions(), Array(3).fill([0, 5_000, undefined]));
  await Promise.all(servers.map(({ recorder }) => recorder.stop()));
  assertEquals(await Array.fromAsync(scene.ledger.usage("")), [
    { ...COUNT, day: "2027-02-01", client: "app curl", calls: 15, last: NOON + 5_000 },
  ]);
  assertEquals(await scene.sessions(), Array(3).fill([0, 5_000, "stopped"]));
});

Deno.test("Recorder neither loses nor repeats counts in an outage, and logs it once", async () => {
  await using scene = await openScene();
  const { ledger, failure } = failing(scene.open());
  const { recorder, events, call } = await scene.start({ ledger });
  for (const when of ["before", "after"] as const) {
    failure.when = when;
    for (let round = 0; round < 4; round++) {
      scene.pass(5_000);
      for (const client of ["a", "b/1.0", "c"]) call(client);
      await recorder.flush();
    }
    assertEquals(recorder.fault, "no record of calls: the ledger fails (see the log)");
    assertEquals(recorder.unrecorded(), 12);
    failure.when = undefined;
    await recorder.flush();
    assertEquals(recorder.fault, undefined);
  }
  assertEquals(events.length, 1);
  await recorder.stop();
  const rows = await Array.fromAsync(scene.ledger.usage(""));
  assertEquals(rows.map(({ client, release, calls }) => [client, release, calls]), [
    ["app a", "", 8],
    ["app b", "1.0", 8],
    ["app c", "", 8],
  ]);
  assertEquals(await scene.sessions(), [[0, 40_000, "stopped"]], "nothing is missing");
});

Deno.test("Recorder does not end its session while calls are not on record, and says how many", async () => {
  await using scene = await openScene();
  const { ledger, failure } = failing(scene.open());
  const { recorder, events, call } = await scene.start({ ledger });
  failure.when = "before";
  for (const client of ["a", "b", "b"]) call(client);
  await recorder.stop();
  assertEquals(recorder.unrecorded(), 3);
  assertEquals(await scene.sessions(), [[0, 0, undefined]]);
  assertEquals(events.length, 1);
});

Deno.test("Recorder refuses a route whose name could not be read back", async () => {
  await using scene = await openScene();
  const { pathname } = new URLPattern({ pathname: "/(a\u0001)/:token" }); // as a media server's
  for (const name of [pathname, "\0", "a\ud800"]) {
    const policies = { [name]: definePolicy({ deprecatedAt: "2027-01-01" }) };
    await assertRejects(() => scene.start({ policies }), TypeError, "well-formed Unicode");
  }
});

const [ONE, OTHER] = ["/v1/one", "/v1/other"] as const;

/** Options of a process that mounts two routes later. */
const LATER = {
  policies: Object.fromEntries([ONE, OTHER].map((route) => [
    route,
    definePolicy({ deprecatedAt: "2027-01-01" }),
  ])),
  isMountedLater: true,
};

/** What the sessions of a ledger have mounted, and what not. */
async function mountsIn({ ledger }: Awaited<ReturnType<typeof openScene>>) {
  return (await ledger.sessions()).map(({ policies, unmounted = {}, ended }) => [
    Object.keys(policies).sort(),
    Object.keys(unmounted).sort(),
    ended,
  ]);
}

Deno.test("Recorder has a session vouch for the routes that are mounted in its first minute", async () => {
  await using scene = await openScene();
  const { recorder, events } = await scene.start(LATER);
  assertEquals(await mountsIn(scene), [[[], [ONE, OTHER], undefined]]);
  recorder.mount(ONE);
  recorder.mount(ONE);
  await recorder.flush();
  assertEquals(await mountsIn(scene), [[[ONE], [OTHER], undefined]]);
  scene.pass(59_000);
  assertEquals(recorder.fault, undefined);
  recorder.mount(OTHER);
  await recorder.flush();
  assertEquals(await mountsIn(scene), [[[ONE, OTHER], [], undefined]]);
  scene.pass(60_000);
  await recorder.flush();
  assertEquals([recorder.fault, events], [undefined, []]);
  await recorder.stop();
  assertEquals(await mountsIn(scene), [[[ONE, OTHER], [], "stopped"]]);
});

Deno.test("Recorder begins another session for a route that is mounted later, and says what is left", async () => {
  await using scene = await openScene();
  const { recorder, events, intents } = await scene.start(LATER);
  recorder.mount(ONE);
  await recorder.flush();
  scene.pass(60_000);
  await recorder.flush();
  const message = `${OTHER}: not mounted, so calls are not counted`;
  assertEquals(recorder.fault, message);
  const { session } = recorder;
  assertEquals(events, [{ event: "warning", session, message }]);
  assert(await intents.hold(ONE));
  scene.pass(5_000);
  recorder.mount(OTHER);
  assert(await intents.hold(OTHER), "it is recorded before the first answer");
  assertEquals([recorder.fault, recorder.session === session], [undefined, false]);
  await recorder.flush();
  assertEquals(await mountsIn(scene), [
    [[ONE], [OTHER], "lapsed"],
    [[ONE, OTHER], [], undefined],
  ]);
  assert(intents.isHeld(ONE));
  assertEquals(events.map(({ event }) => event), ["warning", "session"], "each once");
  await recorder.stop();
});

Deno.test("Recorder knows mounts by the names that they were given", async () => {
  await using scene = await openScene();
  const names = ["__proto__", "constructor"];
  const policies = Object.fromEntries(names.map((name) => [name, LATER.policies[ONE]]));
  const { recorder, intents } = await scene.start({ ...LATER, policies } as typeof LATER);
  const { session } = recorder;
  for (const name of names) {
    recorder.mount(name);
    assert(await intents.hold(name), name);
    recorder.mount(name);
  }
  await recorder.flush();
  assertEquals([recorder.session, recorder.fault], [session, undefined]);
  await recorder.stop();
});

Deno.test("Recorder has no fault where no route is mounted", async () => {
  await using scene = await openScene();
  const { recorder, events } = await scene.start(LATER);
  scene.pass(600_000);
  await recorder.flush();
  assertEquals([recorder.fault, events], [undefined, []]);
  await recorder.stop();
});

Deno.test("Recorder says that a deleted route is called until thirty days without a call have passed", async () => {
  await using scene = await openScene();
  const before = await scene.start({ retainDays: 400 });
  assert(await before.serve());
  await before.recorder.stop();
  const { recorder, events } = await scene.start({ ...LATER, retainDays: 400 });
  const text = `${ROUTE} is not served any more, but was called once since 2027-01-02, ` +
    "the last by app curl";
  assertEquals(recorder.deletedRoutes, [text]);
  assertEquals(events, [{ event: "warning", message: text }]);
  assertEquals(recorder.fault, undefined, "the record is not at fault");
  for (let day = 1; day <= 31; day++) {
    scene.pass(86_400_000);
    await recorder.flush();
    assertEquals(recorder.deletedRoutes.length, day <= 30 ? 1 : 0, `${day}`);
  }
  await recorder.stop();
});

Deno.test("Recorder lets nobody be answered on a route before its mount is recorded", async () => {
  await using scene = await openScene();
  const ledger = scene.open();
  const { recorder, intents } = await scene.start({ ...LATER, ledger });
  ledger.mount = down;
  recorder.mount(ONE);
  assertEquals(await intents.hold(ONE), false);
  assertEquals(await scene.ledger.intents(), []);
  ledger.mount = scene.ledger.mount.bind(scene.ledger);
  scene.pass(1_000);
  assertEquals(await intents.hold(ONE), true);
  assertEquals(await mountsIn(scene), [[[ONE], [OTHER], undefined]]);
  await recorder.stop();
});

Deno.test("Recorder registers late with the routes that are mounted by then", async () => {
  await using scene = await openScene();
  const ledger = scene.open();
  ledger.begin = down;
  const { recorder } = await scene.start({ ...LATER, ledger, mayStartUnregistered: true });
  recorder.mount(ONE);
  ledger.begin = scene.ledger.begin.bind(scene.ledger);
  await recorder.flush();
  assertEquals(await mountsIn(scene), [[[ONE], [OTHER], undefined]]);
  await recorder.stop();
});

Deno.test("Recorder.start() rejects if it cannot register", async () => {
  await using scene = await openScene();
  const ledger = scene.open();
  ledger.begin = down;
  await assertRejects(() => scene.start({ ledger }), StorageError, "down");
});

Deno.test("Recorder runs one flush at a time, and a slow flush does not end its session", async () => {
  await using scene = await openScene();
  const ledger = scene.open();
  const add = ledger.add.bind(ledger);
  let [inFlight, most] = [0, 0];
  const released = Promise.withResolvers<void>();
  ledger.add = async (...args) => {
    most = Math.max(most, ++inFlight);
    await released.promise;
    const time = await add(...args);
    inFlight--;
    return time;
  };
  const { recorder, call } = await scene.start({ ledger });
  call();
  const flushes = Array.from({ length: 30 }, () => {
    scene.pass(5_000); // 150 seconds in total
    return recorder.flush();
  });
  await new Promise((resolve) => setTimeout(resolve));
  released.resolve();
  await Promise.all(flushes);
  await recorder.stop();
  assertEquals([most, await scene.calls()], [1, 1]);
  assertEquals(await scene.sessions(), [[0, 150_000, "stopped"]]);
});

Deno.test("Recorder adds every call to the metrics once, even if the ledger fails", async () => {
  await using scene = await openScene();
  let [sum, recording] = [0, -1];
  const metrics: RecorderOptions["metrics"] = {
    add: (counts) => sum += counts.reduce((calls, count) => calls + count.calls, 0),
    setRecording: (isRecording) => recording = Number(isRecording),
    announce() {},
  };
  const { ledger, failure } = failing(scene.open());
  const { recorder, call } = await scene.start({ ledger, metrics });
  failure.when = "before";
  for (let round = 1; round <= 4; round++) {
    call();
    await recorder.flush();
    assertEquals([sum, recording], [round, 0]);
  }
  failure.when = undefined;
  call();
  await recorder.stop();
  assertEquals([sum, recording], [5, 1]);
});

/**
 * What happens before some of the three flushes of a process, five seconds apart, or in the middle
 * one, once its time was read: how far the database's clock jumps, and how far the process's own goes
 * on.
 */
const JUMPS: [what: string, at: number[], database: number, lifetime: number, sessions: Row[]][] = [
  ["sleeps for an hour", [1], HOUR, 0, [[0, 5_000, "lapsed"], [HOUR + 10_000, HOUR + 15_000]]],
  ["sleeps for a minute", [1], MINUTE, 0, [[0, 5_000, "lapsed"], [70_000, 75_000]]],
  ["sleeps for less", [1], MINUTE - 1, 0, [[0, 74_999]]],
  ["sleeps for less, twice", [1, 2], MINUTE - 1, 0, [[0, 134_998]]],
  ["is stopped, and continued", [1], HOUR, HOUR, [[0, HOUR + 15_000]]],
  ["had booted three days slow", [0], 3 * DAY, 0, [
    [0, 0, "lapsed"],
    [3 * DAY + 5_000, 3 * DAY + 15_000],
  ]],
  ["sleeps before it stops", [2], HOUR, 0, [
    [0, 10_000, "lapsed"],
    [HOUR + 15_000, HOUR + 15_000],
  ]],
  ["sleeps in a flush", [1.5], HOUR, 0, [[0, 5_000, "lapsed"], [HOUR + 10_000, HOUR + 15_000]]],
  ["has its clock set back", [1], -DAY, 0, [[0, 5_000]]],
];

for (const [what, at, database, lifetime, sessions] of JUMPS) {
  Deno.test(`Recorder extends its session over time that it lived through: the machine ${what}`, async () => {
    await using scene = await openScene();
    const { clocks, pass } = scene;
    const jump = () => {
      clocks.here += database;
      clocks.database += database;
      clocks.lifetime += lifetime;
    };
    const ledger = scene.open();
    const [begin, add] = [ledger.begin.bind(ledger), ledger.add.bind(ledger)];
    let parts = 0;
    ledger.add = (...args) => {
      if (++parts === 2 && at.includes(1.5)) jump();
      return add(...args);
    };
    const { recorder, events, call } = await scene.start({ ledger });
    let made = 0;
    ledger.begin = async (...args) => {
      if (!at.includes(1.5)) assertEquals(await scene.calls(), made, "recorded before it lapses");
      return await begin(...args);
    };
    for (const number of [0, 1, 2]) {
      pass(5_000);
      call();
      made++;
      if (at.includes(number)) jump();
      await (number === 2 ? recorder.stop() : recorder.flush());
      assertEquals(await scene.calls(), made);
    }
    assertEquals(await scene.sessions(), timesOf(sessions));
    assertEquals(await scene.ledger.started(), NOON);
    const began = sessions.slice(1).map(() => ({ event: "session", ...PROCESS_FACTS }));
    assertEquals(events.map(({ session, ...rest }) => session ? rest : {}), began);
    if (began.length > 0) assertEquals(events[0]?.["session"], recorder.session);
  });
}

Deno.test("Recorder begins one session only, where it is not known whether it was registered", async () => {
  await using scene = await openScene();
  const ledger = scene.open();
  const { recorder, events, call } = await scene.start({ ledger });
  const begin = ledger.begin.bind(ledger);
  ledger.begin = async (...args) => {
    await begin(...args);
    ledger.begin = begin;
    return await down();
  };
  scene.clocks.here += HOUR;
  scene.clocks.database += HOUR;
  call();
  await recorder.flush();
  scene.pass(5_000);
  await recorder.stop();
  assertEquals(await scene.sessions(), timesOf([[0, 0, "lapsed"], [HOUR + 5_000, HOUR + 5_000]]));
  assertEquals([await scene.calls(), ...events.map(({ event }) => event)], [1, "error", "session"]);
});

const LOST =
  "The ledger does not have this process's last heartbeat, as if it had been restored, " +
  "replaced or copied. The record of calls starts again in a day";

/** What happens to a session [0, 10 s] of a running process, and its sessions at the end. */
const LOSSES: [what: string, sessions: Row[], calls: number][] = [
  ["an earlier copy", [[0, 5_000, "lapsed"], [15_000, 20_000]], 3],
  ["an earlier copy while it sleeps", [
    [0, 5_000, "lapsed"],
    [HOUR + 15_000, HOUR + 20_000],
  ], 2],
  ["a copy from before it started", [[15_000, 20_000]], 2],
  ["what another life of the process recorded", [
    [0, 10_000, "lapsed"],
    [15_000, 20_000],
  ], 4],
];

for (const [what, sessions, calls] of LOSSES) {
  Deno.test(`Recorder finds its session otherwise: ${what}`, async () => {
    await using scene = await openScene();
    const { clocks, ledger, pass } = scene;
    await begin(ledger, "0");
    let restore = what.includes("before it started") ? await scene.copy() : undefined;
    const { recorder, intents, events, call } = await scene.start();
    const { session: id } = recorder;
    assert(await intents.hold(ROUTE));
    for (const _ of [1, 2]) {
      pass(5_000);
      call();
      await recorder.flush();
      if (what.includes("copy")) restore ??= await scene.copy();
    }
    await restore?.();
    const own = await ledger.session(id);
    if (what.includes("another life") && own !== undefined) {
      await ledger.add({ counts: [], at: NOON }, own, FOREVER);
    }
    const isAsleep = what.includes("sleeps");
    if (isAsleep) {
      clocks.here += HOUR;
      clocks.database += HOUR;
    }
    for (const round of [1, 2]) {
      pass(5_000);
      if (!isAsleep || round === 2) call();
      if (round === 2) assertEquals(intents.isHeld(ROUTE), false, "whoever calls now has to ask");
      await (round === 1 ? recorder.flush() : recorder.stop());
      assertEquals(recorder.unrecorded(), 0, "the new session has what is left");
    }
    const [other, ...others] = await scene.sessions();
    assertEquals(other, [0, 0, undefined], "another server's session stays open");
    assertEquals(others, timesOf(sessions));
    assertEquals(events.length, 1);
    assertStringIncludes(String(events[0]?.["message"]), LOST);
    const facts = { session: recorder.session, ...PROCESS_FACTS };
    assertEquals(events[0], { ...events[0], event: "warning", ...facts });
    const restarted = others.at(-1)?.[0] as number;
    assertEquals(await ledger.started(), NOON + restarted + LEASE_MS);
    assertEquals(await scene.calls(), calls, "no other call is lost");
  });
}

/** What becomes of a part that was committed or not, and of its session, before it is sent again. */
const OUTCOMES: [isCommitted: boolean, then: "nothing" | "restored", sessions: Row[]][] = [
  [true, "nothing", [[0, 10_000]]],
  [false, "nothing", [[0, 10_000]]],
  [true, "restored", [[0, 10_000]]],
];

for (const [isCommitted, then, sessions] of OUTCOMES) {
  Deno.test(`Recorder sends a part again as it was: committed ${isCommitted}, then ${then}`, async () => {
    await using scene = await openScene();
    const { ledger, failure } = failing(scene.open());
    const { recorder, call } = await scene.start({ ledger });
    const restore = await scene.copy();
    scene.pass(5_000);
    for (let index = 0; index < 150; index++) call(`App-${nameOf(index)}`);
    failure.when = isCommitted ? "after" : "before";
    await recorder.flush();
    failure.when = undefined;
    if (then === "restored") await restore();
    scene.pass(5_000);
    for (let index = 0; index < 120; index++) call(`App-${nameOf(index)}`); // the same rows
    await recorder.stop();
    const [first, again, ...others] = failure.sent;
    assertEquals([first?.counts.length, again], [MAX_PART_ROWS, first]);
    if (then === "nothing") {
      assertEquals(others.map(({ counts, heartbeat }) => [counts.length, heartbeat?.isStopped]), [
        [100, undefined],
        [50, true],
      ]);
    }
    assertEquals([await scene.calls(), recorder.unrecorded()], [270, 0]);
    assertEquals(await scene.sessions(), timesOf(sessions));
    assertEquals(await scene.ledger.started(), NOON);
  });
}

/** A name of letters for each number. */
function nameOf(index: number): string {
  return `${index}`.replaceAll(/\d/g, (digit) => "abcdefghij"[Number(digit)] as string);
}

Deno.test("Recorder flushes in small parts, the last one with a heartbeat, and yields to requests", async () => {
  await using scene = await openScene();
  const ledger = scene.open();
  const add = ledger.add.bind(ledger);
  const parts: [rows: number, reported: number | undefined][] = [];
  ledger.add = async (part, session, livedUntil) => {
    scene.pass(MINUTE - 1);
    const time = await add(part, session, livedUntil);
    parts.push([part.counts.length, (await scene.ledger.session(session.id))?.reported]);
    return time;
  };
  const { recorder, events, call } = await scene.start({ ledger });
  scene.pass(5_000);
  for (let index = 0; index < 450; index++) call(`App-${nameOf(index)}/1.0`);
  let turns = 0;
  const counting = setInterval(() => turns++);
  await recorder.flush();
  clearInterval(counting);
  assertEquals(parts, [...Array(4).fill([100, NOON]), [50, NOON + 5_000 + 5 * (MINUTE - 1)]]);
  assert(turns >= 3, `${turns} turns`);
  const dates = await Array.fromAsync(scene.ledger.usage(""), ({ last }) => last);
  // Each part is dated with the latest time that is known: no earlier than its calls.
  const times = Array.from({ length: 5 }, (_, part) => NOON + 5_000 + part * (MINUTE - 1));
  assertEquals([dates.length, ...new Set(dates)], [450, ...times]);
  await recorder.stop();
  assertEquals(events, [], "no clock is wrong, however long a flush takes");
});

Deno.test("Recorder settles what came before it took counts, and dates counts by a time after that", async () => {
  await using scene = await openScene();
  scene.pass(DAY / 2 - 5_000); // five seconds before midnight
  const ledger = scene.open();
  const { recorder, intents, call } = await scene.start({ ledger });
  assert(await intents.hold(ROUTE));
  scene.pass(4_999);
  const time = ledger.time.bind(ledger);
  ledger.time = async () => {
    const read = await time();
    ledger.time = time;
    scene.pass(2);
    call(); // after the first reading
    return read;
  };
  await recorder.flush();
  assertEquals(await Array.fromAsync(scene.ledger.usage(""), ({ day }) => day), ["2027-02-02"]);
  const midnight = NOON + DAY / 2;
  assertEquals((await scene.ledger.intents()).map(({ settled }) => settled), [midnight - 1]);
  assertEquals(await scene.sessions(), [[DAY / 2 - 5_000, DAY / 2 + 1, undefined]]);
  await recorder.stop();
});

Deno.test("Recorder dates calls by the ledger's time, and says that the machine's clock is wrong", async () => {
  const offsets = [0, MINUTE - 1, -MINUTE + 1, MINUTE, -MINUTE, -20 * DAY, 20 * DAY, 0];
  await using scene = await openScene();
  const { clocks, pass } = scene;
  const { recorder, events, call } = await scene.start();
  for (const offset of offsets) {
    pass(5_000);
    clocks.here = clocks.database + offset;
    call();
    await recorder.flush();
    const isOff = Math.abs(offset) >= MINUTE;
    const fault = isOff ? "the clock here is not the database's (see the log)" : undefined;
    assertEquals(recorder.fault, fault, `${offset}`);
  }
  await recorder.stop();
  assertEquals(await scene.sessions(), [[0, 40_000, "stopped"]]);
  const rows = await Array.fromAsync(scene.ledger.usage(""), ({ day, calls }) => [day, calls]);
  assertEquals(rows, [["2027-02-01", offsets.length]]);
  assertEquals(events.map(({ event }) => event), ["error"], "the rest is counted");
  assertStringIncludes(
    String(events[0]?.["cause"]),
    "it is 2027-02-01T12:01:20.000Z here, but 2027-02-01T12:00:20.000Z in the database",
  );
});

Deno.test("Recorder keeps the names of recent clients across a restart", async () => {
  await using scene = await openScene();
  const recent = { ...COUNT, client: "app Recent", calls: 1, last: NOON - 7 * DAY };
  const older = { ...recent, client: "app Older", last: NOON - 8 * DAY };
  await addRows(scene.ledger, [recent, older]);
  const { recorder, call } = await scene.start();
  for (let index = 0; index < 1_100; index++) {
    for (const _ of [1, 2]) call(`Invented-${nameOf(index)}`);
  }
  for (const name of ["Recent", "Older"]) call(name);
  await recorder.stop();
  const rows = await Array.fromAsync(scene.ledger.usage("2027-02-01"), ({ client }) => client);
  assertEquals(rows.length, MAX_NEW_NAMES_A_DAY + 2);
  assertEquals([rows.includes("app Recent"), rows.includes("app Older")], [true, false]);
});

Deno.test("Recorder deletes expired days, once a day", async () => {
  await using scene = await openScene();
  const days = ["2026-12-31", "2027-01-01", "2027-01-02", "2027-01-03", "2027-02-01"];
  await addRows(
    scene.ledger,
    days.map((day) => ({ ...COUNT, client: "curl", calls: 1, last: Date.parse(day) })),
  );
  const ledger = scene.open();
  const forget = ledger.forget.bind(ledger);
  const forgotten: string[] = [];
  ledger.forget = async (day, now) => {
    const isDone = await forget(day, now);
    if (isDone) forgotten.push(day);
    return isDone;
  };
  const { recorder } = await scene.start({ ledger });
  await recorder.flush();
  assertEquals(forgotten, [], "only where somebody counted a day ago");
  for (const passed of [DAY - 5_000, 3_600_000, 5_000, DAY]) {
    scene.pass(passed);
    await recorder.flush();
  }
  await recorder.stop();
  assertEquals(forgotten, ["2027-01-03", "2027-01-04"]);
  assertEquals(await Array.fromAsync(scene.ledger.usage(""), ({ day }) => day), ["2027-02-01"]);
});

Deno.test("Recorder deletes every intent at the stop, where the machine slept before it, too", async () => {
  await using scene = await openScene();
  const { recorder, serve } = await scene.start();
  assert(await serve());
  scene.sleep(HOUR);
  await recorder.stop();
  const lapsed: Row[] = [[0, 0, "lapsed"], [HOUR, HOUR]];
  assertEquals([await scene.sessions(), await scene.calls()], [timesOf(lapsed), 1]);
  assertEquals(await scene.ledger.intents(), []);
});

Deno.test("Recorder deletes an intent after a flush that failed before its heartbeat was sent", async () => {
  for (const fault of ["the time", "the first part"]) {
    await using scene = await openScene();
    const ledger = scene.open();
    const [time, add] = [ledger.time.bind(ledger), ledger.add.bind(ledger)];
    const { recorder, serve, call } = await scene.start({ ledger });
    assert(await serve());
    await recorder.flush();
    for (let index = 0; index < 150; index++) call(`App-${nameOf(index)}`); // it needs no intent
    scene.pass(10 * MINUTE);
    ledger.time = async () => {
      const read = await time();
      if (fault === "the time") ledger.time = down; // when it is read again
      return read;
    };
    if (fault === "the first part") ledger.add = down;
    await recorder.flush();
    Object.assign(ledger, { time, add });
    for (const _ of [1, 2]) await recorder.flush();
    assertEquals([await scene.ledger.intents(), await scene.calls()], [[], 151], fault);
    assert(recorder.intents.isEmpty);
    await recorder.stop();
  }
});

Deno.test("Recorder says that the ledger takes no intent, and in the log why", async () => {
  await using scene = await openScene();
  const ledger = scene.open();
  const { recorder, serve, events } = await scene.start({ ledger });
  ledger.intend = down; // as where the user may not write to its table
  assertEquals(await serve(), false);
  await recorder.flush();
  assertStringIncludes(String(recorder.fault), "calls to old paths are refused");
  assertEquals(events.map(({ event, session }) => [event, session]), [["error", recorder.session]]);
  assertStringIncludes(String(events[0]?.["cause"]), "down");
  await recorder.stop();
});

for (const outcome of ["is slow", "fails"]) {
  Deno.test(`Recorder has one flush wait, and a stop wait for no other, where the ledger ${outcome}`, async () => {
    await using scene = await openScene();
    using timers = fakeTimers();
    const ledger = scene.open();
    const { recorder, call } = await scene.start({ ledger });
    const time = ledger.time.bind(ledger);
    const underWay = Promise.withResolvers<void>();
    let readings = 0;
    ledger.time = async () => {
      readings++;
      await underWay.promise;
      return await time();
    };
    for (let made = 0; made < 100; made++) {
      call(`App-${nameOf(made)}`);
      if (made % 10 === 0) recorder.flush(); // as every five seconds
      await timers.pass(50);
    }
    assertEquals(readings, 1);
    const stopped = recorder.stop();
    if (outcome === "fails") underWay.reject(new StorageError("sqlite", "down"));
    else underWay.resolve();
    ledger.time = () => {
      readings++;
      return time();
    };
    await stopped;
    assertEquals(readings, 2, "the flush under way, and the last one");
    assertEquals([await scene.calls(), recorder.unrecorded()], [100, 0]);
    assertEquals((await scene.sessions())[0]?.[2], "stopped");
  });
}
