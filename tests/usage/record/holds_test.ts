/** Holds on record, as processes learn them. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { momentAt } from "../../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { HeldPolicies, readHolds, type RecordedHold } from "../../../lib/usage/record/holds.ts";
import type { Recorder, RecorderOptions } from "../../../lib/usage/record/recorder.ts";
import { DAY, NOON } from "../../support/counted_call.ts";
import { down, openScene, ROUTE } from "../../support/recorder_scene.ts";

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

const POLICIES = {
  [ROUTE]: definePolicy({
    deprecatedAt: "2027-01-01",
    brownouts: ["2027-02-01T10:00Z/PT6H"],
    sunsetAt: "2027-06-30",
  }),
};

const HOLD = { route: ROUTE, until: NOON + HOUR, because: "billing is down" };

/** A process in the brownout, and what it announces now. */
async function startIn(scene: Scene, options: Partial<RecorderOptions> = {}) {
  const process = await scene.start({ policies: POLICIES, ...options });
  return {
    ...process,
    phase: () => phaseOf(process.recorder, scene),
    [Symbol.asyncDispose]: () => process.recorder.stop(),
  };
}

type Scene = Awaited<ReturnType<typeof openScene>>;

function phaseOf({ policies }: Recorder, { clocks }: Scene) {
  const { [ROUTE]: policy } = policies;
  return policy && momentAt(policy, clocks.here).phase;
}

Deno.test("Recorder learns of a hold, and of its release, with each heartbeat, and at the start", async () => {
  await using scene = await openScene();
  await using first = await startIn(scene);
  const { id } = await scene.ledger.hold(HOLD);
  assertEquals(first.phase(), "brownout");
  scene.pass(5 * SECOND);
  await first.recorder.flush(); // of an idle process
  assertEquals(first.phase(), "deprecated");
  await using second = await startIn(scene);
  assertEquals(second.phase(), "deprecated");
  await scene.ledger.release([id]);
  for (const { call, recorder, phase } of [first, second]) {
    scene.pass(5 * SECOND);
    call();
    await recorder.flush();
    assertEquals(phase(), "brownout");
  }
});

Deno.test("Recorder learns of a hold with the write of an intent", async () => {
  await using scene = await openScene();
  await using process = await startIn(scene);
  const { phase, serve } = process;
  await scene.ledger.hold(HOLD);
  assert(await serve());
  assertEquals(phase(), "deprecated");
});

Deno.test("Recorder does not register a process that cannot read the holds", async () => {
  await using scene = await openScene();
  const ledger = scene.open();
  ledger.holds = down;
  await assertRejects(() => startIn(scene, { ledger }), StorageError, "down");
  assertEquals(await scene.sessions(), []);
});

Deno.test("Recorder keeps a hold that the ledger cannot tell, or has lost, until it ends", async () => {
  for (const what of ["is away", "was restored"]) {
    await using scene = await openScene();
    const ledger = scene.open();
    await using process = await startIn(scene, { ledger });
    const { recorder, phase } = process;
    const restore = await scene.copy();
    await scene.ledger.hold(HOLD);
    await recorder.flush();
    const { add, holds } = ledger;
    if (what === "is away") ledger.add = ledger.holds = down;
    else await restore();
    for (const [pass, expected] of [[5 * SECOND, "deprecated"], [HOUR, "brownout"]] as const) {
      scene.pass(pass);
      await recorder.flush();
      assertEquals(phase(), expected, what);
    }
    Object.assign(ledger, { add, holds });
  }
});

Deno.test("Recorder holds at once, even if the clock here is behind the database's", async () => {
  await using scene = await openScene();
  scene.clocks.here -= 50 * SECOND;
  await using process = await startIn(scene);
  const { recorder, phase } = process;
  await scene.ledger.hold(HOLD);
  await recorder.flush();
  assertEquals(phase(), "deprecated");
  const [hold] = recorder.policies[ROUTE]?.holds ?? [];
  await recorder.flush();
  scene.pass(5 * SECOND);
  await recorder.flush();
  assertEquals(recorder.policies[ROUTE]?.holds?.[0], hold, "and since then");
});

Deno.test("Recorder says once that a hold has changed the policies, and that a wrong one is ignored", async () => {
  await using scene = await openScene();
  const changes: string[] = [];
  const metrics: RecorderOptions["metrics"] = {
    add() {},
    setRecording() {},
    announce: (policies) => changes.push(`announced ${policies[ROUTE]?.brownouts.length}`),
  };
  const onHold = () => changes.push("on hold");
  await using process = await startIn(scene, { onHold, metrics });
  const { recorder, events, phase } = process;
  await scene.ledger.hold({ ...HOLD, because: "a\nb" });
  for (let round = 0; round < 3; round++) {
    scene.pass(5 * SECOND);
    await recorder.flush();
  }
  assertEquals([phase(), changes], ["brownout", []]);
  assertEquals(events.map(({ event }) => event), ["warning"]);
  const { id } = await scene.ledger.hold(HOLD);
  for (let round = 0; round < 3; round++) await recorder.flush();
  assertEquals(changes.splice(0), ["on hold", "announced 2"]);
  scene.pass(SECOND);
  await scene.ledger.release([id]);
  for (let round = 0; round < 3; round++) await recorder.flush();
  assertEquals(changes, ["on hold", "announced 2"]);
});

Deno.test("Recorder keeps counts of a brownout's parts apart", async () => {
  await using scene = await openScene();
  await using process = await startIn(scene);
  const { recorder } = process;
  const count = () => {
    const policy = recorder.policies[ROUTE];
    assert(policy !== undefined);
    const moment = momentAt(policy, scene.clocks.here);
    const answer = { route: ROUTE, method: "HEAD", status: 503, breaks: true, policy, moment };
    recorder.meter.counterFor(answer).count(new Headers({ "User-Agent": "curl" }));
  };
  count();
  await scene.ledger.hold({ ...HOLD, until: NOON + 60 * SECOND });
  await recorder.flush();
  scene.pass(60 * SECOND);
  count();
  await recorder.flush();
  const rows = await Array.fromAsync(scene.ledger.usage(""));
  assertEquals(rows.map(({ brownout, calls }) => [brownout, calls]), [
    ["2027-02-01T10:00:00Z", 1],
    ["2027-02-01T12:01:00Z", 1],
  ]);
});

Deno.test("readHolds() ignores each row that the command cannot have recorded, and says so", () => {
  const row = ["a", ROUTE, NOON, NOON + 90 * DAY, null, "b"];
  const change = (at: number, value: unknown) => row.with(at, value as string);
  const right = [row, change(1, null), change(4, NOON - 1), change(5, "x".repeat(200))];
  const wrong = [
    [],
    change(0, null),
    change(1, 5),
    change(1, "a\u202e"),
    change(2, "0"),
    change(2, NOON + 0.5),
    change(2, NOON - 1),
    change(2, -8.64e15 - 1),
    change(3, NOON),
    change(3, NOON - 1),
    change(3, null),
    change(4, "0"),
    change(5, null),
    change(5, " "),
    change(5, "a\nb"),
    change(5, "x".repeat(201)),
  ];
  assertEquals(readHolds(right).holds.length, right.length);
  const { holds, faults } = readHolds([...wrong, row]);
  assertEquals([holds.length, faults.length], [1, wrong.length]);
  assertEquals(
    faults[3],
    `a hold is ignored: ["a","a\\u202e",${NOON},${NOON + 90 * DAY},null,"b"]`,
  );
});

Deno.test("HeldPolicies counts a hold from the second in which it began to the second in which it ends", () => {
  const held = new HeldPolicies(POLICIES, () => NOON + 5 * SECOND);
  const hold: RecordedHold = {
    ...HOLD,
    id: "a",
    since: NOON + 1,
    until: NOON + DAY,
    released: NOON + 10_001,
  };
  held.learn({ holds: [hold], faults: [] });
  const [{ start, end } = { start: 0, end: 0 }] = held.current[ROUTE]?.holds ?? [];
  assertEquals([start, end], [NOON, NOON + 11 * SECOND]);
});

Deno.test("HeldPolicies takes a hold that was released before it began for none", () => {
  const held = new HeldPolicies(POLICIES, () => NOON);
  for (const released of [NOON, NOON - HOUR]) {
    held.learn({
      holds: [{ ...HOLD, id: "a", since: NOON, until: NOON + HOUR, released }],
      faults: [],
    });
    assertEquals(held.current, POLICIES, "no part of the brownout ends before");
  }
});

Deno.test("HeldPolicies learns only the release of a hold that it knows", () => {
  const hold = { ...HOLD, id: "a", since: NOON, until: NOON + DAY, released: undefined };
  const rewritten: Partial<RecordedHold>[] = [
    { until: NOON + HOUR },
    { since: NOON + HOUR },
    { route: "/other" },
  ];
  for (const change of rewritten) {
    const held = new HeldPolicies(POLICIES, () => NOON);
    held.learn({ holds: [hold], faults: [] });
    const known = held.current;
    assertEquals(held.learn({ holds: [{ ...hold, ...change }], faults: [] }).hasChanged, false);
    assertEquals(held.current, known);
    held.learn({ holds: [{ ...hold, ...change, released: NOON + SECOND }], faults: [] });
    assertEquals(held.current[ROUTE]?.holds?.map(({ end }) => end), [NOON + SECOND]);
  }
});
