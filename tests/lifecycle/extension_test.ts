import { assert, assertEquals } from "@std/assert";
import { extendedPolicy, isEffective } from "../../lib/lifecycle/extension.ts";
import { underHold } from "../../lib/lifecycle/hold.ts";
import { momentAt, type Phase, type Policy } from "../../lib/lifecycle/policy.ts";
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

/** Holds, and what the client that has an extension until the end of the year reads under them. */
const HELD: readonly {
  what: string;
  holds: readonly [start: string, end: string][];
  sunset: string;
  /** The sunset of its own that each hold moved. */
  moved: readonly (string | undefined)[];
}[] = [
  {
    what: "over brownouts",
    holds: [["2027-03-01T09:10Z", "2027-06-02"]],
    sunset: "2027-12-31",
    moved: [undefined],
  },
  {
    what: "over the sunset of the others",
    holds: [["2027-06-29", "2027-07-10"]],
    sunset: "2027-12-31",
    moved: [undefined],
  },
  {
    what: "over its own sunset",
    holds: [["2027-12-30", "2028-01-10"]],
    sunset: "2028-01-10",
    moved: ["2027-12-31"],
  },
  {
    what: "over both, one after the other",
    holds: [["2027-06-29", "2027-07-10"], ["2027-12-30", "2028-01-10"], [
      "2028-01-09",
      "2028-02-01",
    ]],
    sunset: "2028-02-01",
    moved: [undefined, "2027-12-31", "2028-01-10"],
  },
];

Deno.test("extendedPolicy() says of a hold what it did for the client", () => {
  for (const { what, holds, sunset, moved } of HELD) {
    const held = holds
      .map(([start, end]) => ({ start: Date.parse(start), end: Date.parse(end), because: "x" }))
      .reduce<Policy>(underHold, POLICY);
    const { holds: applied = [], ...others } = extendedPolicy(held, END);
    assertEquals(others, { ...POLICY, sunsetAt: Date.parse(sunset), brownouts: [] }, what);
    assertEquals(
      applied.map(({ brownouts, sunsetAt }) => [brownouts, sunsetAt]),
      moved.map((date) => [[], date === undefined ? undefined : Date.parse(date)]),
      what,
    );
  }
});

Deno.test("isEffective() is true of an extension that ends after the sunset", () => {
  const sunset = POLICY.sunsetAt as number;
  const undated = definePolicy({ deprecatedAt: "2027-01-01" });
  for (const end of [0, sunset - 1000, sunset]) assertEquals(isEffective(POLICY, end), false);
  for (const end of [sunset + 1000, END]) assertEquals(isEffective(POLICY, end), true);
  assertEquals(isEffective(undated, END), false);
});
