/**
 * A schedule for each part of the rule by which a verdict is clear, or names what it does not know.
 * Where the part is left out, something is wrong with the record, or with the verdict.
 */

import { assertEquals } from "@std/assert";
import { leavingOut, type WorldModules } from "../../support/left_out.ts";
import { needing } from "../../support/permissions.ts";
import type { RouteVerdict } from "../../../lib/usage/verdict/verdict.ts";
import * as truth from "../../support/record_truth.ts";
import * as world from "../../support/record_world.ts";
import { DAY, SECOND, World } from "../../support/record_world.ts";
import { PARTS, type Schedule, type Stage } from "../../support/rule_parts.ts";
import { openInMemory } from "../../support/world_databases.ts";

const NOON = Date.parse("2027-02-01T12:00:00Z");

/** Plays a schedule. Returns what the gate says, and what is wrong. */
async function play(
  schedule: Schedule,
  modules: WorldModules,
): Promise<{ outcome: string; findings: truth.Findings }> {
  await using one = await openInMemory();
  await using another = await openInMemory();
  using world = await modules.world.World.open(NOON, [one, another]);
  const pass = (time: number) => world.pass(time);
  const start: Stage["start"] = async (options) => {
    const process = world.start(options);
    await pass(7 * SECOND);
    return process;
  };
  const keeper = await start();
  await world.skip(3 * DAY);
  await pass(7 * SECOND);
  await schedule({ world, keeper, pass, start });
  const findings = new modules.truth.Findings();
  const answer = await world.events.during(world.ask());
  findings.checkAnswer(world, answer);
  for (const record of world.records) await findings.checkRecord(record);
  findings.record.push(...world.faults);
  const verdict = answer.report.verdicts.find(({ route }) => route === "/a");
  const { state, causes, gaps } = verdict as RouteVerdict;
  const reasons = {
    called: [],
    unknown: causes.map(({ cause }) => cause),
    announced: [],
    clear: gaps.map(({ kind }) => kind),
  }[state];
  return { outcome: [state, ...new Set(reasons.sort())].join(", "), findings };
}

needing("files")("the rule: each part is needed", async (context) => {
  for (const { part, schedule, outcome, wrong, ...change } of PARTS) {
    await context.step(part, async () => {
      const whole = await play(schedule, { world, truth });
      assertEquals([whole.findings.record, whole.findings.verdict], [[], []]);
      assertEquals(whole.outcome, outcome);
      const { findings, outcome: other } = await leavingOut(
        change,
        (modules) => play(schedule, modules),
      );
      const isWrong = findings.verdict.length > 0 || other !== outcome;
      const found = findings.record.length > 0
        ? (isWrong ? "both" : "record")
        : isWrong && "verdict";
      assertEquals(found, wrong, `${other}\n${findings.record.join("\n")}`);
    });
  }
});

Deno.test("the rule: a gate that is asked 1.5 s after an answer has the call, if the ledger answers in 0.3 s", async () => {
  for (const isBusy of [false, true]) {
    await using database = await openInMemory();
    using world = await World.open(NOON, [database]);
    const process = world.start({ fate: () => ({ done: 150, heard: 150 }) });
    await world.pass(10 * SECOND);
    const callAgain = () => {
      process.call("/b", 0, "busy");
      world.events.at(world.now + 70, callAgain);
    };
    if (isBusy) callAgain();
    for (let calls = 1; calls <= 50; calls++) {
      await world.pass(130 * calls);
      process.call("/a");
      await world.pass(1.5 * SECOND);
      const { report } = await world.events.during(world.ask());
      const verdict = report.verdicts.find(({ route }) => route === "/a");
      assertEquals(verdict?.calls, calls, `after a pause of ${130 * calls} ms`);
    }
  }
});
