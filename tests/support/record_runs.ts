/** Runs of steps in a world of servers, by hand or at random. */

import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { randomFrom } from "./random.ts";
import { AUDIO, VIDEO, World } from "./record_world.ts";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const BOTH = [AUDIO, VIDEO];

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

export type Step = { [A in Action]: readonly [A, ...Parameters<World[A]>] }[Action];

/**
 * Takes steps, a second each. Days after the last one, the record is complete, and nobody has to say so.
 *
 * @returns The verdicts on the way.
 */
export async function run(steps: readonly Step[]): Promise<unknown[]> {
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
export function randomSteps(seed: number): Step[] {
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
  const first: Step[] = [["start", 0], ["pass", pick([5_000, DAY])]];
  return [
    ...first,
    ...Array.from({ length: 10 + Math.floor(random() * 40) }, () => pick(makers)()),
  ];
}

/** Returns what is wrong with a run, if anything. */
async function faultOf(steps: readonly Step[]): Promise<Error | undefined> {
  return await run(steps).then(() => undefined, (error) => error);
}

/** Fails with a run, without those of its steps without which it is as wrong. */
export async function fail(steps: readonly Step[], fault: Error): Promise<never> {
  for (let at = steps.length - 1; at >= 0; at--) {
    const fewer = steps.toSpliced(at, 1);
    const same = await faultOf(fewer);
    if (same !== undefined) [steps, fault] = [fewer, same];
  }
  const lines = steps.map((step) => JSON.stringify(step));
  throw new Error([fault.message, ...lines].join("\n"), { cause: fault });
}
