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
  | "begin"
  | "finish"
  | "pass"
  | "stop"
  | "crash"
  | "set"
  | "land"
  | "answerWhileFlushing"
  | "jump"
  | "setBack"
  | "copy"
  | "restore"
  | "failover"
  | "restart"
  | "gate";

type Step = { [A in Action]: readonly [A, ...Parameters<World[A]>] }[Action];

/**
 * Takes steps, a second each. Days after the last one, the record is complete, and nobody has to say so.
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
    [2, () => ["begin", slot(), pick(BOTH)]],
    [2, () => ["finish", slot()]],
    [8, () => ["pass", pick([5_000, 5_000, 5_000, 11 * MINUTE, long()])]],
    [8, () => ["gate", pick([1, 1, 1, 4]), pick([undefined, BOTH, [AUDIO], [VIDEO]])]],
    [2, () => ["stop", slot()]],
  ];
  const link = () =>
    pick(["unheard", "unheard", "late", "late", "down", "up", "up", "up"] as const);
  const faults: [weight: number, make: () => Step][] = [
    [2, () => ["crash", slot()]],
    [1, () => ["start", slot(), BOTH, pick(["unheard", "late"])]],
    [2, () => ["set", slot(), { state: pick(["sleeps", "is suspended", "runs", "runs"]) }]],
    [3, () => ["set", slot(), { link: link() }]],
    [2, () => ["land"]],
    [1, () => ["set", slot(), { clock: pick([-1, 1]) * long() }]],
    [1, () => ["answerWhileFlushing", slot()]],
    [2, () => ["jump", pick([-1, 1]) * long()]],
    [2, () => ["setBack", pick([true, false])]],
    [2, () => ["copy"]],
    [1, () => ["restore"]],
    [1, () => ["failover", pick([[], [0], [1]])]],
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
  ["the database's clock jumps ahead while a server that is cut off holds an intent", [
    ["start", 0],
    ["start", 1],
    ["pass", 5_000],
    ["call", 1],
    ["set", 1, { link: "down" }],
    ["jump", 3 * DAY],
    ["pass", 5_000],
    ["call", 1],
    ["crash", 1],
    ["pass", DAY + 10_000],
    ["gate", 1, [AUDIO]],
    ["pass", DAY],
    ["gate", 1, [AUDIO]],
  ], ["unknown", "clear"]],
  ["B fails over to a stale replica while A, cut off, goes on answering", [
    ["start", 0],
    ["start", 1],
    ["copy"],
    ["call", 0],
    ["pass", 5_000],
    ["set", 0, { link: "down" }],
    ["failover"],
    ["pass", 5_000],
    ["pass", 23 * HOUR],
    ["call", 0],
    ["pass", 2 * HOUR],
    ["gate", 1],
    ["crash", 0],
    ["pass", 2 * DAY],
    ["gate", 1],
  ], ["unknown", "clear"]],
  ["a server is killed after it answered a call, and before it reported", [
    ["start", 0],
    ["start", 1],
    ["pass", 2 * DAY],
    ["pass", 5_000],
    ["call", 0],
    ["crash", 0],
    ["gate", 1, undefined, { mayTrust: false }],
    ["pass", 2 * MINUTE],
    ["gate", 1, undefined, { mayTrust: false }],
    ["gate", 1, [VIDEO], { mayTrust: false }],
    ["pass", 3 * DAY],
    ["gate", 1, undefined, { mayTrust: false }],
  ], ["unknown", "unknown", "clear", "clear"]],
  ["servers are killed while nobody calls", [
    ["start", 0],
    ["start", 1],
    ["pass", 2 * DAY],
    ["call", 0],
    ["pass", 11 * MINUTE],
    ["pass", 5_000],
    ["crash", 0],
    ["pass", 5_000],
    ["start", 0],
    ["crash", 1],
    ["pass", 2 * MINUTE],
    ["gate", 1, undefined, { mayTrust: false }],
  ], ["clear"]],
  ["a call that is answered after hours is in flight when its server is killed", [
    ["start", 0],
    ["start", 1],
    ["pass", 3 * DAY],
    ["begin", 0],
    ...Array(30).fill(["pass", HOUR]) as Step[],
    ["gate", 1, [AUDIO], { mayTrust: false }],
    ["crash", 0],
    ["pass", 2 * MINUTE],
    ["gate", 1, [AUDIO], { mayTrust: false }],
  ], ["unknown", "unknown"]],
  ["an intent lands late, after the next flush, and is void", [
    ["start", 0],
    ["start", 1],
    ["pass", 2 * DAY],
    ["pass", 5_000],
    ["set", 0, { link: "late" }],
    ["call", 0], // refused
    ["set", 0, { link: "up" }],
    ["pass", 5_000],
    ["land"],
    ["crash", 0],
    ["pass", 2 * MINUTE],
    ["gate", 1, undefined, { mayTrust: false }],
  ], ["clear"]],
  ["an intent that was given up lands before the next flush, and the one after deletes it", [
    ["start", 0],
    ["start", 1],
    ["pass", 2 * DAY],
    ["pass", 5_000],
    ["set", 0, { link: "late" }],
    ["call", 0], // refused
    ["land"],
    ["set", 0, { link: "up" }],
    ["pass", 5_000],
    ["pass", 5_000],
    ["crash", 0],
    ["pass", 2 * MINUTE],
    ["gate", 1, undefined, { mayTrust: false }],
  ], ["clear"]],
  ["a server that is cut off asks again when its machine slept for a day", [
    ["start", 0],
    ["start", 1],
    ["call", 0],
    ["pass", 5_000],
    ["set", 0, { state: "sleeps" }],
    ["pass", 3 * DAY],
    ["set", 0, { state: "runs", link: "down" }],
    ["call", 0], // refused
    ["crash", 0],
    ["pass", 2 * MINUTE],
    ["gate", 1, undefined, { mayTrust: false }],
  ], ["clear"]],
  ["a server that is cut off does not trust a machine's clock that was set back", [
    ["start", 0],
    ["start", 1],
    ["call", 0],
    ["pass", 5_000],
    ["set", 0, { link: "down" }],
    ["pass", 20 * HOUR],
    ["set", 0, { clock: -10 * HOUR }],
    ["pass", 10 * HOUR],
    ["call", 0], // refused
    ["crash", 0],
    ["pass", DAY],
    ["gate", 1, undefined, { mayTrust: false }],
  ], ["clear"]],
  ["a replica takes over that lacks only the intent of a server that is killed then", [
    ["start", 0],
    ["start", 1],
    ["pass", 2 * DAY],
    ["pass", 5_000],
    ["copy"],
    ["call", 0],
    ["failover"],
    ["crash", 0],
    ["pass", 5_000],
    ["pass", 2 * MINUTE],
    ["gate", 1],
  ], ["unknown"]],
  ["a file is restored while a server that is cut off holds an intent that is not in it", [
    ["start", 0],
    ["start", 1],
    ["pass", 5_000],
    ["copy"],
    ["pass", 5_000],
    ["call", 0],
    ["pass", 5_000],
    ["set", 0, { link: "down" }],
    ["restore", false],
    ["pass", 5_000],
    ["pass", 20 * HOUR],
    ["call", 0],
    ["crash", 0],
    ["pass", DAY],
    ["gate", 1],
    ["pass", 2 * DAY],
    ["gate", 1],
  ], ["unknown", "clear"]],
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
  ["the record is started again while a server that is cut off answers calls", [
    ["start", 0],
    ["start", 1],
    ["call", 0],
    ["pass", 5_000],
    ["set", 0, { link: "down" }],
    ["restart"],
    ["pass", 20 * HOUR],
    ["call", 0],
    ["crash", 0],
    ["pass", DAY],
    ["gate", 1, undefined, { mayTrust: false }],
    ["pass", 2 * DAY],
    ["gate", 1, undefined, { mayTrust: false }],
  ], ["unknown", "clear"]],
  ["a part of which the outcome is unknown is sent again, and then the server is killed", [
    ["start", 0],
    ["call", 0],
    ["set", 0, { link: "unheard" }],
    ["pass", 5_000],
    ["set", 0, { link: "unheard" }],
    ["call", 0],
    ["crash", 0],
  ], []],
  ["a server that does not count a route reports only while the ledger's time stands still", [
    ["start", 0],
    ["pass", 2 * DAY],
    ["start", 1, [AUDIO]],
    ["jump", -HOUR],
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
