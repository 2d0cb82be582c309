import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "../support/fast_check.ts";
import { formatInstant } from "../../lib/lifecycle/policy.ts";
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
      "2027-01-31T00:00Z/P1M",
    ],
  });
  assertEquals(policy, {
    deprecatedAt: at("2026-11-21T00:00:00Z"),
    sunsetAt: at("2027-06-30T10:00:00Z"),
    brownouts: [
      { start: at("2027-01-31T00:00:00Z"), end: at("2027-02-28T00:00:00Z") },
      { start: at("2027-03-01T01:00:00Z"), end: at("2027-03-08T01:00:00Z") },
      { start: at("2027-03-09T09:00:00Z"), end: at("2027-03-09T10:00:30Z") },
      { start: at("2027-04-01T00:00:00Z"), end: at("2027-04-02T00:00:00Z") },
      { start: at("2027-05-03T09:00:00Z"), end: at("2027-05-03T10:30:00Z") },
    ],
    afterSunset: "gone",
    documentation: undefined,
  });
});

Deno.test("definePolicy() accepts boundary values", () => {
  definePolicy({ deprecatedAt: "2027-01-01", sunsetAt: "2027-01-01" });
  definePolicy({
    deprecatedAt: "2027-01-01",
    sunsetAt: "2027-01-03",
    brownouts: ["2027-01-01/P1D", "2027-01-02/P1D"],
  });
  for (const documentation of ["/", "/gone?why=1#now", "https://example.com/a(b)'c"]) {
    assertEquals(
      definePolicy({ deprecatedAt: "2027-01-01", documentation }).documentation,
      documentation,
    );
  }
});

const VALID = { deprecatedAt: "2027-01-01", sunsetAt: "2027-06-30" } as const;
const INSTANT = "an ISO 8601 date or instant";
const ANY_INSTANT =
  "a Date, a Temporal.Instant, or an ISO 8601 date or instant from 1970 to 9999, " +
  'like "2027-06-30" or "2027-06-30T12:00:00Z"';
const INTERVAL = "ISO 8601 intervals";

const REFUSALS: [
  what: string,
  settings: Partial<PolicySettings>,
  setting: string,
  value: string,
  expected: string,
][] = [
  ["not a date", { deprecatedAt: "soon" }, "deprecatedAt", "soon", INSTANT],
  [
    "a nonexistent date",
    { deprecatedAt: "2027-02-30" },
    "deprecatedAt",
    "2027-02-30",
    INSTANT,
  ],
  [
    "an instant without offset",
    { sunsetAt: "2027-06-30T12:00" },
    "sunsetAt",
    "2027-06-30T12:00",
    INSTANT,
  ],
  [
    "an HTTP-date",
    { sunsetAt: "Wed, 30 Jun 2027 00:00:00 GMT" },
    "sunsetAt",
    "Wed, 30 Jun 2027 00:00:00 GMT",
    INSTANT,
  ],
  ["an instant before 1970", { sunsetAt: "1969-12-31" }, "sunsetAt", "1969-12-31", "from 1970"],
  [
    "an instant that no HTTP-date can express",
    { sunsetAt: "+010000-01-01T00:00Z" },
    "sunsetAt",
    "+010000-01-01T00:00Z",
    "to 9999",
  ],
  [
    "a brownout beyond what an HTTP-date can express",
    { brownouts: ["2027-03-01/P9000Y"] },
    "brownouts[0]",
    "2027-03-01/P9000Y",
    INTERVAL,
  ],
  ["an empty text", { sunsetAt: "" }, "sunsetAt", "", INSTANT],
  [
    "a sunset before the deprecation",
    { sunsetAt: "2026-12-31" },
    "sunsetAt",
    "2026-12-31",
    "no earlier than the deprecation at 2027-01-01T00:00:00Z",
  ],
  [
    "a brownout that is not an interval",
    { brownouts: ["2027-03-01"] },
    "brownouts[0]",
    "2027-03-01",
    INTERVAL,
  ],
  [
    "a brownout of three parts",
    { brownouts: ["2027-03-01/P1D/P1D"] },
    "brownouts[0]",
    "2027-03-01/P1D/P1D",
    INTERVAL,
  ],
  ["a brownout without its start", { brownouts: ["/P1D"] }, "brownouts[0]", "/P1D", INTERVAL],
  [
    "a brownout without its end",
    { brownouts: ["2027-03-01/"] },
    "brownouts[0]",
    "2027-03-01/",
    INTERVAL,
  ],
  [
    "a brownout with a wrong duration",
    { brownouts: ["2027-03-01/PX"] },
    "brownouts[0]",
    "2027-03-01/PX",
    INTERVAL,
  ],
  ["an empty brownout", { brownouts: [""] }, "brownouts[0]", "", INTERVAL],
  [
    "a brownout of no length",
    { brownouts: ["2027-03-01/2027-03-01"] },
    "brownouts[0]",
    "2027-03-01/2027-03-01",
    "ends after it starts",
  ],
  [
    "a brownout of less than a second",
    { brownouts: ["2027-03-01/PT0.5S"] },
    "brownouts[0]",
    "2027-03-01/PT0.5S",
    "ends after it starts",
  ],
  [
    "a brownout that ends before it starts",
    { brownouts: ["2027-03-02/2027-03-01"] },
    "brownouts[0]",
    "2027-03-02/2027-03-01",
    "ends after it starts",
  ],
  [
    "a brownout past the sunset",
    { brownouts: ["2027-06-29T23:30Z/PT1H"] },
    "brownouts[0]",
    "2027-06-29T23:30Z/PT1H",
    "no later than the sunset at 2027-06-30T00:00:00Z",
  ],
  [
    "a brownout before the deprecation",
    { brownouts: ["2026-12-31T23:30Z/PT1H"] },
    "brownouts[0]",
    "2026-12-31T23:30Z/PT1H",
    "no earlier than the deprecation at 2027-01-01T00:00:00Z",
  ],
  [
    "a brownout without a sunset",
    { sunsetAt: undefined, brownouts: ["2027-03-01/P1D"] },
    "brownouts[0]",
    "2027-03-01/P1D",
    "a sunset",
  ],
  [
    "overlapping brownouts",
    { brownouts: ["2027-03-01T12:00Z/PT1H", "2027-03-01/P1D"] },
    "brownouts[0]",
    "2027-03-01T12:00Z/PT1H",
    'no overlap with "2027-03-01/P1D"',
  ],
  [
    "a brownout twice",
    { brownouts: ["2027-03-01/P1D", "2027-03-01/P1D"] },
    "brownouts[1]",
    "2027-03-01/P1D",
    "no overlap",
  ],
  [
    "an unknown afterSunset",
    { afterSunset: "teapot" as "gone" },
    "afterSunset",
    "teapot",
    '"gone" or "redirect"',
  ],
  [
    "a link that is not secure",
    { documentation: "http://example.com/" },
    "documentation",
    "http://example.com/",
    '"https:" URL',
  ],
  [
    "a link to another host without a scheme",
    { documentation: "//example.com/" },
    "documentation",
    "//example.com/",
    "a path",
  ],
  ["a relative link", { documentation: "deprecation" }, "documentation", "deprecation", "a path"],
  ["a link with a space", { documentation: "/a b" }, "documentation", "/a b", "a path"],
  [
    "a link that would close its brackets",
    { documentation: "/a>;rel=x" },
    "documentation",
    "/a>;rel=x",
    "a path",
  ],
  ["a non-ASCII link", { documentation: "/für" }, "documentation", "/für", "a path"],
];

Deno.test("definePolicy() rejects invalid settings, with the name, the value and what is expected", () => {
  for (const [what, settings, setting, value, expected] of REFUSALS) {
    const error = assertThrows(() => definePolicy({ ...VALID, ...settings }), PolicyError);
    assertEquals(
      error.issues.map((issue) => [issue.setting, issue.value]),
      [[setting, value]],
      what,
    );
    assert(error.issues[0]?.expected.includes(expected), `${what}: ${error.message}`);
    assertEquals(
      error.message,
      `${setting}: expected ${error.issues[0]?.expected}, got ${JSON.stringify(value)}`,
    );
  }
});

/** Settings of types that the compiler would reject. */
const MISTAKES: [what: string, settings: unknown, message: string][] = [
  ["nothing", undefined, "settings: expected an object, got undefined"],
  ["null", null, "settings: expected an object, got null"],
  ["a string", "2027-01-01", 'settings: expected an object, got "2027-01-01"'],
  ["a list", [], "settings: expected an object, got [object Array]"],
  ["no setting", {}, `deprecatedAt: expected ${ANY_INSTANT}, got undefined`],
  [
    "an unknown name",
    { ...VALID, sunset: "2027-06-30" },
    'sunset: expected one of deprecatedAt, sunsetAt, brownouts, afterSunset, documentation, got "2027-06-30"',
  ],
  ["a number", { deprecatedAt: 1e12 }, `deprecatedAt: expected ${ANY_INSTANT}, got 1000000000000`],
  ["a bigint", { deprecatedAt: 1n }, `deprecatedAt: expected ${ANY_INSTANT}, got 1`],
  [
    "a symbol",
    { deprecatedAt: Symbol("x") },
    `deprecatedAt: expected ${ANY_INSTANT}, got Symbol(x)`,
  ],
  [
    "null for none",
    { ...VALID, sunsetAt: null },
    `sunsetAt: expected ${ANY_INSTANT}, got null`,
  ],
  [
    "an invalid Date",
    { ...VALID, sunsetAt: new Date(NaN) },
    `sunsetAt: expected ${ANY_INSTANT}, got an invalid Date`,
  ],
  [
    "a Date too far ahead",
    { ...VALID, sunsetAt: new Date(8e15) },
    `sunsetAt: expected ${ANY_INSTANT}, got ${new Date(8e15).toISOString()}`,
  ],
  [
    "a date without a time zone",
    { ...VALID, sunsetAt: Temporal.PlainDate.from("2027-06-30") },
    `sunsetAt: expected ${ANY_INSTANT}, got [object Temporal.PlainDate]`,
  ],
  [
    "a brownout not in a list",
    { ...VALID, brownouts: "2027-03-01/P1D" },
    'brownouts: expected a list of intervals, got "2027-03-01/P1D"',
  ],
  [
    "null for a list",
    { ...VALID, brownouts: null },
    "brownouts: expected a list of intervals, got null",
  ],
  [
    "a brownout of another type",
    { ...VALID, brownouts: ["2027-03-01/P1D", 5] },
    `brownouts[1]: expected { start, end }, or ${INTERVAL}`,
  ],
  [
    "a brownout without its end",
    { ...VALID, brownouts: [{ start: "2027-03-01" }] },
    `brownouts[0].end: expected ${ANY_INSTANT}, got undefined`,
  ],
  [
    "a misspelt end",
    { ...VALID, brownouts: [{ start: "2027-03-01", end: "2027-03-02", until: 1 }] },
    "brownouts[0].until: expected one of start, end, got 1",
  ],
  [
    "a brownout that ends before it starts",
    { ...VALID, brownouts: [{ start: "2027-03-02", end: new Date("2027-03-01") }] },
    'brownouts[0]: expected an interval that ends after it starts, got "2027-03-02T00:00:00Z/2027-03-01T00:00:00Z"',
  ],
  [
    "not a string",
    { ...VALID, documentation: 5 },
    'documentation: expected a path that starts with "/"',
  ],
  [
    "a URL",
    { ...VALID, documentation: new URL("https://a.test/") },
    "documentation: expected a path",
  ],
  [
    "null for afterSunset",
    { ...VALID, afterSunset: null },
    'afterSunset: expected "gone" or "redirect", got null',
  ],
];

Deno.test("definePolicy() rejects what the compiler would have rejected", () => {
  for (const [what, settings, message] of MISTAKES) {
    const error = assertThrows(() => definePolicy(settings as PolicySettings), PolicyError);
    assert(error.message.startsWith(message), `${what}: ${error.message}`);
    assertEquals(error.issues.length, 1, what);
  }
});

Deno.test("definePolicy() throws nothing but a PolicyError for any input", () => {
  const values = fc.oneof(fc.anything({ withDate: true, withBigInt: true }), fc.string());
  const settings = fc.oneof(
    values,
    fc.record({
      deprecatedAt: values,
      sunsetAt: values,
      brownouts: fc.oneof(
        values,
        fc.array(fc.oneof(values, fc.record({ start: values, end: values }))),
      ),
      afterSunset: values,
      documentation: values,
    }, { requiredKeys: [] }),
  );
  fc.assert(fc.property(settings, (settings) => {
    const { issues } = assertThrows(() => definePolicy(settings as PolicySettings), PolicyError);
    assert(issues.length > 0);
  }));
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

Deno.test("definePolicy() joins adjacent brownouts", () => {
  const { brownouts } = definePolicy({
    ...VALID,
    brownouts: ["2027-03-02/P1D", "2027-03-01/P1D", "2027-03-03T00:00:01Z/PT1H", "2027-03-04/P1D"],
  });
  assertEquals(brownouts.map(({ start, end }) => [formatInstant(start), formatInstant(end)]), [
    ["2027-03-01T00:00:00Z", "2027-03-03T00:00:00Z"],
    ["2027-03-03T00:00:01Z", "2027-03-03T01:00:01Z"],
    ["2027-03-04T00:00:00Z", "2027-03-05T00:00:00Z"],
  ]);
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
