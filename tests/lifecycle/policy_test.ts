import { assert, assertEquals } from "@std/assert";
import fc from "../support/fast_check.ts";
import { formatInstant, momentAt, type Phase, type Policy } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";

const at = (text: string) => Date.parse(text);

Deno.test("momentAt() returns the phase and its end, to the millisecond", () => {
  const policy = definePolicy({
    deprecatedAt: "2027-01-01",
    sunsetAt: "2027-06-30",
    brownouts: ["2027-03-01T09:00Z/PT1H", "2027-03-01T10:00Z/PT1H", "2027-06-29/P1D"],
  });
  const boundaries: [from: string, phase: Phase][] = [
    ["2026-01-01T00:00:00Z", "announced"],
    ["2027-01-01T00:00:00Z", "deprecated"],
    ["2027-03-01T09:00:00Z", "brownout"],
    ["2027-03-01T11:00:00Z", "deprecated"],
    ["2027-06-29T00:00:00Z", "brownout"],
    ["2027-06-30T00:00:00Z", "removed"],
  ];
  for (const [index, [from, phase]] of boundaries.entries()) {
    const end = boundaries[index + 1]?.[0];
    const until = end === undefined ? Infinity : at(end);
    const instants = [at(from), at(from) + 1, ...(end === undefined ? [8e15] : [at(end) - 1])];
    for (const instant of instants) {
      assertEquals(momentAt(policy, instant), { phase, until }, `${from} ${instant}`);
    }
  }
  const open = definePolicy({ deprecatedAt: "2027-01-01" });
  assertEquals(momentAt(open, 8e15), { phase: "deprecated", until: Infinity });
});

/** Policies with brownouts, adjacent or not, between deprecation and sunset. */
const policies = fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 4, maxLength: 12 })
  .map((steps): Policy => {
    let time = 1_000_000;
    const times = steps.map((step) => time += step * 1000);
    const [deprecatedAt, ...rest] = times as [number, ...number[]];
    const brownouts = [];
    for (let index = 0; index + 1 < rest.length - 1; index += 2) {
      const [start, end] = [rest[index] as number, rest[index + 1] as number];
      if (start < end) brownouts.push({ start: new Date(start), end: new Date(end) });
    }
    const sunsetAt = new Date(rest.at(-1) as number);
    return definePolicy({ deprecatedAt: new Date(deprecatedAt), sunsetAt, brownouts });
  });

Deno.test("momentAt() returns a phase that lasts exactly until its end", () => {
  fc.assert(
    fc.property(policies, fc.integer({ min: 900_000, max: 3_000_000 }), (policy, instant) => {
      const { phase, until } = momentAt(policy, instant);
      assert(until > instant);
      if (until === Infinity) return assertEquals(phase, "removed");
      assertEquals(momentAt(policy, until - 1), { phase, until });
      assert(momentAt(policy, until).phase !== phase);
    }),
  );
});

Deno.test("momentAt() agrees with a check of every interval", () => {
  fc.assert(
    fc.property(policies, fc.integer({ min: 900_000, max: 3_000_000 }), (policy, instant) => {
      const isOff = policy.brownouts.some(({ start, end }) => start <= instant && instant < end);
      const expected = instant >= (policy.sunsetAt as number)
        ? "removed"
        : instant < policy.deprecatedAt
        ? "announced"
        : isOff
        ? "brownout"
        : "deprecated";
      assertEquals(momentAt(policy, instant).phase, expected);
    }),
  );
});

Deno.test("formatInstant() formats whole seconds in UTC", () => {
  assertEquals(formatInstant(at("2027-06-30T12:00:00+02:00")), "2027-06-30T10:00:00Z");
});
