/** The record of calls against the truth, whatever happens to servers, database and clocks. */

import { assert, assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import type { Verdict } from "../../../lib/usage/verdict/verdict.ts";
import { randomFrom } from "../../support/random.ts";
import { AUDIO, VIDEO, World } from "../../support/record_world.ts";

const RUNS = 200;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const BOTH = [AUDIO, VIDEO];

type Action =
  | "start"
  | "call"
  | "pass"
  | "stop"
  | "crash"
  | "set"
  | "answerWhileFlushing"
  | "jump"
  | "setBack"
  | "copy"
  | "restore"
  | "failover"
  | "gone"
  | "restart"
  | "gate";

type Step = { [A in Action]: readonly [A, ...Parameters<World[A]>] }[Action];

/**
 * Takes steps, a second each. Then the operator says what is true, and days later the record is complete.
 *
 * @returns The verdicts on the way.
 */
async function run(steps: readonly Step[]): Promise<unknown[]> {
  const idle = setInterval(() => {});
  clearInterval(idle);
  using _ = stub(globalThis, "setInterval", () => idle); // servers flush when the world says so
  await using world = await World.open();
  const verdicts: unknown[] = [];
  for (const [action, ...parameters] of steps) {
    const act = world[action] as (...parameters: unknown[]) => unknown;
    const result = await act.apply(world, parameters);
    if (action === "gate") verdicts.push(result);
    await world.pass(1_000);
  }
  await world.calmDown();
  assertEquals(await world.gate(1, BOTH, { atMost: 0 }), "clear", "three days later");
  await world.stop(3);
  await world.pass(2 * HOUR);
  assertEquals(await world.gate(1, BOTH, { atMost: 0, mayTrust: false }), "unknown", "stopped");
  await world.start(3);
  await world.pass(HOUR);
  assertEquals(await world.gate(1, BOTH, { atMost: 0 }), "clear", "the stop is trusted");
  return verdicts;
}

/** Returns random steps, of which most are those that matter most. */
function randomSteps(seed: number): Step[] {
  const random = randomFrom(Math.imul(seed, 0x9e3779b1));
  const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)] as T;
  const slot = () => pick([0, 0, 1, 1, 2]);
  const long = () =>
    pick([MINUTE / 2, MINUTE - 1_000, MINUTE + 1_000, 10 * MINUTE, HOUR, DAY, DAY, 3 * DAY]);
  const usual: [weight: number, make: () => Step][] = [
    [4, () => ["start", slot(), pick([BOTH, BOTH, [AUDIO]])]],
    [4, () => ["call", slot(), pick(BOTH)]],
    [6, () => ["call", slot(), pick(BOTH), false]],
    [8, () => ["pass", pick([5_000, 5_000, 5_000, long()])]],
    [8, () => ["gate", pick([1, 1, 1, 4]), pick([undefined, BOTH, [AUDIO], [VIDEO]])]],
    [2, () => ["stop", slot()]],
  ];
  const faults: [weight: number, make: () => Step][] = [
    [2, () => ["crash", slot(), pick([false, true])]],
    [1, () => ["start", slot(), BOTH, "unheard"]],
    [2, () => ["set", slot(), { state: pick(["sleeps", "is suspended", "runs", "runs"]) }]],
    [2, () => ["set", slot(), { link: pick(["unheard", "unheard", "down", "up", "up", "up"]) }]],
    [1, () => ["set", slot(), { clock: pick([-1, 1]) * long() }]],
    [1, () => ["answerWhileFlushing", slot()]],
    [2, () => ["jump", pick([-1, 1]) * long()]],
    [2, () => ["setBack", pick([true, false])]],
    [2, () => ["copy"]],
    [1, () => ["restore"]],
    [1, () => ["failover", pick([[], [0], [1]])]],
    [2, () => ["gone", pick([-MINUTE + 1_000, 0, 0, MINUTE - 1_000, HOUR, 3 * DAY])]],
    [1, () => ["restart"]],
  ];
  const makers = [...usual, ...faults.filter(() => random() < 0.5)]
    .flatMap(([weight, make]) => Array(weight).fill(make) as (() => Step)[]);
  const count = 10 + Math.floor(random() * 40);
  return [
    ["start", 0],
    ["pass", pick([5_000, DAY])],
    ...Array.from({ length: count }, () => pick(makers)()),
  ];
}

/** Returns what is wrong with a run, if anything. */
async function faultOf(steps: readonly Step[]): Promise<Error | undefined> {
  return await run(steps).then(() => undefined, (error) => error);
}

/** Fails with a run, without those of its steps without which it is as wrong. */
async function fail(steps: readonly Step[], fault: Error): Promise<never> {
  for (let at = steps.length - 1; at >= 0; at--) {
    const fewer = steps.toSpliced(at, 1);
    const same = await faultOf(fewer);
    if (same !== undefined) [steps, fault] = [fewer, same];
  }
  const lines = steps.map((step) => JSON.stringify(step));
  throw new Error([fault.message, ...lines].join("\n"), { cause: fault });
}

Deno.test("the record is never complete while a call is missing, and is where the operator's words are true", async () => {
  const verdicts: unknown[] = [];
  for (let seed = 1; seed <= RUNS; seed++) {
    const steps = randomSteps(seed);
    verdicts.push(...await run(steps).catch((fault) => fail(steps, fault)));
  }
  const clear = verdicts.filter((verdict) => verdict === "clear").length;
  assert(clear > 50, `only ${clear} of ${verdicts.length} verdicts are clear`);
});

/** Sequences that led to a wrong verdict once, or would, and the verdicts on the way. */
const SEQUENCES: [what: string, steps: Step[], verdicts: Verdict["state"][]][] = [
  ["B fails over to a stale replica while A, cut off, goes on answering", [
    ["start", 0],
    ["start", 1],
    ["copy"],
    ["pass", 5_000],
    ["set", 0, { link: "down" }],
    ["failover"],
    ["pass", 2 * DAY],
    ["call", 0],
    ["gate", 1],
    ["crash", 0],
    ["pass", HOUR],
    ["gone"], // it answered a call
    ["gate", 1],
  ], ["unknown", "unknown"]],
  ...[0, 30_000].map((lag): typeof SEQUENCES[number] => [
    `a report, a call, a crash, the gate, within four seconds, on a clock ${lag} ms behind`,
    [
      ["start", 0],
      ["start", 1],
      ["pass", 2 * DAY],
      ["jump", -lag],
      ["pass", 5_000],
      ["call", 0],
      ["crash", 0],
      ["gate", 1, undefined, { waits: 8 }],
    ],
    ["unknown"],
  ]),
  ["a server registers after a restore, while the database's clock is behind", [
    ["start", 0],
    ["pass", 2 * DAY],
    ["stop", 0],
    ["copy"],
    ["start", 1],
    ["call", 1],
    ["pass", HOUR],
    ["stop", 1],
    ["restore"],
    ["jump", -2 * HOUR],
    ["start", 0],
    ["pass", 3 * HOUR],
    ["gate", 1],
  ], ["unknown"]],
  ["the database's clock is corrected just after the record was started again", [
    ["start", 0],
    ["pass", DAY],
    ["call", 0],
    ["pass", 5_000],
    ["jump", -3 * DAY],
    ["pass", 5_000],
    ["restart"],
    ["jump", 3 * DAY],
    ["gate", 1],
  ], ["unknown"]],
  ["A is cut off while the record is started again and the database's clock jumps", [
    ["start", 0],
    ["start", 1],
    ["jump", 3 * DAY],
    ["pass", 5_000],
    ["set", 0, { link: "unheard" }],
    ["pass", 5_000],
    ["jump", -3 * DAY],
    ["restart"],
    ["call", 1],
    ["pass", 5_000],
    ["jump", 2 * DAY],
    ["set", 0, { link: "up" }],
    ["gate", 1],
  ], ["unknown"]],
  ["the database's clock jumps after a registration that got no answer", [
    ["start", 0],
    ["call", 0],
    ["start", 1],
    ["gate", 1],
    ["set", 1, { link: "unheard" }],
    ["jump", DAY],
    ["pass", 5_000],
    ["jump", 10 * MINUTE],
  ], ["unknown"]],
  ["a client calls once, and a second later the server is killed", [
    ["start", 0],
    ["pass", 5_000],
    ["call", 0],
    ["crash", 0],
    ["gate", 1, undefined, { atMost: 0 }],
  ], ["called"]],
  ...[true, false].map((isGradual): typeof SEQUENCES[number] => [
    `a server is cut off when the database's clock, an hour ahead, is set right ${
      isGradual ? "gradually" : "at once"
    }`,
    [
      ["jump", HOUR],
      ["start", 0],
      ["start", 1],
      ["pass", 2 * DAY],
      ["pass", 5_000],
      ["setBack", isGradual],
      ["set", 0, { link: "down" }],
      ["call", 0],
      ["pass", HOUR / 2],
      ["call", 0],
      ["crash", 0],
      ["pass", 3 * HOUR],
      ["gate", 1],
      ["gone"],
      ["gate", 1],
    ],
    ["unknown", "unknown"],
  ]),
  ["a server is cut off while its machine's clock and the database's are an hour ahead", [
    ["jump", HOUR],
    ["start", 0],
    ["set", 0, { clock: HOUR }],
    ["start", 1],
    ["pass", 2 * DAY],
    ["pass", 5_000],
    ["set", 0, { link: "down" }],
    ["call", 0],
    ["pass", HOUR / 2],
    ["call", 0],
    ["crash", 0],
    ["setBack", false],
    ["pass", 3 * HOUR],
    ["gone"], // refused
    ["gate", 1],
  ], ["unknown"]],
  ...[MINUTE - 1_000, 3 * DAY].map((by): typeof SEQUENCES[number] => [
    `the database's clock jumps ahead by ${by / 1_000} seconds after a server was cut off`,
    [
      ["start", 0],
      ["start", 1],
      ["pass", 2 * DAY],
      ["pass", 5_000],
      ["set", 0, { link: "down" }],
      ["jump", by],
      ["pass", HOUR],
      ["call", 0],
      ["crash", 0],
      ["pass", 5_000],
      ["gone"],
      ["gate", 1],
    ],
    ["unknown"],
  ]),
  ["a restore undoes a registration after the database's clock jumped ahead", [
    ["start", 0],
    ["copy"],
    ["pass", MINUTE - 10_000],
    ["jump", MINUTE - 5_000],
    ["start", 1],
    ["pass", 5_000],
    ["crash", 1, true],
    ["stop", 0],
    ["restore"],
  ], []],
  ["a part of which the outcome is unknown is sent again, and then the server is killed", [
    ["start", 0],
    ["set", 0, { link: "unheard" }],
    ["call", 0],
    ["set", 0, { link: "unheard" }],
    ["call", 0],
    ["crash", 0],
  ], []],
  ["a server that does not count a route was cut off, lapsed, and only registered again", [
    ["start", 1],
    ["pass", 2 * DAY],
    ["start", 0, [AUDIO]],
    ["pass", 5_000],
    ["set", 0, { link: "down" }],
    ["pass", HOUR],
    ["call", 0, VIDEO],
    ["set", 0, { state: "sleeps" }],
    ["pass", 2 * MINUTE],
    ["set", 0, { state: "runs", link: "unheard" }],
    ["pass", 5_000],
    ["crash", 0],
    ["pass", HOUR],
    ["gone"],
    ["gate", 1, [AUDIO]],
    ["gate", 1, [VIDEO]],
  ], ["clear", "unknown"]],
  ["a server that does not count a route reports only while the ledger's time stands still", [
    ["start", 0],
    ["pass", 2 * DAY],
    ["start", 1, [AUDIO]],
    ["jump", -HOUR],
    ["call", 1, VIDEO],
    ["pass", 10 * MINUTE],
    ["stop", 1],
    ["pass", 2 * HOUR],
    ["gate", 1, [AUDIO]],
    ["gate", 1, [VIDEO]],
  ], ["clear", "unknown"]],
];

for (const [what, steps, verdicts] of SEQUENCES) {
  Deno.test(`the verdict waits: ${what}`, async () => assertEquals(await run(steps), verdicts));
}
