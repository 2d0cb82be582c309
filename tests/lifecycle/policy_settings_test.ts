import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import {
  definePolicy,
  PolicyError,
  type PolicySettings,
} from "../../lib/lifecycle/policy_settings.ts";

const at = (text: string) => Date.parse(text);

Deno.test("definePolicy() parses dates, instants and intervals, and sorts them", () => {
  const policy = definePolicy({
    deprecatedAt: "2026-11-21",
    sunsetAt: "2027-06-30T12:00:00.900+02:00",
    brownouts: [
      "2027-05-03T09:00Z/PT1H30M",
      "2027-03-09T09:00Z/2027-03-09T10:00:30Z",
      "2027-04-01/P1D",
      "2027-03-01T00:00:00-01:00/P1W",
      "2027-01-31T00:00Z/P4W",
    ],
  });
  assertEquals(policy, {
    deprecatedAt: at("2026-11-21T00:00:00Z"),
    sunsetAt: at("2027-06-30T10:00:00Z"),
    brownouts: [
      { start: at("2027-01-31T00:00:00Z"), end: at("2027-02-28T00:00:00Z"), status: 503 },
      { start: at("2027-03-01T01:00:00Z"), end: at("2027-03-08T01:00:00Z"), status: 503 },
      { start: at("2027-03-09T09:00:00Z"), end: at("2027-03-09T10:00:30Z"), status: 503 },
      { start: at("2027-04-01T00:00:00Z"), end: at("2027-04-02T00:00:00Z"), status: 503 },
      { start: at("2027-05-03T09:00:00Z"), end: at("2027-05-03T10:30:00Z"), status: 503 },
    ],
    brownoutStatus: 503,
    afterSunset: "gone",
    documentation: undefined,
  });
});

Deno.test("definePolicy() gives a brownout the status of its own, and joins only neighbours that agree", () => {
  const days = { deprecatedAt: "2027-01-01", sunsetAt: "2027-06-30" };
  const { brownouts } = definePolicy({
    ...days,
    brownoutStatus: 410,
    brownouts: [
      "2027-03-05/2027-03-06=503",
      "2027-03-01/P1D=503",
      "2027-03-02/P1D=410",
      { start: "2027-03-03", end: "2027-03-04" },
      { start: "2027-03-04", end: "2027-03-05", status: 503 },
      "2027-03-06T00:00:01Z/PT1H=503", // not adjacent
    ],
  });
  const day = (number: number) => at(`2027-03-0${number}T00:00:00Z`);
  assertEquals(brownouts, [
    { start: day(1), end: day(2), status: 503 },
    { start: day(2), end: day(4), status: 410 },
    { start: day(4), end: day(6), status: 503 },
    { start: day(6) + 1_000, end: day(6) + 3_601_000, status: 503 },
  ]);
  for (const end of ["=404", "=", "=410=503", "=0410", " =410"]) {
    const text = `2027-03-01/P1D${end}`;
    const settings = { ...days, brownouts: [text] };
    const expected = expectedFor(settings, "brownouts[0]", shown(text));
    assertStringIncludes(expected, 'with "=503" or "=410" at the end');
  }
  const object = { start: "2027-03-01", end: "2027-03-02", status: 404 };
  const settings = { ...days, brownouts: [object] };
  assertEquals(expectedFor(settings, "brownouts[0].status", "404"), "503 or 410");
});

Deno.test("definePolicy() accepts boundary values", () => {
  definePolicy({ deprecatedAt: "2027-01-01", sunsetAt: "2027-01-01" });
  definePolicy({
    deprecatedAt: "2027-01-01",
    sunsetAt: "2027-01-03",
    brownouts: ["2027-01-01/P1D", "2027-01-02/PT23H59M59S"],
  });
  for (const documentation of ["/", "/gone?why=1#now", "https://example.com/a(b)'c"]) {
    const policy = definePolicy({ deprecatedAt: "2027-01-01", documentation });
    assertEquals(policy.documentation, documentation);
  }
});

const VALID = { deprecatedAt: "2027-01-01", sunsetAt: "2027-06-30" } as const;
const DAY = Temporal.PlainDate.from("2027-06-30");
const INSTANT = "an ISO 8601 date or instant";
const ANY_INSTANT =
  "a Date, a Temporal.Instant, or an ISO 8601 date or instant from 1970 to 9999, " +
  'like "2027-06-30" or "2027-06-30T12:00:00Z"';
const LINK =
  'a path that starts with "/", or an "https:" URL without a password, of at most 1024 characters';

/** What is wrong with a value, part of what is expected, and how the message shows the value. */
type Invalid = [what: string, value: unknown, expected: string, got?: string];

const INVALID_VALUES: Readonly<Partial<Record<keyof PolicySettings, readonly Invalid[]>>> = {
  deprecatedAt: [
    ["missing", undefined, ANY_INSTANT],
    ["not a date", "soon", INSTANT],
    ["a nonexistent date", "2027-02-30", INSTANT],
    ["a number", 1e12, ANY_INSTANT],
    ["a bigint", 1n, ANY_INSTANT],
    ["a symbol", Symbol("x"), ANY_INSTANT],
  ],
  sunsetAt: [
    ["empty", "", INSTANT],
    ["without offset", "2027-06-30T12:00", INSTANT],
    ["an HTTP-date", "Wed, 30 Jun 2027 00:00:00 GMT", INSTANT],
    ["before 1970", "1969-12-31", "from 1970"],
    ["more than an HTTP-date can express", "+010000-01-01T00:00Z", "to 9999"],
    ["before the deprecation", "2026-12-31", "no earlier than the deprecation at 2027-01-01T00:"],
    ["null for none", null, ANY_INSTANT],
    ["an invalid Date", new Date(NaN), ANY_INSTANT, "Invalid Date"],
    ["a Date too far ahead", new Date(8e15), ANY_INSTANT, String(new Date(8e15))],
    ["without a time zone", DAY, ANY_INSTANT, "[object Temporal.PlainDate]"],
  ],
  brownouts: [
    ["not in a list", "2027-03-01/P1D", "a list of intervals"],
    ["null for a list", null, "a list of intervals"],
  ],
  brownoutStatus: [["another status", "503", "503 or 410"]],
  afterSunset: [
    ["unknown", "teapot", '"gone" or "redirect"'],
    ["null", null, '"gone" or "redirect"'],
  ],
  documentation: [
    ["a long path", `/${"a".repeat(5000)}`, LINK],
    ["a long URL", `https://example.com/${"a".repeat(1005)}`, LINK],
    ["not secure", "http://example.com/", LINK],
    ["another host without a scheme", "//example.com/", LINK],
    ["relative", "deprecation", LINK],
    ["a password", "https://user:secret@example.com/", LINK, '"https://…@example.com/"'],
    ["a user", "https://user@example.com/", LINK, '"https://…@example.com/"'],
    ["with a space", "/a b", LINK],
    ["what would close its brackets", "/a>;rel=x", LINK],
    ["not ASCII", "/für", LINK],
    ["not a string", 5, LINK],
    ["an object", new URL("https://a.test/"), LINK, "[object URL]"],
  ],
};

/** Asserts that settings are rejected for one of them, and returns what is expected instead. */
function expectedFor(settings: unknown, setting: string, got: string): string {
  const error = assertThrows(() => definePolicy(settings as PolicySettings), PolicyError);
  assertEquals(error.issues.map((issue) => issue.setting), [setting]);
  const expected = error.issues[0]?.expected ?? "";
  assertEquals(error.message, `${setting}: expected ${expected}, got ${got}`);
  return expected;
}

const shown = (value: unknown) => typeof value === "string" ? `"${value}"` : String(value);

Deno.test("definePolicy() rejects invalid values, with the name, the value and what is expected", () => {
  for (const [setting, rows] of Object.entries(INVALID_VALUES)) {
    for (const [what, value, expected, got = shown(value)] of rows) {
      const settings = { ...VALID, [setting]: value };
      assertStringIncludes(expectedFor(settings, setting, got), expected, `${setting}: ${what}`);
    }
  }
});

Deno.test("definePolicy() rejects brownouts that are not intervals or are out of place", () => {
  const interval = "ISO 8601 intervals";
  const positive = "an interval that ends after it starts";
  const beforeSunset = "an end before the sunset at 2027-06-30T00:00:00Z";
  const rows: [what: string, brownout: string, expected: string][] = [
    ["no interval", "2027-03-01", interval],
    ["three parts", "2027-03-01/P1D/P1D", interval],
    ["no start", "/P1D", interval],
    ["no end", "2027-03-01/", interval],
    ["a wrong duration", "2027-03-01/PX", interval],
    ["empty", "", interval],
    ["beyond what an HTTP-date can express", "2027-03-01/P500000W", interval],
    ["no length", "2027-03-01/2027-03-01", positive],
    ["of no fixed length", "2027-01-31/P1M", interval],
    ["less than a second", "2027-03-01/PT0.5S", interval],
    ["nothing after the T", "2027-03-01/P1DT", interval],
    ["a start without offset", "2027-03-01T09:00/PT1H", interval],
    ["no amount", "2027-03-01/P", interval],
    ["an end before the start", "2027-03-02/2027-03-01", positive],
    ["past the sunset", "2027-06-29T23:30Z/PT1H", beforeSunset],
    ["an end at the sunset", "2027-06-29T23:00Z/PT1H", beforeSunset],
    ["before the deprecation", "2026-12-31T23:30Z/PT1H", "a start no earlier than the deprecation"],
    ["an overlap", "2027-04-01T12:00Z/PT1H", 'no overlap with "2027-04-01/P1D"'],
    ["the same twice", "2027-04-01/P1D", 'no overlap with "2027-04-01/P1D"'],
  ];
  for (const [what, brownout, expected] of rows) {
    const settings = { ...VALID, brownouts: ["2027-04-01/P1D", brownout] };
    assertStringIncludes(expectedFor(settings, "brownouts[1]", `"${brownout}"`), expected, what);
  }
  const open = { deprecatedAt: "2027-01-01", brownouts: ["2027-03-01/P1D"] };
  assertEquals(
    expectedFor(open, "brownouts[0]", '"2027-03-01/P1D"'),
    "a sunset date, since brownouts precede the sunset",
  );

  const objects: [brownout: unknown, member: string, got: string, expected: string][] = [
    [5, "", "5", `{ start, end }, or ${interval}`],
    [{ start: "2027-03-01" }, ".end", "undefined", ANY_INSTANT],
    [
      { start: "2027-03-02", end: new Date("2027-03-01") },
      "",
      '"2027-03-02T00:00:00Z/2027-03-01T00:00:00Z"',
      positive,
    ],
  ];
  for (const [brownout, member, got, expected] of objects) {
    const settings = { ...VALID, brownouts: [brownout] };
    assertStringIncludes(expectedFor(settings, `brownouts[0]${member}`, got), expected);
  }
});

Deno.test("definePolicy() rejects settings that are not an object, and unknown names", () => {
  for (const settings of [undefined, null, 5]) {
    assertEquals(expectedFor(settings, "settings", String(settings)), "an object");
  }
  const names = "deprecatedAt, sunsetAt, brownouts, brownoutStatus, afterSunset, documentation";
  const misspelt = { ...VALID, sunset: "2027-06-30" };
  assertEquals(expectedFor(misspelt, "settings", '"sunset"'), `only ${names}`);
});

Deno.test("definePolicy() accepts instants as Date, Temporal.Instant or text", () => {
  const forms = [
    (text: string) => text,
    (text: string) => new Date(text),
    (text: string) => Temporal.Instant.from(text),
  ];
  const policies = forms.map((instant) =>
    definePolicy({
      deprecatedAt: instant("2027-01-01T00:00:00.5Z"),
      sunsetAt: instant("9999-12-31T23:59:59.9Z"),
      brownouts: [{ start: instant("2027-03-01T09:00Z"), end: instant("2027-03-01T10:00Z") }],
    })
  );
  const asText = definePolicy({
    deprecatedAt: "2027-01-01",
    sunsetAt: "9999-12-31T23:59:59Z",
    brownouts: ["2027-03-01T09:00Z/PT1H"],
  });
  assertEquals(policies, [asText, asText, asText]);
});

Deno.test("definePolicy() reports all issues at once", () => {
  const { issues } = assertThrows(() =>
    definePolicy({
      deprecatedAt: "x",
      sunsetAt: "y",
      brownouts: ["z", "2027-03-01/P1D"],
      documentation: "w",
    }), PolicyError);
  assertEquals(issues.map(({ value }) => value), ["x", "y", "w", "z"]);
});
