import { assertEquals } from "@std/assert";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { unlikelyDates } from "../../lib/server/unlikely_dates.ts";

const NOW = Date.parse("2027-01-01T00:00:00Z");
const [ROUTE, OTHER] = ["/audio/:token", "/video/:token"];

type Dates = Parameters<typeof definePolicy>[0];

const policy = (dates: Partial<Dates>) => {
  const sunset = dates.brownouts === undefined ? {} : { sunsetAt: "2027-12-31" };
  return definePolicy({ deprecatedAt: "2026-06-01", ...sunset, ...dates });
};

const SOON =
  "the sunset on 2027-01-30T23:59:59Z is announced for the first time, and not 30 days ahead";
const LONG = "the brownout from 2027-03-01T00:00:00Z to 2027-03-02T00:00:01Z is longer than a day";
const NEXT = "the brownout from 2027-01-01T23:59:59Z to 2027-01-02T00:59:59Z is announced for " +
  "the first time, and not a day ahead";

const ROWS: [what: string, dates: Partial<Dates>, recorded: Partial<Dates>[], lines: string[]][] = [
  ["no dates", {}, [], []],
  ["a sunset in 30 days", { sunsetAt: "2027-01-31" }, [], []],
  ["a sunset in less", { sunsetAt: "2027-01-30T23:59:59Z" }, [], [SOON]],
  ["that, and another on record", { sunsetAt: "2027-01-30T23:59:59Z" }, [
    { sunsetAt: "2027-01-15" },
  ], [SOON]],
  ["that, on record", { sunsetAt: "2027-01-30T23:59:59Z" }, [
    { sunsetAt: "2027-01-30T23:59:59Z" },
  ], []],
  ["a sunset that moves forward", { sunsetAt: "2027-05-01" }, [{ sunsetAt: "2027-06-01" }], [
    "the sunset on 2027-05-01T00:00:00Z was announced for 2027-06-01T00:00:00Z, so it moves forward",
  ]],
  ["one that has moved forward", { sunsetAt: "2027-05-01" }, [
    { sunsetAt: "2027-06-01" },
    { sunsetAt: "2027-05-01" },
  ], []],
  ["one that is postponed", { sunsetAt: "2027-07-01" }, [{ sunsetAt: "2027-06-01" }], []],
  ["a brownout of a day", { brownouts: ["2027-03-01/P1D"] }, [], []],
  ["one that is longer", { brownouts: ["2027-03-01/P1DT1S"] }, [], [LONG]],
  ["that, on record", { brownouts: ["2027-03-01/P1DT1S"] }, [
    { brownouts: ["2027-03-01/P1DT1S"] },
  ], []],
  ["a brownout in a day", { brownouts: ["2027-01-02/PT1H"] }, [], []],
  ["one in less", { brownouts: ["2027-01-01T23:59:59Z/PT1H"] }, [], [NEXT]],
  ["one that is over", { brownouts: ["2026-12-01/P2D"] }, [], []],
  ["a deprecation in two years", { deprecatedAt: "2028-12-31" }, [], []],
  ["one after that", { deprecatedAt: "2029-01-01" }, [], [
    "the deprecation begins on 2029-01-01T00:00:00Z, years from now",
  ]],
  ["that, on record", { deprecatedAt: "2029-01-01" }, [{ deprecatedAt: "2029-01-01" }], []],
];

for (const [what, dates, recorded, lines] of ROWS) {
  Deno.test(`unlikelyDates() of ${what}`, () => {
    const sessions = recorded.map((dates) => ({ policies: { [ROUTE]: policy(dates) } }));
    const found = unlikelyDates({ [ROUTE]: policy(dates) }, sessions, NOW);
    assertEquals(found, lines.map((line) => `${ROUTE}: ${line}`));
  });
}

Deno.test("unlikelyDates() names the routes that have a date in one line", () => {
  const dates = policy({ sunsetAt: "2027-01-30T23:59:59Z" });
  const all = { [ROUTE]: dates, [OTHER]: dates };
  assertEquals(unlikelyDates(all, [], NOW), [`${ROUTE} and ${OTHER}: ${SOON}`]);
  const sessions = [{ policies: { [ROUTE]: dates } }];
  assertEquals(unlikelyDates(all, sessions, NOW), [`${OTHER}: ${SOON}`]);
});
