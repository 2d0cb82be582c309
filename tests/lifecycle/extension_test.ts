import { assert, assertEquals } from "@std/assert";
import { extendedPolicy, isEffective } from "../../lib/lifecycle/extension.ts";
import { momentAt, type Phase } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";

const SETTINGS = {
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30",
  brownouts: ["2027-03-01T09:00Z/PT1H", "2027-06-01T09:00Z/PT4H=410"],
  brownoutStatus: 410,
  afterSunset: "redirect",
  documentation: "/why",
} as const;
const POLICY = definePolicy(SETTINGS);
const END = Date.parse("2027-12-31");

Deno.test("extendedPolicy() moves the sunset, leaves out brownouts, and changes nothing else", () => {
  const { brownouts: _, ...settings } = SETTINGS;
  assertEquals(
    extendedPolicy(POLICY, END),
    definePolicy({ ...settings, sunsetAt: new Date(END) }),
  );
});

const PHASES: [instant: string, phase: Phase][] = [
  ["2026-12-31T23:59:59Z", "announced"],
  ["2027-01-01T00:00:00Z", "deprecated"],
  ["2027-03-01T09:30:00Z", "deprecated"],
  ["2027-06-01T09:30:00Z", "deprecated"],
  ["2027-06-30T00:00:00Z", "deprecated"],
  ["2027-12-30T23:59:59Z", "deprecated"],
  ["2027-12-31T00:00:00Z", "removed"],
];

Deno.test("a client that has an extension is served until its end, without brownouts", () => {
  for (const [instant, phase] of PHASES) {
    const moment = momentAt(extendedPolicy(POLICY, END), Date.parse(instant));
    assertEquals(moment.phase, phase, instant);
    if (phase === "deprecated") assertEquals(moment.until, END, instant);
  }
});

Deno.test("extendedPolicy() leaves others alone, and never moves a sunset forward", () => {
  assert(extendedPolicy(POLICY, undefined) === POLICY);
  const held = { ...POLICY, sunsetAt: END + 1000 };
  assertEquals(extendedPolicy(held, END), { ...held, brownouts: [] });
});

Deno.test("isEffective() is true of an extension that ends after the sunset", () => {
  const sunset = POLICY.sunsetAt as number;
  const undated = definePolicy({ deprecatedAt: "2027-01-01" });
  for (const end of [0, sunset - 1000, sunset]) assertEquals(isEffective(POLICY, end), false);
  for (const end of [sunset + 1000, END]) assertEquals(isEffective(POLICY, end), true);
  assertEquals(isEffective(undated, END), false);
});
