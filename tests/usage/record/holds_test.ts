/** Holds on record, as processes learn them. */

import { assert, assertEquals } from "@std/assert";
import { momentAt } from "../../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { HeldPolicies, readHolds, type RecordedHold } from "../../../lib/usage/record/holds.ts";
import type { RecorderOptions } from "../../../lib/usage/record/recorder.ts";
import { countOne, DAY, NOON } from "../../support/counted_call.ts";
import { openScene, ROUTE } from "../../support/recorder_scene.ts";

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

type Scene = Awaited<ReturnType<typeof openScene>>;

/** A process in the brownout, and the phase that it announces now. */
async function startIn(scene: Scene, options: Partial<RecorderOptions> = {}) {
  const process = await scene.start({ policies: POLICIES, ...options });
  const phase = () => {
    const { [ROUTE]: policy } = process.recorder.policies;
    return policy && momentAt(policy, scene.clocks.here).phase;
  };
  return { ...process, phase };
}

Deno.test("Recorder learns of a hold, and of its release, with each heartbeat, and at the start", async () => {
  await using scene = await openScene();
  const first = await startIn(scene);
  const { id } = await scene.ledger.hold(HOLD);
  assertEquals(first.phase(), "brownout");
  await scene.pass(5 * SECOND); // an idle process has a heartbeat, too
  assertEquals(first.phase(), "deprecated");
  const second = await startIn(scene);
  assertEquals(second.phase(), "deprecated");
  await scene.ledger.release([id]);
  second.call();
  await scene.pass(5 * SECOND);
  for (const { stop, phase } of [first, second]) {
    assertEquals(phase(), "brownout");
    await stop();
  }
});

Deno.test("Recorder keeps a hold that the ledger cannot tell, or has lost, until it ends", async () => {
  for (const what of ["is away", "was restored"]) {
    await using scene = await openScene();
    const { phase, stop } = await startIn(scene);
    const restore = await scene.copy();
    await scene.ledger.hold(HOLD);
    await scene.pass(5 * SECOND);
    if (what === "is away") scene.faults.write = "away";
    else await restore();
    for (const [pass, expected] of [[0, "deprecated"], [HOUR, "brownout"]] as const) {
      scene.timers.suspend(pass);
      await scene.pass(5 * SECOND);
      assertEquals(phase(), expected, what);
    }
    scene.faults.write = undefined;
    await stop();
  }
});

Deno.test("Recorder holds at once, even if the clock here is behind the database's", async () => {
  await using scene = await openScene();
  scene.clocks.here -= 50 * SECOND;
  const { recorder, phase, stop } = await startIn(scene);
  await scene.ledger.hold(HOLD);
  await scene.pass(5 * SECOND);
  assertEquals(phase(), "deprecated");
  const [hold] = recorder.policies[ROUTE]?.holds ?? [];
  await scene.pass(5 * SECOND);
  assertEquals(recorder.policies[ROUTE]?.holds?.[0], hold, "and since then");
  await stop();
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
  const { events, phase, stop } = await startIn(scene, { onHold, metrics });
  await scene.ledger.hold({ ...HOLD, because: "a\nb" });
  await scene.pass(15 * SECOND);
  assertEquals([phase(), changes], ["brownout", []]);
  assertEquals(events.map(({ event }) => event), ["warning"]);
  const { id } = await scene.ledger.hold(HOLD);
  await scene.pass(15 * SECOND);
  assertEquals(changes.splice(0), ["on hold", "announced 2"]);
  await scene.ledger.release([id]);
  await scene.pass(15 * SECOND);
  assertEquals(changes, ["on hold", "announced 2"]);
  await stop();
});

Deno.test("Recorder keeps counts of a brownout's parts apart", async () => {
  await using scene = await openScene();
  const { recorder, stop } = await startIn(scene);
  const count = () => {
    const { [ROUTE]: policy } = recorder.policies;
    assert(policy !== undefined);
    const moment = momentAt(policy, scene.clocks.here);
    countOne(recorder.meter, { userAgent: "curl", policy, moment });
  };
  count();
  await scene.ledger.hold({ ...HOLD, until: NOON + 60 * SECOND });
  await scene.pass(60 * SECOND);
  count();
  await stop();
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

/** What a process learns of one hold, one after another, and when the hold begins and ends then. */
const LEARNED: [
  what: string,
  rows: Partial<RecordedHold>[],
  hold?: [start: number, end: number],
][] = [
  ["whole seconds", [{ since: NOON + 1, released: NOON + 10_001 }], [NOON, NOON + 11 * SECOND]],
  ["no hold that was released as it began", [{ released: NOON }]],
  ["no hold that was released before", [{ released: NOON - HOUR }]],
  ["no other end", [{}, { until: NOON + HOUR }], [NOON, NOON + DAY]],
  ["no other beginning", [{}, { since: NOON + HOUR }], [NOON, NOON + DAY]],
  ["no other route", [{}, { route: "/other" }], [NOON, NOON + DAY]],
  ["the release of one that was rewritten", [{}, {
    ...{ route: "/other", since: NOON + HOUR, until: NOON + HOUR, released: NOON + SECOND },
  }], [NOON, NOON + SECOND]],
];

Deno.test("HeldPolicies learns of each hold, and then only of its release", () => {
  for (const [what, rows, hold] of LEARNED) {
    const held = new HeldPolicies(POLICIES, () => NOON + 5 * SECOND);
    const changes = rows.map((row) => {
      const learned = { ...HOLD, id: "a", since: NOON, until: NOON + DAY, released: undefined };
      const known = held.current;
      const { hasChanged } = held.learn({ holds: [{ ...learned, ...row }], faults: [] });
      assertEquals(hasChanged, held.current !== known, what);
      return hasChanged;
    });
    assertEquals(changes, rows.map((row, index) => index === 0 || "released" in row), what);
    if (hold === undefined) assertEquals(held.current, POLICIES, what); // no brownout is cut
    else assertEquals(held.current[ROUTE]?.holds?.map(({ start, end }) => [start, end]), [hold]);
  }
});
