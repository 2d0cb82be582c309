import { assert, assertEquals, assertThrows } from "@std/assert";
import project from "../../deno.json" with { type: "json" };
import { postgresAt, sqliteAt } from "../../lib/database/place.ts";
import type { Policy } from "../../lib/lifecycle/policy.ts";
import {
  definePolicy,
  PolicyError,
  type PolicySettings,
} from "../../lib/lifecycle/policy_settings.ts";
import { type Config, ConfigError, readConfig } from "../../lib/server/config.ts";
import type { BucketSettings } from "../../lib/storage/content/content_place.ts";
import { underPolicy } from "../support/routes.ts";

const PATHS = ["/audio/:token", "/video/:token"];

const read = (
  environment: Record<string, string>,
  user: "server" | "command" = "command",
  paths: readonly string[] = PATHS,
) => readConfig((name) => environment[name], user, paths);

/** The faults that are found in settings. */
const faultsIn = (environment: Record<string, string>, paths?: readonly string[]) =>
  assertThrows(() => read(environment, "command", paths), ConfigError).message.split("\n");

const MAY = "2027-05-03T09:00Z/PT1H";

/** What a policy expects in place of the one setting that is wrong. */
const expectedBy = (settings: PolicySettings) =>
  assertThrows(() => definePolicy(settings), PolicyError).issues[0]?.expected ?? "";

Deno.test("readConfig() has a default for everything", () => {
  const { policy, policies, ...config } = read({});
  assertEquals(config, {
    host: "0.0.0.0",
    port: 8000,
    reusePort: false,
    publicUrl: undefined,
    contact: undefined,
    database: sqliteAt("./data/catalogue.sqlite"),
    content: { kind: "folder", path: "./data/files" },
    isOnDeploy: false,
    isDatabaseNamed: false,
    isDefaultStorage: true,
    cacheMaxAge: 300,
    retainDays: 400,
    clientField: undefined,
    isTelemetryOn: false,
    isTracingOn: false,
    isDeprecationUnset: true,
  });
  assertEquals(policy, {
    deprecatedAt: Date.parse("2026-11-21"),
    sunsetAt: undefined,
    brownouts: [],
    brownoutStatus: 503,
    afterSunset: "gone",
    documentation: "/deprecation",
  });
  assertEquals(policies, { "/audio/:token": policy, "/video/:token": policy });
  assertEquals(read({ PORT: "", DATABASE_URL: "", SUNSET_AT: "" }), read({}));
});

const AWS = {
  AWS_ACCESS_KEY_ID: "AKID",
  AWS_SECRET_ACCESS_KEY: "wJalr/K7+EXAMPLE",
  AWS_REGION: "eu-central-1",
};
const IN_BUCKET = { ...AWS, CONTENT: "s3://abc" };
const BUCKET: BucketSettings = {
  kind: "bucket",
  bucket: "abc",
  prefix: "",
  region: "eu-central-1",
  endpoint: undefined,
  accessKeyId: "AKID",
  timeoutMs: 30_000,
  secretAccessKey: "wJalr/K7+EXAMPLE",
  sessionToken: undefined,
};

Deno.test("readConfig() reads every variable, and accepts boundary values", () => {
  const onDeploy = { DENO_DEPLOY: "true", DATABASE_URL: "postgresql://db/x" };
  const deployed = {
    database: postgresAt("postgresql://db/x"),
    isOnDeploy: true,
    isDatabaseNamed: true,
    isDefaultStorage: false,
  };
  const policy: Policy = {
    deprecatedAt: Date.parse("2027-01-01T10:00:00Z"),
    sunsetAt: Date.parse("2027-06-30"),
    brownouts: ["2027-03-01T09:00Z", "2027-04-01T09:00Z"].map((text) => {
      const start = Date.parse(text);
      return { start, end: start + 3_600_000, status: 410 as const };
    }),
    ...{ brownoutStatus: 410, afterSunset: "redirect" } as const,
    documentation: "https://docs.test/retired",
  };
  type Row = [environment: Record<string, string>, expected: Partial<Config>];
  const named = (DATABASE_URL: string, database: Config["database"]): Row => [
    { DATABASE_URL },
    { database, isDatabaseNamed: true, isDefaultStorage: false },
  ];
  const rows: Row[] = [
    [{
      DEPRECATED_AT: "2027-01-01T12:00:00+02:00",
      SUNSET_AT: "2027-06-30",
      BROWNOUTS: "2027-03-01T09:00Z/PT1H, 2027-04-01T09:00Z/2027-04-01T10:00Z",
      BROWNOUT_STATUS: "410",
      AFTER_SUNSET: "redirect",
      DEPRECATION_DOC: "https://docs.test/retired",
    }, { ...underPolicy(policy), isDeprecationUnset: false }],
    [{ HOST: "localhost", PORT: "0" }, { host: "localhost", port: 0 }],
    [{ HOST: "::1", PORT: "65535" }, { host: "::1", port: 65535 }],
    [{ REUSE_PORT: "true" }, { reusePort: true }],
    [{ REUSE_PORT: "false" }, { reusePort: false }],
    [{ PUBLIC_URL: "HTTPS://A.example.com:443/" }, { publicUrl: "https://a.example.com" }],
    [{ CONTACT: "mailto:ops@example.com" }, { contact: "mailto:ops@example.com" }],
    [{ CONTACT: "mailto:o+a@b.test?subject=x" }, { contact: "mailto:o+a@b.test?subject=x" }],
    [{ CONTACT: "HTTPS://A.test/help" }, { contact: "https://a.test/help" }],
    [{ CLIENT_FIELD: "X-Consumer" }, { clientField: "X-Consumer" }],
    [{ CACHE_MAX_AGE: "0" }, { cacheMaxAge: 0 }],
    [{ CACHE_MAX_AGE: "31536000" }, { cacheMaxAge: 31_536_000 }],
    [{ USAGE_DAYS: "1" }, { retainDays: 1 }],
    [{ USAGE_DAYS: "3650" }, { retainDays: 3650 }],
    ...["///srv/x", "x"].flatMap((path) =>
      ["sqlite", "SQLITE"].map((scheme) => named(`${scheme}:${path}`, sqliteAt(path)))
    ),
    ...[
      "postgres://db/x",
      "postgres://u:p%40ss%2F%23@h/d?a=b",
      "postgres:///d?host=/run",
      "postgresql://u:p@/d?host=/run",
      "Postgres://u:p@h/d",
      "POSTGRESQL:///d?host=/run",
    ].map((url) => named(url, postgresAt(url))),
    [onDeploy, { ...deployed, content: { kind: "none" } }],
    [{ ...onDeploy, ...AWS, CONTENT: "s3://abc" }, { ...deployed, content: BUCKET }],
    [{ CONTENT: "none" }, { content: { kind: "none" }, isDefaultStorage: false }],
    [{ CONTENT: "./none" }, { content: { kind: "folder", path: "./none" } }],
    [{ CONTENT: "x", AWS_REGION: "?" }, { content: { kind: "folder", path: "x" } }],
    [{ OTEL_DENO: "1" }, { isTelemetryOn: true }],
    [{ OTEL_DENO: "0" }, { isTelemetryOn: false }],
    [{ OTEL_DENO: "false" }, { isTelemetryOn: false }],
    [{ OTEL_DENO: "true" }, { isTelemetryOn: true, isTracingOn: true }],
    [{ OTEL_DENO: "true", OTEL_DENO_TRACING: "0" }, { isTelemetryOn: true, isTracingOn: true }],
    [{ OTEL_DENO: "true", OTEL_DENO_TRACING: "False" }, { isTelemetryOn: true }],
    [{ OTEL_DENO_TRACING: "true" }, { isTracingOn: true }],
  ];
  for (const [environment, expected] of rows) {
    assertEquals(read(environment), { ...read({}), ...expected }, JSON.stringify(environment));
  }
});

Deno.test("readConfig() reads a bucket as other S3 tools do", () => {
  const rows: [environment: Record<string, string>, expected: Partial<BucketSettings>][] = [
    [{}, {}],
    [{ CONTENT: "s3://abc/" }, {}],
    [{ CONTENT: "s3://abc//" }, {}],
    [{ CONTENT: "s3://a.b-c/d/e f/" }, { bucket: "a.b-c", prefix: "d/e f" }],
    [{ AWS_SESSION_TOKEN: "IQoJ//8=" }, { sessionToken: "IQoJ//8=" }],
    [{ AWS_DEFAULT_REGION: "auto" }, {}],
    [{ AWS_DEFAULT_REGION: "auto", AWS_REGION: "" }, { region: "auto" }],
    [{ AWS_ENDPOINT_URL: "http://[::1]:9000/base/" }, { endpoint: "http://[::1]:9000/base" }],
    [
      { AWS_ENDPOINT_URL_S3: "https://s3.test", AWS_ENDPOINT_URL: "https://aws.test" },
      { endpoint: "https://s3.test" },
    ],
  ];
  for (const [environment, expected] of rows) {
    const { content, isDefaultStorage } = read({ ...IN_BUCKET, ...environment });
    const bucket = { ...BUCKET, ...expected };
    assertEquals([content, isDefaultStorage], [bucket, false], JSON.stringify(environment));
  }
});

Deno.test("readConfig() rejects invalid values, with the name, the value and what is expected", () => {
  const onDeploy = { DENO_DEPLOY: "true" };
  const instant = expectedBy({ deprecatedAt: "soon" });
  const rows: [
    name: string,
    expected: string,
    values: string[],
    others?: Record<string, string>,
  ][] = [
    ["HOST", "a host name or an IP address", ["a b"]],
    ["PORT", "a port number from 0 to 65535", ["http", "65536", "-1", "8000.5", " 8000"]],
    ["REUSE_PORT", '"true" or "false"', ["yes"]],
    [
      "PUBLIC_URL",
      'the "https:" or "http:" URL of this server, without a path',
      ["a.test", "ftp://a.test", "https://a.test/b", "http://a.test/?b", "https://b@a.test"],
    ],
    [
      "CONTACT",
      'a "mailto:" URL with one address, or an "https:" URL without a password',
      ["a.test", "http://a.test", "mailto:", "mailto:a.test", "https://b@a.test"],
    ],
    ["CACHE_MAX_AGE", "seconds from 0 to 31536000", ["x", "31536001"]],
    ["USAGE_DAYS", "days from 1 to 3650", ["0", "3651"]],
    [
      "CLIENT_FIELD",
      "the name of a request field that names the client, and is no credential",
      ["Authorization", "cookie"],
    ],
    [
      "DATABASE_URL",
      '"sqlite:PATH", or the "postgres://…" URL of a database, with no space around it' + ENCODED,
      [
        "redis://x",
        "sqlite:",
        "sqlite:./x ",
        "sqlite:postgres://u:secret@h/d",
        "sqlite:MySQL://u:secret@h/d",
        "sqlite://u:secret@h/d",
        "postgres://",
        "postgres://db/x ",
        "postgres://u:p@ss@h/d",
        "postgres://u:1/2@h/d",
        "postgres://u:secret",
        "host=h user=u password=secret",
      ],
    ],
    [
      "DATABASE_URL",
      'the "postgres://…" URL of a database attached to the app' + ENCODED,
      ["", "sqlite:./x", "postgres://db:x"],
      onDeploy,
    ],
    [
      "CONTENT",
      'a folder, "s3://BUCKET/PREFIX", or "none"',
      ["gs://abc/d", "S3://abc", "file:///srv"],
    ],
    [
      "CONTENT",
      '"s3://BUCKET/PREFIX", or "none", on Deno Deploy',
      ["./files"],
      { ...onDeploy, DATABASE_URL: "postgres://db/x" },
    ],
    [
      "CONTENT",
      '"s3://BUCKET/PREFIX", BUCKET in lower case, with no empty, "." or ".." part in PREFIX',
      ["s3://", "s3:abc", "s3://A_b/c", "s3://abc/d//e", "s3://abc/./e", "s3://abc/.."],
      AWS,
    ],
    [
      "AWS_ENDPOINT_URL_S3",
      'the "https:" or "http:" URL of an S3-compatible store',
      ["s3.test", "ftp://s3.test", "https://s3.test/?a", "https://s3.test/#a"],
      IN_BUCKET,
    ],
    [
      "AWS_REGION",
      'the region of the bucket in CONTENT, like "eu-central-1"',
      ["eu central"],
      IN_BUCKET,
    ],
    ["DEPRECATED_AT", instant, ["soon"]],
    ["SUNSET_AT", instant, ["2027-02-30"]],
    [
      "BROWNOUTS",
      expectedBy({ deprecatedAt: "2027-01-01", brownouts: ["2027-03-01T09:00Z/PT1H"] }),
      ["2027-03-01T09:00Z/PT1H"],
    ],
    ["AFTER_SUNSET", '"gone" or "redirect"', ["teapot"]],
    [
      "DEPRECATION_DOC",
      expectedBy({ deprecatedAt: "2027-01-01", documentation: "http://x.test/" }),
      ["http://x.test/"],
    ],
  ];
  for (const [name, expected, values, others] of rows) {
    for (const value of values) {
      const [message] = faultsIn({ ...others, [name]: value });
      const shown = name === "DATABASE_URL" ? "…" : value.replace("b@", "…@");
      const got = value === "" ? "nothing" : JSON.stringify(shown);
      assertEquals(message, `${name}: expected ${expected}, got ${got}`);
    }
  }
});

const ENCODED = ', with "@" in a password as "%40", "/" as "%2F", and "#" as "%23"';

Deno.test("readConfig() shows no password or secret of an invalid URL or name", () => {
  const rows: [name: string, value: string, shown: string][] = [
    ["PUBLIC_URL", "user:secret@a.test", "…@a.test"],
    ["PUBLIC_URL", "https:user:secret@a.test", "…@a.test"],
    ["PUBLIC_URL", "https://user:sec:r@t@a.test/", "https://…@a.test/"],
    ["PUBLIC_URL", "https://user:secret", "https://user:…"],
    ["PUBLIC_URL", "https://a.test:99999/", "https://a.test:99999/"],
    ["DEPRECATION_DOC", "https://user:secret@a.test/x", "https://…@a.test/x"],
    ["CLIENT_FIELD", "X-Key: secret", "X-Key…"],
    ["CLIENT_FIELD", "X-Key=secret", "X-Key…"],
    ["CLIENT_FIELD", "X-Key\nsecret", "X-Key…"],
    ["AWS_ENDPOINT_URL", "https://AKID:secret@s3.test", "https://…@s3.test"],
    ["AWS_ENDPOINT_URL", "https://secret@s3.test", "https://…@s3.test"],
  ];
  for (const [name, value, shown] of rows) {
    const [fault] = faultsIn({ ...IN_BUCKET, [name]: value });
    assertEquals(fault?.split(", got ")[1], JSON.stringify(shown));
  }
});

Deno.test("readConfig() lists all faults at once, and shows no secret", () => {
  const CONTENT = "s3://abc";
  assertEquals(faultsIn({ CONTENT }), [
    "AWS_ACCESS_KEY_ID: expected an access key ID for the bucket in CONTENT, got nothing",
    "AWS_SECRET_ACCESS_KEY: expected the secret of that access key ID, got nothing",
    'AWS_REGION: expected the region of the bucket in CONTENT, like "eu-central-1", got nothing',
  ]);
  const keys = { AWS_ACCESS_KEY_ID: "keep this", AWS_SECRET_ACCESS_KEY: "keep\n" };
  const others = { AWS_SESSION_TOKEN: "keep ", AWS_REGION: "x", PORT: "y", SUNSET_AT: "z" };
  const faults = faultsIn({ CONTENT, ...keys, ...others });
  const names = ["PORT", ...Object.keys(keys), "AWS_SESSION_TOKEN", "SUNSET_AT"];
  assertEquals(faults.map((fault) => fault.split(":")[0]), names);
  assertEquals(faults.filter((fault) => fault.includes("keep")), []);
});

Deno.test("readConfig() shows only the first line of an invalid value", () => {
  const unchecked = ["AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3"]
    .concat("OTEL_DENO", "OTEL_DENO_TRACING", "DENO_DEPLOY", "INIT_CWD");
  const names = project.permissions.default.env.allow.filter((name) => !unchecked.includes(name));
  for (const name of names) {
    for (const lineBreak of ["\n", "\r\n", "\r"]) {
      const value = `s3://a b,${lineBreak}AWS_SECRET_ACCESS_KEY=swallowed`;
      const faults = faultsIn({ ...IN_BUCKET, [name]: value }).join("\n");
      assertEquals([name, faults, faults.includes("swallowed")], [name, faults, false]);
    }
  }
});

Deno.test("readConfig() gives a route its own dates, and the common ones for the rest", () => {
  const { policy, policies } = read({
    DEPRECATED_AT: "2026-11-21",
    SUNSET_AT: "2027-06-30, video = 2027-12-31",
    BROWNOUTS: "2027-05-03T09:00Z/PT1H,video=2027-06-07T09:00Z/PT1H=410, 2027-06-08/P1D",
    BROWNOUT_STATUS: "503",
    AFTER_SUNSET: "redirect",
  }, "server");
  const video = policies["/video/:token"];
  assert(policies["/audio/:token"] === policy);
  const sunsets = [policy.sunsetAt, video?.sunsetAt].map((at) => new Date(at ?? 0).toJSON());
  assertEquals(sunsets, ["2027-06-30T00:00:00.000Z", "2027-12-31T00:00:00.000Z"]);
  const statuses = [policy, video].map((each) => each?.brownouts.map(({ status }) => status));
  assertEquals(statuses, [[503], [410, 503]]);
  const { sunsetAt: _, brownouts: __, ...rest } = policy;
  assertEquals({ ...video, ...rest }, video);
});

Deno.test("readConfig() lets a date hold for one route only, or for all others", () => {
  const rows: [settings: Record<string, string>, hasCommon: boolean, hasOwn: boolean][] = [
    [{ SUNSET_AT: "video=2027-12-31" }, false, true],
    [{ SUNSET_AT: "2027-12-31,video=none" }, true, false],
    [{ SUNSET_AT: "none", BROWNOUTS: "none" }, false, false],
    [{ SUNSET_AT: "none,video=2027-12-31", BROWNOUTS: "none" }, false, true],
  ];
  for (const [settings, ...expected] of rows) {
    const { policy, policies } = read(settings);
    const dates = [policy, policies["/video/:token"]].map((each) => each?.sunsetAt);
    assertEquals(dates.map((date) => date !== undefined), expected);
  }
  assertEquals(read({ SUNSET_AT: "none", BROWNOUTS: "none" }, "server"), read({}, "server"));
});

Deno.test("readConfig() refuses what is wrong for one route, with its name and the values", () => {
  const date = `expected ${expectedBy({ deprecatedAt: "soon" })}, got`;
  const rows: [environment: Record<string, string>, ...faults: string[]][] = [
    [
      { SUNSET_AT: "2027-06-30,films=2027-12-31" },
      'SUNSET_AT: expected "audio" or "video" before "=", got "films"',
    ],
    [
      { SUNSET_AT: "2027-06-30,video=2027-12-31,video=2028-12-31" },
      'SUNSET_AT: expected one value of "video", got "video=2028-12-31"',
    ],
    [{ SUNSET_AT: "2027-06-30,video=" }, `SUNSET_AT of video: ${date} ""`],
    [
      { DEPRECATED_AT: "2026-11-21,video=2027-08-01", SUNSET_AT: "2027-06-30" },
      `SUNSET_AT of video: expected ${
        expectedBy({ deprecatedAt: "2027-08-01", sunsetAt: "2027-06-30" })
      }, got "2027-06-30"`,
    ],
    [
      { SUNSET_AT: "2027-06-30,video=2027-03-01", BROWNOUTS: "2027-05-03T09:00Z/PT1H" },
      `BROWNOUTS of video: expected ${
        expectedBy({ deprecatedAt: "2026-11-21", sunsetAt: "2027-03-01", brownouts: [MAY] })
      }, got "${MAY}"`,
    ],
    [
      { SUNSET_AT: "2027-06-30,audio=none", BROWNOUTS: "2027-05-03T09:00Z/PT1H" },
      `BROWNOUTS of audio: expected ${
        expectedBy({ deprecatedAt: "2026-11-21", brownouts: [MAY] })
      }, got "${MAY}"`,
    ],
    [
      { SUNSET_AT: "soon,video=later" },
      `SUNSET_AT: ${date} "soon"`,
      `SUNSET_AT of video: ${date} "later"`,
    ],
    [{ SUNSET_AT: "soon", BROWNOUTS: "video=none" }, `SUNSET_AT: ${date} "soon"`], // once
    [{ DEPRECATED_AT: "2026-11-21,video=none" }, `DEPRECATED_AT of video: ${date} "none"`],
    [
      { DEPRECATED_AT: "video=2026-11-21" },
      'DEPRECATED_AT: expected a date for all routes before that of one, got "video=2026-11-21"',
    ],
  ];
  for (const [environment, ...faults] of rows) assertEquals(faultsIn(environment), faults);
});

Deno.test("readConfig() accepts the settings of the day before once routes are deleted", () => {
  const settings = {
    DATABASE_URL: "postgres://db/media",
    SUNSET_AT: "2027-06-30,video=2027-12-31",
    BROWNOUTS: "audio=2027-05-03T09:00Z/PT1H",
  };
  const films = "2027-06-30,films=2027-12-31";
  const left = { ...settings, DEPRECATED_AT: "2026-11-21" };
  read(left, "server", ["/audio/:token"]);
  assertEquals(faultsIn({ ...left, SUNSET_AT: films }, ["/audio/:token"]), [
    'SUNSET_AT: expected "audio" or "video" before "=", got "films"',
  ]);
  read(settings, "server", []);
  read({ ...settings, SUNSET_AT: films }, "server", []); // those of a third route may be left
});

Deno.test("readConfig() takes the last fixed segment of a path as the name of its route", () => {
  const paths = ["/clip/:token", "/old-clip/:token"];
  const { policies } = read({ SUNSET_AT: "2027-06-30,old-clip=2027-12-31" }, "command", paths);
  const dates = paths.map((path) => policies[path]?.sunsetAt);
  assertEquals(dates, ["2027-06-30", "2027-12-31"].map((date) => Date.parse(date)));
});

Deno.test("readConfig() requires DEPRECATED_AT of a server beyond a trial, and not of commands", () => {
  const expected = "DEPRECATED_AT: expected the ISO 8601 date from which the old paths are " +
    'deprecated, like "2026-11-21", since ';
  const rows: [reason: string, environment: Record<string, string>][] = [
    ["DATABASE_URL", { DATABASE_URL: "sqlite:a" }],
    ["SUNSET_AT", { SUNSET_AT: "2100-01-01" }],
    ["SUNSET_AT", { SUNSET_AT: "2100-01-01", BROWNOUTS: "2099-01-01/P1D", DEPRECATED_AT: "" }],
  ];
  for (const [reason, environment] of rows) {
    const { message } = assertThrows(() => read(environment, "server"), ConfigError);
    assertEquals(message, `${expected}${reason} is set, got nothing`);
    assertEquals(read(environment).isDeprecationUnset, true);
    const past = { ...environment, SUNSET_AT: "2020-01-01", BROWNOUTS: "2019-01-01/P1D" };
    assertEquals(read(past).policy.sunsetAt, Date.parse("2020-01-01")); // whenever it began
    const stated = { ...environment, DEPRECATED_AT: "2026-12-24" };
    const { policy, isDeprecationUnset } = read(stated, "server");
    assertEquals([policy.deprecatedAt, isDeprecationUnset], [Date.parse("2026-12-24"), false]);
  }
  const { policy, isDeprecationUnset } = read({ CONTENT: "/srv/files" }, "server");
  assertEquals([policy.deprecatedAt, isDeprecationUnset], [Date.parse("2026-11-21"), true]);
});

Deno.test("the permissions name each variable that readConfig() reads, and one more", () => {
  const read = new Set<string>();
  for (const CONTENT of ["/srv/files", "s3://bucket"]) {
    const variable = (name: string) => {
      read.add(name);
      return name === "CONTENT" ? CONTENT : undefined;
    };
    try {
      readConfig(variable, "command", PATHS);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error; // the bucket lacks its keys
    }
  }
  assertEquals([...read, "INIT_CWD"].sort(), project.permissions.default.env.allow.toSorted());
});
