import { assertEquals } from "@std/assert";
import {
  holdsAt,
  notableHolds,
  type RouteHold,
  underHold,
  underHolds,
} from "../../lib/lifecycle/hold.ts";
import type { Interval } from "../../lib/lifecycle/instant.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";

const at = (text: string) => Date.parse(`${text.length > 10 ? text : `${text}T00:00`}Z`);
const hold = (start: string, end: string) => ({ start: at(start), end: at(end), because: "x" });

const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30",
  brownouts: ["2027-05-03T09:00Z/PT4H", "2027-05-03T13:00Z/PT1H=410", "2027-06-10T09:00Z/PT1H"],
  brownoutStatus: 503,
});
type Brownout = readonly [start: string, end: string, status: 503 | 410];
const MORNING: Brownout = ["2027-05-03T09:00", "2027-05-03T13:00", 503];
const NOON: Brownout = ["2027-05-03T13:00", "2027-05-03T14:00", 410];
const JUNE: Brownout = ["2027-06-10T09:00", "2027-06-10T10:00", 503];
const ALL = [MORNING, NOON, JUNE];
const SUNSET = "2027-06-30";

/** The dates of the policy under holds, one after the other. */
const ROWS: readonly (readonly [
  what: string,
  holds: readonly [start: string, end: string][],
  brownouts: readonly Brownout[],
  sunset: string,
])[] = [
  [
    "begins in a brownout, and covers the next",
    [["2027-05-03T09:10", "2027-05-05"]],
    [["2027-05-03T09:00", "2027-05-03T09:10", 503], JUNE],
    SUNSET,
  ],
  [
    "begins and ends in a brownout",
    [["2027-05-03T09:10", "2027-05-03T10:00"]],
    [
      ["2027-05-03T09:00", "2027-05-03T09:10", 503],
      ["2027-05-03T10:00", "2027-05-03T13:00", 503],
      ...[NOON, JUNE],
    ],
    SUNSET,
  ],
  [
    "ends as a brownout begins, and begins as one ends",
    [["2027-05-01", "2027-05-03T09:00"], ["2027-05-03T14:00", "2027-05-04"]],
    ALL,
    SUNSET,
  ],
  ["covers the sunset", [["2027-06-29", "2027-07-10"]], ALL, "2027-07-10"],
  ["ends at the sunset", [["2027-06-29", "2027-06-30"]], ALL, SUNSET],
  ["begins after the sunset", [["2027-07-05", "2027-07-10"]], ALL, "2027-07-10"],
  [
    "overlaps another",
    [["2027-05-03T09:10", "2027-05-03T11:00"], ["2027-05-03T10:00", "2027-05-03T12:00"]],
    [
      ["2027-05-03T09:00", "2027-05-03T09:10", 503],
      ["2027-05-03T12:00", "2027-05-03T13:00", 503],
      ...[NOON, JUNE],
    ],
    SUNSET,
  ],
  [
    "begins before the end of one that moved the sunset",
    [["2027-06-29", "2027-07-10"], ["2027-07-09", "2027-07-20"]],
    ALL,
    "2027-07-20",
  ],
  [
    "ends before one that moved the sunset",
    [["2027-06-01", "2027-07-20"], ["2027-06-29", "2027-07-10"]],
    [MORNING, NOON],
    "2027-07-20",
  ],
  ["calls nothing off", [["2027-02-01", "2027-02-02"]], ALL, SUNSET],
];

Deno.test("underHold() cuts brownouts, moves a sunset to the hold's end, and changes nothing else", () => {
  for (const [what, holds, brownouts, sunset] of ROWS) {
    const policy = holds.map(([start, end]) => hold(start, end)).reduce(underHold, POLICY);
    const expected = brownouts.map(([start, end, status]) => {
      return { start: at(start), end: at(end), status };
    });
    const { holds: applied, ...others } = policy;
    assertEquals(others, { ...POLICY, brownouts: expected, sunsetAt: at(sunset) }, what);
    assertEquals(applied?.length, holds.length, what);
  }
  const open = definePolicy({ deprecatedAt: "2027-01-01" });
  assertEquals(underHold(open, hold("2027-02-01", "2027-02-02")).sunsetAt, undefined);
});

Deno.test("underHold() says what each hold called off", () => {
  const early = hold("2027-05-03T09:10", "2027-05-03T11:00");
  const late = hold("2027-05-03T10:00", "2027-07-10");
  const between = (start: string, end: string): Interval => ({ start: at(start), end: at(end) });
  assertEquals([early, late].reduce(underHold, POLICY).holds, [
    {
      ...early,
      brownouts: [between("2027-05-03T09:10", "2027-05-03T11:00")],
      sunsetAt: undefined,
    },
    {
      ...late,
      brownouts: [
        between("2027-05-03T11:00", "2027-05-03T13:00"),
        between("2027-05-03T13:00", "2027-05-03T14:00"),
        between("2027-06-10T09:00", "2027-06-10T10:00"),
      ],
      sunsetAt: at(SUNSET),
    },
  ]);
});

Deno.test("holdsAt() returns those that last, and notableHolds() also those that called something off", () => {
  const cases: [what: string, start: string, end: string, isNotable: boolean][] = [
    ["a brownout", "2027-05-03T09:10", "2027-05-04", true],
    ["the sunset", "2027-06-20", "2027-07-01", true],
    ["nothing", "2027-02-01", "2027-02-02", false],
    ["nothing, up to a brownout", "2027-05-01", "2027-05-03T09:00", false],
    ["nothing, after a brownout", "2027-05-03T14:00", "2027-05-04", false],
    ["nothing, up to the sunset", "2027-06-20", SUNSET, false],
  ];
  for (const [what, start, end, isNotable] of cases) {
    const policy = underHold(POLICY, hold(start, end));
    const { holds = [] } = policy;
    assertEquals(holdsAt(policy, at(start) - 1), [], what);
    for (const instant of [at(start), at(end) - 1]) {
      assertEquals([holdsAt(policy, instant), notableHolds(policy, instant)], [holds, holds], what);
    }
    assertEquals(holdsAt(policy, at(end)), [], what);
    assertEquals(notableHolds(policy, at(end)).length, isNotable ? 1 : 0, what);
  }
  assertEquals([holdsAt(POLICY, 0), notableHolds(POLICY, 0)], [[], []]);
});

Deno.test("underHolds() applies the holds on a route, and those on all, in order", () => {
  const policies = { "/a": POLICY, "/b": POLICY };
  const june: RouteHold = { ...hold("2027-06-01", "2027-07-10"), route: undefined };
  const may: RouteHold = { ...hold("2027-05-01", "2027-05-10"), route: "/b" };
  const other: RouteHold = { ...hold("2027-05-01", "2027-05-10"), route: "/c" };
  const held = underHolds(policies, [june, may, other]);
  assertEquals(held["/a"], underHold(POLICY, june));
  assertEquals(held["/b"], underHold(underHold(POLICY, may), june));
  assertEquals(underHolds(policies, [other])["/a"], POLICY);
});
