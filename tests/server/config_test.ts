import { assertEquals, assertThrows } from "@std/assert";
import { type Config, ConfigError, readConfig } from "../../lib/server/config.ts";

const read = (environment: Record<string, string>) => readConfig((name) => environment[name]);

Deno.test("readConfig() has a default for everything", () => {
  const { policy, ...config } = read({});
  assertEquals(config, {
    host: "0.0.0.0",
    port: 8000,
    reusePort: false,
    publicUrl: undefined,
    engine: "sqlite",
    databaseUrl: "sqlite:./data/catalogue.sqlite",
    content: { kind: "folder", path: "./data/files" },
    isOnDeploy: false,
    isDefaultStorage: true,
    cacheMaxAge: 300,
    cacheTtl: 5000,
    usageDays: 400,
    isTelemetryOn: false,
  });
  assertEquals(policy, {
    deprecatedAt: Date.parse("2026-11-21"),
    sunsetAt: undefined,
    brownouts: [],
    afterSunset: "gone",
    documentation: "/deprecation",
  });
  assertEquals(read({ PORT: "", DATABASE_URL: "", SUNSET_AT: "" }), read({}));
});

Deno.test("readConfig() reads every variable", () => {
  const { policy, ...config } = read({
    HOST: "::1",
    PORT: "0",
    DATABASE_URL: "postgres://media:secret@db.test/media?sslmode=verify-full",
    REUSE_PORT: "true",
    PUBLIC_URL: "HTTPS://Media.Example.com:443/",
    CONTENT: "/srv/files",
    CACHE_MAX_AGE: "0",
    CACHE_TTL: "60",
    USAGE_DAYS: "30",
    OTEL_DENO: "true",
    DEPRECATED_AT: "2027-01-01T12:00:00+02:00",
    SUNSET_AT: "2027-06-30",
    BROWNOUTS: "2027-03-01T09:00Z/PT1H, 2027-04-01T09:00Z/2027-04-01T17:00Z",
    AFTER_SUNSET: "redirect",
    DEPRECATION_DOC: "https://docs.test/retired",
  });
  assertEquals(config, {
    host: "::1",
    port: 0,
    reusePort: true,
    publicUrl: "https://media.example.com",
    engine: "postgres",
    databaseUrl: "postgres://media:secret@db.test/media?sslmode=verify-full",
    content: { kind: "folder", path: "/srv/files" },
    isOnDeploy: false,
    isDefaultStorage: false,
    cacheMaxAge: 0,
    cacheTtl: 60_000,
    usageDays: 30,
    isTelemetryOn: true,
  });
  assertEquals(policy.deprecatedAt, Date.parse("2027-01-01T10:00:00Z"));
  assertEquals(policy.sunsetAt, Date.parse("2027-06-30"));
  assertEquals(policy.brownouts.length, 2);
  assertEquals(policy.afterSunset, "redirect");
  assertEquals(policy.documentation, "https://docs.test/retired");
});

const AWS = {
  AWS_ACCESS_KEY_ID: "AKID",
  AWS_SECRET_ACCESS_KEY: "wJalr/K7+EXAMPLE",
  AWS_REGION: "eu-central-1",
};
const BUCKET = {
  kind: "bucket",
  bucket: "abc",
  prefix: "",
  region: "eu-central-1",
  endpoint: undefined,
  accessKeyId: "AKID",
  secretAccessKey: "wJalr/K7+EXAMPLE",
  sessionToken: undefined,
} as const;

Deno.test("readConfig() accepts boundary values", () => {
  const rows: (readonly [environment: Record<string, string>, expected: Partial<Config>])[] = [
    [{ HOST: "localhost" }, { host: "localhost" }],
    [{ HOST: "127.0.0.1" }, { host: "127.0.0.1" }],
    [{ PORT: "65535" }, { port: 65535 }],
    [{ CACHE_MAX_AGE: "31536000" }, { cacheMaxAge: 31_536_000 }],
    [{ CACHE_TTL: "0" }, { cacheTtl: 0 }],
    [{ CACHE_TTL: "86400" }, { cacheTtl: 86_400_000 }],
    [{ USAGE_DAYS: "1" }, { usageDays: 1 }],
    [{ USAGE_DAYS: "3650" }, { usageDays: 3650 }],
    ...["sqlite:./x.sqlite", "sqlite:/srv/x", "sqlite:C:\\x.sqlite"].map((databaseUrl) =>
      [{ DATABASE_URL: databaseUrl }, { databaseUrl, isDefaultStorage: false }] as const
    ),
    ...["postgres://db/x", "postgresql://u:p@db:5432/x"].map((databaseUrl) =>
      [
        { DATABASE_URL: databaseUrl },
        { engine: "postgres", databaseUrl, isDefaultStorage: false },
      ] as const
    ),
    [{ DATABASE_URL: "postgresql://db/x", DENO_DEPLOY: "true" }, {
      ...{ engine: "postgres", databaseUrl: "postgresql://db/x", isOnDeploy: true },
      ...{ content: { kind: "none" }, isDefaultStorage: false },
    }],
    [{ ...AWS, CONTENT: "s3://abc", DATABASE_URL: "postgresql://db/x", DENO_DEPLOY: "true" }, {
      ...{ engine: "postgres", databaseUrl: "postgresql://db/x", isOnDeploy: true },
      ...{ content: BUCKET, isDefaultStorage: false },
    }],
    [{ CONTENT: "none" }, { content: { kind: "none" }, isDefaultStorage: false }],
    [{ CONTENT: "./none" }, { content: { kind: "folder", path: "./none" } }],
    [{ CONTENT: "x" }, { content: { kind: "folder", path: "x" }, isDefaultStorage: true }],
    ...["s3://abc", "s3://abc/", "s3://abc//"].map((CONTENT) =>
      [{ ...AWS, CONTENT }, { content: BUCKET, isDefaultStorage: false }] as const
    ),
    [{ ...AWS, CONTENT: "s3://a.b-c/d/e f/" }, {
      content: { ...BUCKET, bucket: "a.b-c", prefix: "d/e f" },
      isDefaultStorage: false,
    }],
    [{
      ...{ ...AWS, AWS_REGION: "", AWS_DEFAULT_REGION: "auto", CONTENT: "s3://abc" },
      ...{ AWS_SESSION_TOKEN: "IQoJ//8=", AWS_ENDPOINT_URL: "http://127.0.0.1:9000/base/" },
    }, {
      content: {
        ...{ ...BUCKET, region: "auto", sessionToken: "IQoJ//8=" },
        endpoint: "http://127.0.0.1:9000/base",
      },
      isDefaultStorage: false,
    }],
    [{
      ...{ ...AWS, CONTENT: "s3://abc", AWS_DEFAULT_REGION: "auto" },
      ...{ AWS_ENDPOINT_URL_S3: "https://s3.test", AWS_ENDPOINT_URL: "https://aws.test" },
    }, { content: { ...BUCKET, endpoint: "https://s3.test" }, isDefaultStorage: false }],
    [{ OTEL_DENO: "1" }, { isTelemetryOn: true }],
    [{ OTEL_DENO: "0" }, { isTelemetryOn: false }],
    [{ OTEL_DENO: "false" }, { isTelemetryOn: false }],
  ];
  for (const [environment, expected] of rows) {
    assertEquals(read(environment), { ...read({}), ...expected }, JSON.stringify(environment));
  }
});

Deno.test("readConfig() rejects invalid values, with the name, the value and what is expected", () => {
  const instant =
    'an ISO 8601 date or instant from 1970 to 9999, like "2027-06-30" or "2027-06-30T12:00:00Z"';
  const database = '"sqlite:PATH", or the "postgres://…" URL of a database';
  const rows: (readonly [environment: Record<string, string>, message: string])[] = [
    [{ REUSE_PORT: "yes" }, 'REUSE_PORT: expected "true" or "false", got "yes"'],
    ...[
      "media.example.com",
      "ftp://a.test",
      "https://a.test/b",
      "http://a.test/?b",
      "https://b@a.test",
    ]
      .map((url) =>
        [
          { PUBLIC_URL: url },
          `PUBLIC_URL: expected the "https:" or "http:" URL of this server, without a path, got "${url}"`,
        ] as const
      ),
    ...[
      ["user:secret@a.test", "user:…@a.test"],
      ["https:user:secret@a.test", "https:…@a.test"],
      ["https://user:sec:r@t@a.test/", "https://user:…@a.test/"],
    ].map(([url, shown]) =>
      [
        { PUBLIC_URL: url as string },
        `PUBLIC_URL: expected the "https:" or "http:" URL of this server, without a path, got "${shown}"`,
      ] as const
    ),
    [{ PORT: "http" }, 'PORT: expected a port number from 0 to 65535, got "http"'],
    [{ PORT: "65536" }, 'PORT: expected a port number from 0 to 65535, got "65536"'],
    [{ PORT: "-1" }, 'PORT: expected a port number from 0 to 65535, got "-1"'],
    [{ PORT: "8000.5" }, 'PORT: expected a port number from 0 to 65535, got "8000.5"'],
    [{ PORT: " 8000" }, 'PORT: expected a port number from 0 to 65535, got " 8000"'],
    [{ HOST: "a b" }, 'HOST: expected a host name or an IP address, got "a b"'],
    [{ CACHE_TTL: "1e3" }, 'CACHE_TTL: expected seconds from 0 to 86400, got "1e3"'],
    [{ CACHE_MAX_AGE: "x" }, 'CACHE_MAX_AGE: expected seconds from 0 to 31536000, got "x"'],
    [{ USAGE_DAYS: "0" }, 'USAGE_DAYS: expected days from 1 to 3650, got "0"'],
    ...["redis://x", "sqlite:", "./x.sqlite", "postgres://", "mysql://user@db/x"].map((url) =>
      [{ DATABASE_URL: url }, `DATABASE_URL: expected ${database}, got "${url}"`] as const
    ),
    [
      { DATABASE_URL: "mysql://user:se:cr/et@db/x" },
      `DATABASE_URL: expected ${database}, got "mysql://user:…@db/x"`,
    ],
    ...[["", "nothing"], ["sqlite:./x", '"sqlite:./x"'], [
      "postgres://u:p@db:x",
      '"postgres://u:…@db:x"',
    ]]
      .map(([DATABASE_URL = "", got]) =>
        [
          { DENO_DEPLOY: "true", DATABASE_URL },
          'DATABASE_URL: expected the "postgres://…" URL of a database attached to the app, ' +
          `got ${got}`,
        ] as const
      ),
    [
      { DENO_DEPLOY: "true", DATABASE_URL: "postgres://db/x", CONTENT: "./files" },
      'CONTENT: expected "s3://BUCKET/PREFIX", or "none", on Deno Deploy, got "./files"',
    ],
    [
      { CACHE_MAX_AGE: "31536001" },
      'CACHE_MAX_AGE: expected seconds from 0 to 31536000, got "31536001"',
    ],
    [{ CACHE_TTL: "86401" }, 'CACHE_TTL: expected seconds from 0 to 86400, got "86401"'],
    [{ USAGE_DAYS: "3651" }, 'USAGE_DAYS: expected days from 1 to 3650, got "3651"'],
    [{ DEPRECATED_AT: "soon" }, `DEPRECATED_AT: expected ${instant}, got "soon"`],
    [{ SUNSET_AT: "2027-02-30" }, `SUNSET_AT: expected ${instant}, got "2027-02-30"`],
    [
      { SUNSET_AT: "+010000-01-01T00:00Z" },
      `SUNSET_AT: expected ${instant}, got "+010000-01-01T00:00Z"`,
    ],
    [{ AFTER_SUNSET: "teapot" }, 'AFTER_SUNSET: expected "gone" or "redirect", got "teapot"'],
    [
      { DEPRECATION_DOC: "http://x.test/" },
      'DEPRECATION_DOC: expected a path that starts with "/", or an "https:" URL, got "http://x.test/"',
    ],
    ...["gs://abc/d", "S3://abc", "file:///srv"].map((CONTENT) =>
      [
        { CONTENT },
        `CONTENT: expected a folder, "s3://BUCKET/PREFIX", or "none", got "${CONTENT}"`,
      ] as const
    ),
    ...["s3://", "s3:abc", "s3://A_b/c", "s3://abc/d//e", "s3://abc/./e", "s3://abc/.."].map((
      CONTENT,
    ) =>
      [
        { ...AWS, CONTENT },
        `CONTENT: expected "s3://BUCKET/PREFIX", with no empty, "." or ".." part in PREFIX, got "${CONTENT}"`,
      ] as const
    ),
    ...["s3.test", "ftp://s3.test", "https://s3.test/?a", "https://s3.test/#a"].map((url) =>
      [
        { ...AWS, CONTENT: "s3://abc", AWS_ENDPOINT_URL_S3: url },
        'AWS_ENDPOINT_URL_S3: expected the "https:" or "http:" URL of an S3-compatible store,' +
        ` got "${url}"`,
      ] as const
    ),
    [
      { ...AWS, CONTENT: "s3://abc", AWS_ENDPOINT_URL: "https://AKID:secret@s3.test" },
      'AWS_ENDPOINT_URL: expected the "https:" or "http:" URL of an S3-compatible store,' +
      ' got "https://AKID:…@s3.test"',
    ],
    [
      { ...AWS, CONTENT: "s3://abc", AWS_REGION: "eu central" },
      'AWS_REGION: expected the region of the bucket in CONTENT, like "eu-central-1",' +
      ' got "eu central"',
    ],
    [
      { BROWNOUTS: "2027-03-01T09:00Z/PT1H" },
      'BROWNOUTS: expected a sunset date, since brownouts precede the sunset, got "2027-03-01T09:00Z/PT1H"',
    ],
  ];
  for (const [environment, message] of rows) {
    assertEquals(assertThrows(() => read(environment), ConfigError).message, message);
  }
});

Deno.test("readConfig() lists all missing bucket settings, and shows no secret", () => {
  const { message } = assertThrows(() => read({ CONTENT: "s3://abc" }), ConfigError);
  assertEquals(message.split("\n"), [
    "AWS_ACCESS_KEY_ID: expected an access key ID for the bucket in CONTENT, got nothing",
    "AWS_SECRET_ACCESS_KEY: expected the secret of that access key ID, got nothing",
    'AWS_REGION: expected the region of the bucket in CONTENT, like "eu-central-1", got nothing',
  ]);
  const garbled = assertThrows(() =>
    read({
      ...{ CONTENT: "s3://abc", AWS_ACCESS_KEY_ID: "keep this", AWS_SECRET_ACCESS_KEY: "keep\n" },
      ...{ AWS_SESSION_TOKEN: "keep ", AWS_REGION: "x" },
    }), ConfigError);
  assertEquals(garbled.message.split("\n").length, 3);
  assertEquals(garbled.message.includes("keep"), false);
  assertEquals(read({ CONTENT: "x", AWS_REGION: "?" }).content, { kind: "folder", path: "x" });
});

Deno.test("readConfig() reports all problems at once", () => {
  const { message } = assertThrows(
    () => read({ PORT: "x", CACHE_TTL: "y", SUNSET_AT: "z", DEPRECATION_DOC: "w" }),
    ConfigError,
  );
  const names = message.split("\n").map((line) => line.split(":")[0]);
  assertEquals(names, ["PORT", "CACHE_TTL", "SUNSET_AT", "DEPRECATION_DOC"]);
});
