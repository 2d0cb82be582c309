import { assert, assertEquals } from "@std/assert";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { Intents } from "../../../lib/usage/record/intents.ts";
import { LEASE_MS } from "../../../lib/usage/record/records.ts";
import { NOON } from "../../support/counted_call.ts";
import { fakeTimers } from "../../support/fake_timers.ts";

const ROUTE = "/audio/:token";
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** What the ledger answers to an intent, sooner or later. */
type Answer = boolean | StorageError | Promise<boolean>;

const DOWN = new StorageError("sqlite", "down");

/** The intents of a process at noon, with its clocks, and what it has sent. */
function openScene(answer: () => Answer = () => true) {
  const clocks = { lifetime: 7.5, time: NOON };
  const ledger = { answer, catchUp: () => Promise.resolve(), catchUps: 0 };
  const written: { readonly id: string; readonly route: string }[] = [];
  const intents = new Intents({
    async write(intent) {
      written.push(intent);
      const answer = await ledger.answer();
      if (answer instanceof StorageError) throw answer;
      return answer;
    },
    catchUp() {
      ledger.catchUps++;
      return ledger.catchUp();
    },
    clock: () => clocks.time,
    lifetime: () => clocks.lifetime,
  });
  return {
    clocks,
    ledger,
    written,
    intents,
    pass(time: number) {
      clocks.lifetime += time;
      clocks.time += time;
    },
    /** Sends a heartbeat, as a flush does that takes no time. */
    heartbeat() {
      const pending = intents.takeHeartbeat();
      intents.confirm(pending);
      return pending.intents;
    },
    idOf: (index: number) => written[index]?.id ?? "",
  };
}

/** How far both clocks go on after an intent was sent, and whether it is held then. */
const LEASES: [what: string, lifetime: number, time: number, isHeld: boolean][] = [
  ["at once", 0, 0, true],
  ["before the lease has passed", LEASE_MS - 1, LEASE_MS - 1, true],
  ["after it", LEASE_MS, LEASE_MS, false],
  ["the machine slept", 5_000, LEASE_MS, false],
  ["its clock was set back to the start", LEASE_MS, 0, false],
  ["its clock was set back before that", 5_000, -1, false],
  ["its lifetime goes back", -1, 5_000, false],
];

Deno.test("Intents hold one for a day by each of both clocks, neither of which may have gone back", async () => {
  for (const [what, lifetime, time, isHeld] of LEASES) {
    const { intents, clocks, written } = openScene();
    assertEquals([intents.isHeld(ROUTE), intents.isEmpty], [false, true]);
    assert(await intents.hold(ROUTE));
    assertEquals(intents.isHeld("/video/:token"), false, "of this route only");
    clocks.lifetime += lifetime;
    clocks.time += time;
    assertEquals(intents.isHeld(ROUTE), isHeld, what);
    assert(await intents.hold(ROUTE), what);
    assertEquals([written.length, intents.isHeld(ROUTE)], [isHeld ? 1 : 2, true], what);
  }
});

Deno.test("Intents count the lease from when the intent was sent, not from its confirmation", async () => {
  const answered = Promise.withResolvers<boolean>();
  const { intents, pass } = openScene(() => answered.promise);
  const held = intents.hold(ROUTE);
  pass(1_500);
  answered.resolve(true);
  assert(await held);
  pass(LEASE_MS - 1_501);
  assert(intents.isHeld(ROUTE));
  pass(1);
  assert(!intents.isHeld(ROUTE));
});

Deno.test("Intents do not hold one that the ledger has confirmed after its lease, as to a machine that slept", async () => {
  const answered = Promise.withResolvers<boolean>();
  const { intents, clocks, heartbeat, idOf } = openScene(() => answered.promise);
  const held = intents.hold(ROUTE);
  clocks.time += LEASE_MS;
  answered.resolve(true);
  assertEquals([await held, intents.isHeld(ROUTE)], [true, true], "by another one");
  assertEquals(heartbeat().kept, [idOf(1)], "the first one is deleted");
});

Deno.test("Intents ask once for all calls that wait for a route", async () => {
  const { intents, written } = openScene();
  const routes = [ROUTE, ROUTE, "/video/:token", ROUTE];
  assertEquals(await Promise.all(routes.map((route) => intents.hold(route))), Array(4).fill(true));
  assertEquals(written.map(({ route }) => route), [ROUTE, "/video/:token"]);
  assert(written[0]?.id !== written[1]?.id);
});

Deno.test("Intents ask again for a void one, under another id, once the session is known", async () => {
  using timers = fakeTimers();
  const scene = openScene();
  scene.ledger.answer = () => scene.written.length > 1;
  const flushed = Promise.withResolvers<void>();
  scene.ledger.catchUp = () => flushed.promise;
  const held = scene.intents.hold(ROUTE);
  await timers.pass(1_900);
  assertEquals([scene.written.length, scene.ledger.catchUps], [1, 1]);
  flushed.resolve();
  assert(await held);
  assert(scene.idOf(0) !== scene.idOf(1));
  assertEquals(scene.heartbeat().kept, [scene.idOf(1)]);
});

Deno.test("Intents have a call wait for two seconds in all", async () => {
  const never = new Promise<never>(() => {});
  const [write, flush] = [() => never, () => never];
  const scenes: [what: string, write: (made: number) => Answer, flush: () => Promise<void>][] = [
    ["the ledger does not answer", write, () => Promise.resolve()],
    ["the flush does not end", () => false, flush],
    [
      "the intent is void, and the next one is not answered",
      (made) => made > 1 && never,
      async () => {
        await new Promise((resolve) => setTimeout(resolve, 1_500));
      },
    ],
  ];
  for (const [what, write, flush] of scenes) {
    using timers = fakeTimers();
    const scene = openScene();
    scene.ledger.answer = () => write(scene.written.length);
    scene.ledger.catchUp = flush;
    let held: boolean | undefined;
    scene.intents.hold(ROUTE).then((outcome) => held = outcome);
    await timers.pass(1_999);
    assertEquals(held, undefined, what);
    await timers.pass(1);
    assertEquals([held, scene.intents.isHeld(ROUTE)], [false, false], what);
  }
});

Deno.test("Intents given up are not held, however late they are confirmed, and two heartbeats delete them", async () => {
  using timers = fakeTimers();
  const answered = Promise.withResolvers<boolean>();
  const { intents, heartbeat, idOf } = openScene(() => answered.promise);
  const held = intents.hold(ROUTE);
  await timers.pass(1_000);
  assertEquals(heartbeat().kept, [idOf(0)], "it is asked for");
  await timers.pass(1_000);
  assertEquals(await held, false);
  answered.resolve(true);
  await timers.pass(10);
  assertEquals(intents.isHeld(ROUTE), false);
  for (const isEmpty of [false, true]) { // it may have landed after the first one was written
    assertEquals([heartbeat().kept, intents.isEmpty], [[], isEmpty]);
  }
});

Deno.test("Intents tell who writes one whether it was given up meanwhile", async () => {
  for (const end of ["the patience", "the process"]) {
    using timers = fakeTimers();
    let isStillWanted = () => true;
    const intents = new Intents({
      write: (_, isWanted) => {
        isStillWanted = isWanted;
        return new Promise(() => {});
      },
      catchUp: () => Promise.resolve(),
      clock: timers.now,
      lifetime: timers.now,
    });
    intents.hold(ROUTE);
    await timers.pass(1_999);
    assert(isStillWanted());
    if (end === "the process") intents.close();
    else await timers.pass(1);
    assert(!isStillWanted(), end);
    await timers.pass(1);
  }
});

Deno.test("Intents remain to be sent until a heartbeat is recorded", async () => {
  const scene = openScene(() => DOWN);
  await scene.intents.hold(ROUTE);
  for (let failed = 0; failed < 3; failed++) {
    scene.intents.takeHeartbeat(); // which was not recorded, or not even sent
    assert(!scene.intents.isEmpty);
  }
  scene.heartbeat();
  scene.heartbeat();
  assert(scene.intents.isEmpty);
});

Deno.test("Intents are tried once a second while the ledger takes none, and nobody else waits", async () => {
  const scene = openScene(() => DOWN);
  const { intents, pass, written } = scene;
  assertEquals(await Promise.all([intents.hold(ROUTE), intents.hold("/v1")]), [false, false]);
  assertEquals(
    [written.length, intents.areRefused],
    [4, true],
    "nobody knew, and each asked twice",
  );
  for (let second = 0; second < 5; second++) {
    for (const passed of [0, 400, 599]) {
      pass(passed);
      assertEquals([await intents.hold(ROUTE), await intents.hold("/v1")], [false, false]);
    }
    assertEquals(written.length, 4 + second);
    pass(1);
    await intents.hold(ROUTE);
    assertEquals(written.length, 5 + second);
  }
  pass(1_000);
  const answered = Promise.withResolvers<boolean>();
  scene.ledger.answer = () => answered.promise;
  const trying = intents.hold(ROUTE);
  pass(1_500);
  assertEquals([await intents.hold(ROUTE), await intents.hold("/v1")], [false, false], "at once");
  answered.resolve(true);
  assertEquals([await trying, await intents.hold("/v1")], [true, true], "it is back");
  assert(!intents.areRefused);
});

Deno.test("Intents are asked for again at once where the connection has broken since the last use", async () => {
  const answers = [DOWN, true];
  const { intents, written } = openScene(() => answers.shift() ?? DOWN);
  assert(await intents.hold(ROUTE));
  assert(!intents.areRefused);
  assertEquals(new Set(written.map(({ id }) => id)).size, 2, "under another id");
});

Deno.test("Intents are known to be refused for a minute after the last attempt, since nobody may ask again", async () => {
  const { intents, pass } = openScene(() => DOWN);
  await intents.hold(ROUTE);
  pass(MINUTE - 1);
  assert(intents.areRefused);
  pass(1);
  assert(!intents.areRefused);
});

Deno.test("Intents are given up after ten minutes without a call, and forgotten before that is sent", async () => {
  const scene = openScene();
  const { intents, pass, heartbeat, idOf, written } = scene;
  await intents.hold(ROUTE);
  pass(10 * MINUTE - 1);
  assertEquals(heartbeat(), { kept: [idOf(0)], settled: [idOf(0)], renewed: [] });
  assert(intents.isHeld(ROUTE), "called again");
  pass(10 * MINUTE - 1);
  assertEquals(heartbeat().kept, [idOf(0)]);
  pass(1);
  const pending = intents.takeHeartbeat();
  assertEquals([pending.intents.kept, intents.isHeld(ROUTE)], [[], false]);
  assert(await intents.hold(ROUTE));
  assertEquals(written.length, 2, "under another id");
  intents.confirm(pending);
  assertEquals([intents.isHeld(ROUTE), heartbeat().kept], [true, [idOf(1)]]);
});

Deno.test("Intents of calls in flight are kept, and not settled", async () => {
  const { intents, pass, heartbeat, idOf } = openScene();
  const [first, second] = [await intents.hold(ROUTE), await intents.hold("/v1")];
  assert(first && second);
  const [audio, other] = [idOf(0), idOf(1)];
  intents.arrive(ROUTE);
  intents.arrive(ROUTE);
  assertEquals(heartbeat(), { kept: [audio, other], settled: [other], renewed: [] });
  intents.leave(ROUTE);
  pass(11 * MINUTE);
  assertEquals(heartbeat(), { kept: [audio], settled: [], renewed: [] });
  intents.close();
  assertEquals(heartbeat().kept, [audio], "at the stop, too");
  intents.leave(ROUTE);
  assertEquals(heartbeat().kept, []);
});

Deno.test("Intents are renewed when they are an hour old, from when the heartbeat was first sent", async () => {
  const { intents, pass, idOf } = openScene();
  await intents.hold(ROUTE);
  intents.arrive(ROUTE); // a call that takes two days
  pass(HOUR - 1);
  assertEquals(intents.takeHeartbeat().intents.renewed, []);
  pass(1);
  const lost = intents.takeHeartbeat();
  assertEquals(lost.intents.renewed, [idOf(0)]);
  pass(HOUR);
  const pending = intents.takeHeartbeat();
  pass(3 * HOUR); // the ledger was away
  intents.confirm(pending);
  assertEquals(intents.takeHeartbeat().intents.renewed, [idOf(0)]);
  pass(LEASE_MS - 3 * HOUR - 1);
  assert(intents.isHeld(ROUTE));
  pass(1);
  assert(!intents.isHeld(ROUTE));
});

Deno.test("Intents of a heartbeat that renewed none hold no longer for it", async () => {
  const { intents, pass, heartbeat } = openScene();
  await intents.hold(ROUTE);
  pass(HOUR - 1);
  assertEquals(heartbeat().renewed, []);
  pass(LEASE_MS - HOUR + 1);
  assert(!intents.isHeld(ROUTE));
});

Deno.test("Intents of a closed process are neither held nor asked for", async () => {
  const { intents, written, heartbeat } = openScene();
  await intents.hold(ROUTE);
  intents.close();
  assertEquals([intents.isHeld(ROUTE), await intents.hold(ROUTE), written.length], [
    false,
    false,
    1,
  ]);
  assertEquals(heartbeat().kept, []);
});

for (const answer of [true, false]) {
  Deno.test(`Intents that are being written when the process closes are not held: written ${answer}`, async () => {
    const answered = Promise.withResolvers<boolean>();
    const { intents, written, heartbeat, ledger } = openScene(() => answered.promise);
    const held = intents.hold(ROUTE);
    intents.close();
    assertEquals(heartbeat().kept, [], "the last heartbeat deletes it");
    answered.resolve(answer);
    assertEquals([await held, written.length, ledger.catchUps], [false, 1, 0]);
  });
}

Deno.test("Intents that are not in the next session are not held", async () => {
  const { intents, written, idOf, heartbeat } = openScene();
  await intents.hold(ROUTE);
  await intents.hold("/v1");
  intents.keepOnly([idOf(1)]);
  assertEquals([intents.isHeld(ROUTE), intents.isHeld("/v1")], [false, true]);
  assertEquals(heartbeat().kept, [idOf(1)]);
  assert(await intents.hold(ROUTE));
  assertEquals(written.length, 3);
});

Deno.test("Intents that are being written when the session is replaced are asked for again", async () => {
  const answered = Promise.withResolvers<boolean>();
  const scene = openScene(() => answered.promise);
  const held = scene.intents.hold(ROUTE);
  scene.intents.keepOnly([scene.idOf(0)]);
  answered.resolve(true);
  assert(await held);
  assertEquals(scene.heartbeat().kept, [scene.idOf(1)]);
});
