import { assertEquals } from "@std/assert";
import { momentAt, type Phase } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";

const at = (text: string) => Date.parse(text);

Deno.test("momentAt() returns the phase and its end, to the millisecond", () => {
  const policy = definePolicy({
    deprecatedAt: "2027-01-01",
    sunsetAt: "2027-06-30",
    brownouts: ["2027-03-01T09:00Z/PT1H", "2027-03-01T10:00Z/PT1H", "2027-06-28/P1D"],
  });
  const boundaries: [from: string, phase: Phase][] = [
    ["2026-01-01T00:00:00Z", "announced"],
    ["2027-01-01T00:00:00Z", "deprecated"],
    ["2027-03-01T09:00:00Z", "brownout"],
    ["2027-03-01T11:00:00Z", "deprecated"],
    ["2027-06-28T00:00:00Z", "brownout"],
    ["2027-06-29T00:00:00Z", "deprecated"],
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
