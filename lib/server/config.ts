/** The settings, read and validated once at startup. */

import { z } from "zod";
import { faultIn, parsePostgresUrl } from "../database/postgres_url.ts";
import { SQLITE_URL } from "../database/sqlite_url.ts";
import { withoutPassword } from "../input/printable.ts";
import type { AfterSunset, BrownoutStatus, Policy, RoutePolicies } from "../lifecycle/policy.ts";
import { definePolicy, PolicyError, type PolicySettings } from "../lifecycle/policy_settings.ts";
import { WrongUsageError } from "../errors/refused_error.ts";
import type { ContentPlace } from "../storage/content/content_place.ts";
import { CLIENT_FIELD, withoutValue } from "../usage/record/client_names.ts";

/** Thrown if settings are invalid. The message has one line for each invalid setting. */
export class ConfigError extends WrongUsageError {
  override readonly name = "ConfigError";
}

export type Config = Readonly<ReturnType<typeof readConfig>>;

/** The date from which the samples are deprecated. */
export const SAMPLES_DEPRECATED_AT = "2026-11-21";

/** Variables that nobody sets for a mere trial. Any of them makes `DEPRECATED_AT` required. */
const PRODUCTION = ["DATABASE_URL", "SUNSET_AT", "BROWNOUTS", "DENO_DEPLOY"];

/** Variables whose values errors must not show. */
const SECRETS = ["DATABASE_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/**
 * Matches all lines of a value after the first. If a quote was not closed, these are other
 * settings, even secrets.
 */
const LATER_LINES = /[\n\r][^]*/;

/** A server's clients get an error within five seconds; a command can wait for a busy store. */
const STORE_TIMEOUT_MS = { server: 4_500, command: 30_000 };

/** The variable of each setting of the policy. `definePolicy()` validates the values. */
const POLICY_VARIABLES: Readonly<Record<keyof PolicySettings, string>> = {
  deprecatedAt: "DEPRECATED_AT",
  sunsetAt: "SUNSET_AT",
  brownouts: "BROWNOUTS",
  brownoutStatus: "BROWNOUT_STATUS",
  afterSunset: "AFTER_SUNSET",
  documentation: "DEPRECATION_DOC",
};

const HOST = z.string().regex(/^[\w.:-]+$/);
const SWITCH = z.enum(["true", "false"]).transform((text) => text === "true");
const WEB_URL = z.url({ protocol: /^https?$/ }).transform((text) => new URL(text));
const ORIGIN = WEB_URL.refine(({ href, origin }) => href === `${origin}/`)
  .transform(({ origin }) => origin);
const ENDPOINT = WEB_URL
  .refine(({ username, password, search, hash }) => username + password + search + hash === "")
  .transform(({ href }) => href.replace(/\/+$/, ""));
const CONTACT = z.url({ protocol: /^(?:https|mailto)$/ }).transform((text) => new URL(text))
  .refine(({ protocol, pathname, username, password }) =>
    protocol === "mailto:" ? z.email().safeParse(pathname).success : username + password === ""
  ).transform(({ href }) => href);
const POSTGRES_URL = z.string().regex(/^postgres(?:ql)?:\/\/.*\S$/s).refine((text) => {
  const url = parsePostgresUrl(text);
  // The only "@", if there is one, follows the user and password.
  return url && text.split("@").length === (url.username + url.password === "" ? 1 : 2);
});
const SQLITE = z.string().regex(SQLITE_URL).regex(/\S$/);
const ENCODED = ', with "@" in a password as "%40", "/" as "%2F", and "#" as "%23"';
const DATABASE =
  `"sqlite:PATH", or the "postgres://…" URL of a database, with no space around it${ENCODED}`;
const DEPLOYED_DATABASE = `the "postgres://…" URL of a database attached to the app${ENCODED}`;
const FOLDER = z.string().regex(/^(?![a-z][a-z0-9+.-]+:\/\/)/i);
const BUCKET = z.string().regex(/^s3:\/\/[a-z0-9][a-z0-9.-]+[a-z0-9](?:\/.*)?$/).transform(
  (text) => {
    const [, bucket = "", prefix = ""] = /^s3:\/\/([^/]+)\/*(.*?)\/*$/.exec(text) ?? [];
    return { bucket, prefix };
  },
).refine(({ prefix }) => prefix === "" || !/(?:^|\/)\.{0,2}(?:\/|$)/.test(prefix));
const REGION = z.string().regex(/^[\w-]+$/);
/** Any text that fits in a header field; the store checks the rest. */
const SECRET = z.string().regex(/^[!-~]+$/);

const integer = (min: number, max: number) =>
  z.string().regex(/^\d+$/).transform(Number).pipe(z.number().min(min).max(max));
const PORT = integer(0, 65_535);
const MAX_AGE = integer(0, 31_536_000);
const DAYS = integer(1, 3_650);

/** Returns functions that read variables and collect their faults. */
function createReader(variable: (name: string) => string | undefined) {
  const faults: string[] = [];
  const get = (name: string) => variable(name) || undefined;
  const expect = (name: string, expected: string, value: unknown, route?: string) => {
    const shown = typeof value !== "string" ? String(value ?? "nothing") : JSON.stringify(
      SECRETS.includes(name)
        ? "…"
        : name === "CLIENT_FIELD"
        ? withoutValue(value)
        : withoutPassword(value.replace(LATER_LINES, "…")),
    );
    const fault = `: expected ${expected}, got ${shown}`;
    if (faults.includes(name + fault)) return; // it is the same for all routes
    faults.push(`${name}${route === undefined ? "" : ` of ${route}`}${fault}`);
  };
  const read = <T>(name: string, expected: string, schema: z.ZodType<T>): T => {
    const { success, data } = schema.safeParse(get(name));
    if (!success) expect(name, expected, get(name));
    return data as T; // not used after a fault
  };
  return { faults, get, expect, read };
}

type Reader = ReturnType<typeof createReader>;

/**
 * Reads and validates the settings.
 *
 * @param variable Looks up a variable. An empty value counts as unset.
 * @param user The program that reads the settings. Only a server that is not on trial needs
 *   `DEPRECATED_AT`.
 * @param paths The paths of the deprecated routes.
 * @throws {ConfigError} If values are invalid or missing. The message names each, and says what is
 *   expected.
 */
export function readConfig(
  variable: (name: string) => string | undefined,
  user: "server" | "command",
  paths: readonly string[] = [],
) {
  const reader = createReader(variable);
  const { faults, get, expect } = reader;
  const server = readServer(reader);
  const storage = readStorage(reader, STORE_TIMEOUT_MS[user]);
  /** Whether nobody has chosen a date for the deprecation. */
  const isDeprecationUnset = get("DEPRECATED_AT") === undefined;
  const reason = PRODUCTION.find((name) => (get(name) ?? "none") !== "none");
  if (user === "server" && isDeprecationUnset && reason !== undefined && paths.length > 0) {
    const date = 'the ISO 8601 date from which the old paths are deprecated, like "2026-11-21"';
    expect("DEPRECATED_AT", `${date}, since ${reason} is set`, undefined);
  }
  const policies = readPolicies(reader, paths);
  if (policies === undefined || faults.length > 0) throw new ConfigError(faults.join("\n"));
  return { ...server, ...storage, ...policies, isDeprecationUnset };
}

/** Reads how the server listens, what it tells clients, and what it counts. */
function readServer({ get, read }: Reader) {
  const origin = 'the "https:" or "http:" URL of this server, without a path';
  const contact = 'a "mailto:" URL with one address, or an "https:" URL without a password';
  const field = "the name of a request field that names the client, and is no credential";
  return {
    host: read("HOST", "a host name or an IP address", HOST.default("0.0.0.0")),
    /** 0 for any free port. */
    port: read("PORT", "a port number from 0 to 65535", PORT.default(8000)),
    /** Whether other processes may listen on the same port. */
    reusePort: read("REUSE_PORT", '"true" or "false"', SWITCH.default(false)),
    /** The origin at which clients reach the server, for the documents, if it is known. */
    publicUrl: read("PUBLIC_URL", origin, ORIGIN.optional()),
    /** The URL at which owners of clients reach the operator, if there is one. */
    contact: read("CONTACT", contact, CONTACT.optional()),
    /** Seconds. */
    cacheMaxAge: read("CACHE_MAX_AGE", "seconds from 0 to 31536000", MAX_AGE.default(300)),
    usageDays: read("USAGE_DAYS", "days from 1 to 3650", DAYS.default(400)),
    /** The name of the request field by which the operator knows clients, if there is one. */
    clientField: read("CLIENT_FIELD", field, z.string().regex(CLIENT_FIELD).optional()),
    isTelemetryOn: ["true", "1"].includes(get("OTEL_DENO") ?? ""),
    isTracingOn: isTracingOn(get("OTEL_DENO"), get("OTEL_DENO_TRACING")),
  };
}

/** Whether Deno exports traces, as Deno 2.9.6 reads these variables. */
function isTracingOn(telemetry = "", tracing = ""): boolean {
  const isSwitch = /^(?:true|false)$/i.test(tracing); // Deno ignores any other value
  return (isSwitch ? tracing : telemetry).toLowerCase() === "true";
}

function readStorage(reader: Reader, timeoutMs: number) {
  const { faults, get, read } = reader;
  const isOnDeploy = get("DENO_DEPLOY") !== undefined; // files do not outlive an instance there
  const databaseUrl = isOnDeploy
    ? read("DATABASE_URL", DEPLOYED_DATABASE, POSTGRES_URL)
    : read("DATABASE_URL", DATABASE, POSTGRES_URL.or(SQLITE).optional());
  const fault = databaseUrl?.startsWith("postgres") ? faultIn(databaseUrl) : undefined;
  if (fault !== undefined) faults.push(`DATABASE_URL: ${fault}`);
  const content = readContent(reader, { isOnDeploy, timeoutMs });
  return {
    engine: databaseUrl?.startsWith("postgres") ? "postgres" as const : "sqlite" as const,
    /** The database: `sqlite:PATH`, or `postgres://…`. */
    databaseUrl: databaseUrl ?? "sqlite:./data/catalogue.sqlite",
    content,
    /** Whether this runs on Deno Deploy, which caches responses itself. */
    isOnDeploy,
    /** Whether neither a database nor a bucket is configured, so that samples may be published. */
    isDefaultStorage: databaseUrl === undefined && content.kind === "folder",
  };
}

function readContent(
  { get, read }: Reader,
  { isOnDeploy, timeoutMs }: { isOnDeploy: boolean; timeoutMs: number },
): ContentPlace {
  const place = get("CONTENT") ?? (isOnDeploy ? "none" : "./data/files");
  if (place === "none") return { kind: "none" };
  if (!place.startsWith("s3:")) {
    if (isOnDeploy) read("CONTENT", '"s3://BUCKET/PREFIX", or "none", on Deno Deploy', z.never());
    else read("CONTENT", 'a folder, "s3://BUCKET/PREFIX", or "none"', FOLDER.optional());
    return { kind: "folder", path: place };
  }
  const either = (name: string, other: string) =>
    get(name) === undefined && get(other) ? other : name;
  return {
    kind: "bucket",
    ...read(
      "CONTENT",
      '"s3://BUCKET/PREFIX", BUCKET in lower case, with no empty, "." or ".." part in PREFIX',
      BUCKET,
    ),
    accessKeyId: read("AWS_ACCESS_KEY_ID", "an access key ID for the bucket in CONTENT", SECRET),
    secretAccessKey: read("AWS_SECRET_ACCESS_KEY", "the secret of that access key ID", SECRET),
    sessionToken: read("AWS_SESSION_TOKEN", "the session token of that key ID", SECRET.optional()),
    region: read(
      either("AWS_REGION", "AWS_DEFAULT_REGION"),
      'the region of the bucket in CONTENT, like "eu-central-1"',
      REGION,
    ),
    endpoint: read(
      either("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
      'the "https:" or "http:" URL of an S3-compatible store',
      ENDPOINT.optional(),
    ),
    timeoutMs,
  };
}

/** The settings that a route may override, and whether its value may be `none`. */
const ROUTE_OVERRIDES = { deprecatedAt: false, sunsetAt: true, brownouts: true } as const;

type DateSetting = keyof typeof ROUTE_OVERRIDES;

/** The values of these settings, common to all routes or overridden by one. */
type DateSettings = Partial<Record<DateSetting, string | undefined>>;

/** Matches the name before an override, as in "2027-06-30,video=2027-12-31". */
const OVERRIDE_NAME = /(?:^|,)\s*([a-z][\w-]*)\s*=/gi;

/**
 * Names that overrides may still have after one of these routes was deleted, so that a server
 * starts. Once every deprecated route is deleted, any name may be left.
 */
const FORMER_NAMES = ["audio", "video"];

/** The parts of a variable's value. */
interface Overridable {
  /** The value for all routes, if there is one. */
  readonly common: string | undefined;
  /** The values for one route each, in the same order; a name may occur more than once. */
  readonly overrides: readonly { readonly name: string; readonly value: string }[];
}

/** Parses the value of a variable that routes may override, like "2027-06-30,video=2027-12-31". */
function parseOverridable(text: string): Overridable {
  const heads = [...text.matchAll(OVERRIDE_NAME)];
  const overrides = heads.map((head, index) => {
    const end = heads[index + 1]?.index; // of the value: where the next override begins
    return { name: head[1] ?? "", value: text.slice(head.index + head[0].length, end).trim() };
  });
  return { common: text.slice(0, heads[0]?.index) || undefined, overrides };
}

/** Reads the common policy, and the policy of each deprecated route. */
function readPolicies(reader: Reader, paths: readonly string[]) {
  const { get, expect } = reader;
  const pathsByName = new Map(
    paths.map((path) => [/([\w-]+)(?:\/:\w+)?$/.exec(path)?.[1] ?? path, path]),
  );
  const names = new Set([...pathsByName.keys(), ...FORMER_NAMES]);
  const commonValues: DateSettings = {};
  const valuesByName = new Map<string, DateSettings>();
  for (const setting of Object.keys(ROUTE_OVERRIDES) as DateSetting[]) {
    const variable = POLICY_VARIABLES[setting];
    const text = get(variable);
    const { common, overrides } = parseOverridable(text ?? "");
    const isNone = (value?: string) => value === "none" && ROUTE_OVERRIDES[setting];
    commonValues[setting] = isNone(common) ? undefined : common;
    if (text !== undefined && common === undefined && setting === "deprecatedAt") {
      expect(variable, "a date for all routes before that of one", text);
    }
    for (const { name, value } of overrides) {
      const values = valuesByName.get(name) ?? {};
      if (paths.length > 0 && !names.has(name)) {
        expect(variable, `"${[...names].join('" or "')}" before "="`, name);
      } else if (Object.hasOwn(values, setting)) {
        expect(variable, `one value of "${name}"`, `${name}=${value}`);
      }
      values[setting] = isNone(value) ? undefined : value;
      valuesByName.set(name, values);
    }
  }
  const policy = readPolicy(reader, commonValues);
  const ownPolicies = new Map<string, Policy>();
  for (const [name, values] of valuesByName) {
    const path = pathsByName.get(name);
    const ownPolicy = path && readPolicy(reader, { ...commonValues, ...values }, name);
    if (ownPolicy) ownPolicies.set(path, ownPolicy);
  }
  if (policy === undefined) return undefined;
  const policies: RoutePolicies = Object.fromEntries(
    paths.map((path) => [path, ownPolicies.get(path) ?? policy]),
  );
  return { policy, policies };
}

/** @param route The name of the route for errors; left out for the common policy. */
function readPolicy(
  { get, expect }: Reader,
  { deprecatedAt, sunsetAt, brownouts }: DateSettings,
  route?: string,
): Policy | undefined {
  const valueOf = (setting: keyof PolicySettings) => get(POLICY_VARIABLES[setting]);
  // The default must not make a chosen date invalid.
  const defaultDate = sunsetAt ?? brownouts ? "1970-01-01" : SAMPLES_DEPRECATED_AT;
  const status = valueOf("brownoutStatus") ?? "";
  try {
    return definePolicy({
      deprecatedAt: deprecatedAt ?? defaultDate,
      sunsetAt,
      brownouts: brownouts?.split(",").map((text) => text.trim()),
      // definePolicy() validates these.
      brownoutStatus: (/^\d{3}$/.test(status) ? Number(status) : status || undefined) as
        | BrownoutStatus
        | undefined,
      afterSunset: valueOf("afterSunset") as AfterSunset | undefined,
      documentation: valueOf("documentation") ?? "/deprecation",
    });
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    for (const { setting, value, expected } of error.issues) {
      const [name] = setting.split("["); // the variable holds the whole list
      expect(POLICY_VARIABLES[name as keyof PolicySettings], expected, value, route);
    }
  }
}
