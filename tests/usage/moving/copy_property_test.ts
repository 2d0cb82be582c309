/** Copies of records against the truth, whatever happens to servers, databases and clocks. */

import { assert, assertEquals } from "@std/assert";
import {
  BOTH,
  DAY,
  fail,
  HOUR,
  MINUTE,
  randomSteps,
  run,
  type Step,
} from "../../support/record_runs.ts";
import { AUDIO, VIDEO } from "../../support/record_world.ts";

const RUNS = 150;

Deno.test("a copy never makes a verdict better than the records were", async () => {
  const results: unknown[] = [];
  for (let seed = 1; seed <= RUNS; seed++) {
    const steps = randomSteps(seed, true);
    results.push(...await run(steps).catch((fault) => fail(steps, fault)));
  }
  for (const result of ["clear", "copied", "copied before", "killed", "refused"]) {
    const count = results.filter((each) => each === result).length;
    assert(count > 20, `${result}: only ${count} times`);
  }
});

/** A gate to whose operator nobody gives their word. */
const gate = (days: number, routes: readonly string[] = BOTH): Step => [
  "gate",
  days,
  routes,
  { mayTrust: false },
];

/** Two servers have counted for two days, each with a heartbeat just now. */
const TWO: Step[] = [["start", 0], ["start", 1], ["pass", 2 * DAY], ["pass", 5_000]];

/** Server 2 takes over from server 1, with another record. */
const TAKEN_OVER: Step[] = [["move"], ["start", 2], ["stop", 1]];

/**
 * Server 0 has a record whose database's clock is two days behind. Server 1 has one with the right
 * time, and answers no calls. For three days, both count.
 */
const BEHIND: Step[] = [
  ["move", -2 * DAY],
  ["start", 0],
  ["pass", HOUR],
  ["move", 0],
  ["start", 1],
  ["pass", DAY - HOUR],
  ["call", 0],
  ["pass", 5_000],
  ["pass", 2 * DAY],
];

/**
 * Server 0 has a record with the right time. Server 1 has one whose database's clock is two days behind,
 * until that is corrected.
 */
const CORRECTED: Step[] = [
  ["start", 0],
  ["pass", HOUR],
  ["move", -2 * DAY],
  ["start", 1],
  ["pass", DAY - HOUR],
  ["call", 1],
  ["pass", 5_000],
  ["pass", 2 * DAY],
  ["jump", 2 * DAY],
  ["pass", 5_000],
  ["stop", 0],
];

const SEQUENCES: [what: string, steps: Step[], results: string[]][] = [
  ["a record moves while servers change over one by one", [
    ...TWO,
    ["call", 0],
    ["call", 0, VIDEO, false],
    ["pass", 5_000],
    ["move"],
    ["start", 2],
    ["stop", 0],
    ["stop", 1],
    ["copyFrom"],
    ["pass", 5_000],
    gate(1),
    ["copyFrom"],
    gate(1),
  ], ["copied", "clear", "copied before", "clear"]],
  ["nothing runs for two minutes", [
    ...TWO,
    ["stop", 0],
    ["stop", 1],
    ["move"],
    ["pass", 2 * MINUTE],
    ["start", 2],
    ["pass", MINUTE],
    ["copyFrom"],
    gate(1),
    ["gate", 1],
  ], ["copied", "unknown", "clear"]],
  ["a server still counts in the older record", [
    ...TWO,
    ["move"],
    ["start", 2],
    ["stop", 0],
    ["copyFrom"],
    ["stop", 1],
    ["copyFrom"],
  ], ["refused", "copied"]],
  ["a server of the older record was killed after it answered a call, and before it recorded it", [
    ...TWO,
    ["call", 0],
    ["crash", 0],
    ["pass", 2 * MINUTE],
    ...TAKEN_OVER,
    ["copyFrom"],
    gate(1, [AUDIO]),
    gate(1, [VIDEO]),
    ["pass", 3 * DAY],
    gate(1, [AUDIO]),
  ], ["copied", "unknown", "clear", "clear"]],
  ["a server that was cut off comes back while its record is copied", [
    ...TWO,
    ["begin", 0],
    ["pass", 5_000],
    ["set", 0, { link: "down" }],
    ["pass", 2 * MINUTE],
    ...TAKEN_OVER,
    ["copyFrom", { uses: 16 }],
    ["set", 0, { link: "up" }],
    ["pass", 5_000],
    ["copyFrom"],
    ["finish", 0],
    gate(1, [AUDIO]),
  ], ["killed", "copied", "unknown"]],
  ["the database's clock jumped ahead while a server that was cut off held an intent", [
    ["start", 0],
    ["start", 1],
    ["pass", 5_000],
    ["call", 0],
    ["set", 0, { link: "down" }],
    ["jump", 3 * DAY],
    ["pass", 5_000],
    ["pass", 10 * HOUR],
    ["call", 0],
    ["crash", 0],
    ["pass", 2 * MINUTE],
    ...TAKEN_OVER,
    ["copyFrom"],
    ["pass", 14 * HOUR],
    gate(1, [AUDIO]),
    ["pass", DAY],
    gate(1, [AUDIO]),
  ], ["copied", "unknown", "clear"]],
  ["a replica took over that lacked an intent", [
    ...TWO,
    ["copy"],
    ["call", 0],
    ["failover"],
    ["crash", 0],
    ["pass", 5_000],
    ["pass", 2 * MINUTE],
    ...TAKEN_OVER,
    ["copyFrom"],
    gate(1),
  ], ["copied", "unknown"]],
  ["a server that was cut off answered under an intent that the replica lacked", [
    ...TWO,
    ["copy"],
    ["call", 0],
    ["set", 0, { link: "down" }],
    ["failover"],
    ["pass", 5_000],
    ["pass", 20 * HOUR],
    ["call", 0],
    ["crash", 0],
    ["pass", 5 * HOUR],
    ...TAKEN_OVER,
    ["copyFrom"],
    gate(1, [AUDIO]),
    ["pass", 2 * DAY],
    gate(1, [AUDIO]),
  ], ["copied", "unknown", "clear"]],
  ["the older record was restored, and started again", [
    ["start", 1],
    ["pass", 2 * DAY],
    ["copy"],
    ["call", 1],
    ["pass", 5_000],
    ["restore", false],
    ["pass", 5_000],
    ...TAKEN_OVER,
    ["copyFrom"],
    gate(1),
  ], ["copied", "unknown"]],
  ["the record in use was restored, and started again", [
    ["start", 1],
    ["pass", 2 * DAY],
    ["move"],
    ["start", 2],
    ["pass", 5_000],
    ["copy"],
    ["call", 2],
    ["pass", 5_000],
    ["restore", false],
    ["pass", 5_000],
    ["stop", 1],
    ["copyFrom"],
    gate(1),
  ], ["copied", "unknown"]],
  ["a backup is copied, and servers went on after it", [
    ["start", 0],
    ["pass", 2 * DAY],
    ["copy"],
    ["move"],
    ["start", 1],
    ["pass", HOUR],
    ["call", 0],
    ["pass", 5_000],
    ["copyFrom", { isBackup: true, isTold: false }],
    gate(1),
  ], ["copied", "unknown"]],
  ["a backup is copied after its record", [
    ["start", 0],
    ["pass", 2 * DAY],
    ["call", 0],
    ["pass", 5_000],
    ["copy"],
    ["move"],
    ["start", 1],
    ["stop", 0],
    ["copyFrom"],
    ["pass", 2 * MINUTE],
    ["copyFrom", { isBackup: true }],
    gate(1),
  ], ["copied", "refused", "clear"]],
  ["the database's clock differs", [...BEHIND, ["stop", 0], ["copyFrom"]], ["refused"]],
  ["the older database's clock is corrected after the last heartbeat there", [
    ...BEHIND,
    ["stop", 0],
    ["jump", 2 * DAY, true],
    ["pass", 2 * MINUTE],
    ["copyFrom"],
    gate(3, [AUDIO]),
  ], ["copied", "unknown"]],
  ["the older database's clock is corrected before the last heartbeat there", [
    ...BEHIND,
    ["jump", 2 * DAY, true],
    ["pass", 5_000],
    ["stop", 0],
    ["copyFrom"],
    gate(3, [AUDIO]),
  ], ["copied", "unknown"]],
  ["the clock of the database in use is corrected while the older record is used", [
    ...CORRECTED,
    ["copyFrom"],
    gate(3, [AUDIO]),
  ], ["copied", "unknown"]],
  ["the clock of the database in use is corrected while only the older record is used", [
    ["start", 0],
    ["pass", HOUR],
    ["move", -2 * DAY],
    ["start", 1],
    ["pass", DAY - HOUR],
    ["call", 1],
    ["pass", 5_000],
    ["pass", 2 * DAY],
    ["stop", 1],
    ["jump", 2 * DAY],
    ["pass", 5_000],
    ["stop", 0],
    ["copyFrom"],
    ["start", 1],
    ["pass", 5_000],
    gate(3, [AUDIO]),
  ], ["copied", "unknown"]],
  ["the older database's clock was ahead", [
    ["start", 0],
    ["pass", HOUR],
    ["jump", 3 * DAY],
    ["pass", 5_000],
    ["stop", 0],
    ["jump", -3 * DAY],
    ["move"],
    ["start", 1],
    ["copyFrom"],
  ], ["refused"]],
  ["the record in use has fewer routes, and a server of the older one was killed", [
    ...TWO,
    ["crash", 0],
    ["pass", 2 * MINUTE],
    ["move"],
    ["start", 2, [AUDIO]],
    ["stop", 1],
    ["copyFrom"],
    ["gate", 1, undefined, { mayTrust: false }],
  ], ["copied", "clear"]],
  ["the record in use was started again, and nobody ever registered there", [
    ["start", 0],
    ["move"],
    ["restart"],
    ["pass", 3 * DAY],
    gate(1),
  ], ["unknown"]],
];

for (const [what, steps, results] of SEQUENCES) {
  Deno.test(`a record is copied: ${what}`, async () => assertEquals(await run(steps), results));
}

Deno.test("a copy that is killed at any point makes nothing better, and can be repeated", async () => {
  const seen = new Set<string>();
  for (let uses = 0; !seen.has("copied"); uses++) {
    const [first = "", ...results] = await run([
      ...TWO,
      ["call", 0],
      ["pass", 5_000],
      ["call", 0],
      ["crash", 0],
      ["pass", DAY],
      ["pass", 5_000],
      ...TAKEN_OVER,
      ["copyFrom", { uses }],
      gate(1, [VIDEO]),
      ["copyFrom"],
      gate(1, [VIDEO]),
    ]) as string[];
    seen.add(first);
    if (first === "copied") continue;
    const isLate = results[0] === "clear"; // it was killed once everything was done
    const expected = isLate ? ["clear", "copied before"] : ["unknown", "copied"];
    assertEquals([first, ...results], ["killed", ...expected, "clear"], `after ${uses} uses`);
  }
  assert(seen.has("killed"));
});

Deno.test("a copy that is killed at any point hides no stop in the record in use", async () => {
  for (let uses = 0, first = ""; first !== "copied"; uses++) {
    const results = await run([...CORRECTED, ["copyFrom", { uses }], gate(3, [AUDIO])]) as string[];
    first = results[0] as string;
    assertEquals(results[1], "unknown", `after ${uses} uses`);
  }
});
