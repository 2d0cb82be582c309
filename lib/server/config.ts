/**
 * The environment, read once at startup. Without zod, because loading it takes 1.4 times as long as
 * starting bare Deno 2.9.6, and zod/mini 1.1 times.
 */

import type { AfterSunset, BrownoutStatus, Policy } from "../lifecycle/policy.ts";
import type { BucketSettings, ContentPlace } from "../storage/content/content_place.ts";
import { withoutPassword } from "../input/printable.ts";
import { definePolicy, PolicyError, type PolicySettings } from "../lifecycle/policy_settings.ts";

/** The settings of a server. */
export interface Config {
  /** The interface to listen on. */
  readonly host: string;
  /** The port to listen on; 0 for any free port. */
  readonly port: number;
  /** Whether other processes may listen on the same port. */
  readonly reusePort: boolean;
  /** The origin at which clients reach the server, for the documents, if it is known. */
  readonly publicUrl?: string | undefined;
  /** The database engine for the catalogue and the ledger. */
  readonly engine: "sqlite" | "postgres";
  /** The database: `sqlite:PATH`, or `postgres://…`. */
  readonly databaseUrl: string;
  /** The content store. */
  readonly content: ContentPlace;
  /** Whether this runs on Deno Deploy, which caches responses itself. */
  readonly isOnDeploy: boolean;
  /** Whether neither a database nor a bucket is configured, so that samples may be published. */
  readonly isDefaultStorage: boolean;
  /** The max-age of responses in seconds. */
  readonly cacheMaxAge: number;
  /** Milliseconds for which a lookup may be reused; 0 disables reuse. */
  readonly cacheTtl: number;
  /** Days to retain usage data. */
  readonly usageDays: number;
  /** The name of the request field by which the operator knows clients, if there is one. */
  readonly clientField?: string | undefined;
  /** Whether Deno exports telemetry. */
  readonly isTelemetryOn: boolean;
  /** Whether nobody chose the date of the deprecation here. */
  readonly isDeprecationUnset: boolean;
  /** The retirement policy of the deprecated routes. */
  readonly policy: Policy;
}

/** Thrown for invalid environment variables; one line for each. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** The date from which the samples are deprecated. */
export const SAMPLES_DEPRECATED_AT = "2026-11-21";

/** The variables that show a server to be more than a trial, which must state `DEPRECATED_AT`. */
const IN_EARNEST = ["DATABASE_URL", "SUNSET_AT", "BROWNOUTS", "DENO_DEPLOY"];

/** A variable's expected value, and its parser, which returns `undefined` if invalid. */
interface Setting<T> {
  readonly expected: string;
  /** Whether errors must not show the value. */
  readonly isSecret?: true;
  readonly read: (text: string) => T | undefined;
}

function integer(what: string, max: number, min = 0): Setting<number> {
  const isInRange = (text: string) => min <= Number(text) && Number(text) <= max;
  return {
    expected: `${what} from ${min} to ${max}`,
    read: (text) => /^\d+$/.test(text) && isInRange(text) ? Number(text) : undefined,
  };
}

function matching(expected: string, pattern: RegExp): Setting<string> {
  return { expected, read: (text) => pattern.test(text) ? text : undefined };
}

function webUrl(text: string): URL | undefined {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) ? url : undefined;
}

const PORT = integer("a port number", 65_535);
const MAX_AGE = integer("seconds", 31_536_000);
const TTL = integer("seconds", 86_400);
const DAYS = integer("days", 3_650, 1);
const HOST = matching("a host name or an IP address", /^[\w.:-]+$/);
const SWITCH = matching('"true" or "false"', /^(?:true|false)$/);
const PUBLIC_URL: Setting<string> = {
  expected: 'the "https:" or "http:" URL of this server, without a path',
  read(text) {
    const url = webUrl(text);
    return url?.href === `${url?.origin}/` ? url.origin : undefined;
  },
};
const ENCODED = ', with "@" in a password as "%40", "/" as "%2F", and "#" as "%23"';
const DATABASE_URL: Setting<string> = {
  expected: '"sqlite:PATH", or the "postgres://…" URL of a database, with no space around it' +
    ENCODED,
  isSecret: true,
  read: (text) =>
    text === text.trim() && (/^sqlite:./.test(text) || isPostgres(text) && isUrl(text))
      ? text
      : undefined,
};
const isPostgres = (text: string) => /^postgres(?:ql)?:\/\/./.test(text);
/** Whether a text is a URL whose only "@", if there is one, follows the user and password. */
const isUrl = (text: string) => {
  const url = URL.parse(text);
  return url !== null && text.split("@").length === (url.username + url.password === "" ? 1 : 2);
};

/** On Deno Deploy, files do not outlive the instance that wrote them. */
const DEPLOY_DATABASE: Setting<string> = {
  ...DATABASE_URL,
  expected: 'the "postgres://…" URL of a database attached to the app' + ENCODED,
  read: (text) => isPostgres(text) ? DATABASE_URL.read(text) : undefined,
};
const FOLDER = matching(
  'a folder, "s3://BUCKET/PREFIX", or "none"',
  /^(?![a-z][a-z0-9+.-]+:\/\/)/i,
);
const DEPLOY_CONTENT = matching('"s3://BUCKET/PREFIX", or "none", on Deno Deploy', /(?!)/);
const BUCKET: Setting<Pick<BucketSettings, "bucket" | "prefix">> = {
  expected: '"s3://BUCKET/PREFIX", BUCKET in lower case, with no empty, "." or ".." part in PREFIX',
  read(text) {
    const [, bucket, prefix = ""] =
      /^s3:\/\/([a-z0-9][a-z0-9.-]+[a-z0-9])(?:\/+(.*?)\/*)?$/.exec(text) ?? [];
    const isPath = prefix === "" || !prefix.split("/").some((name) => /^\.{0,2}$/.test(name));
    return bucket !== undefined && isPath ? { bucket, prefix } : undefined;
  },
};
const CLIENT_FIELD = matching(
  "the name of a request field that names the client, and is no credential",
  /^(?!(?:proxy-)?authorization$|cookie$)[\w!#$%&'*+.^`|~-]+$/i,
);
const REGION = matching('the region of the bucket in CONTENT, like "eu-central-1"', /^[\w-]+$/);
const ENDPOINT: Setting<string> = {
  expected: 'the "https:" or "http:" URL of an S3-compatible store',
  read(text) {
    const url = webUrl(text);
    const hasMore = url && url.username + url.password + url.search + url.hash !== "";
    return hasMore ? undefined : url?.href.replace(/\/+$/, "");
  },
};
/** A server's clients get an error within five seconds; a command can wait for a busy store. */
const STORE_TIMEOUT_MS = { server: 4_500, command: 30_000 };
/** Checks only that the value fits in a header field; the store checks the rest. */
function credential(expected: string): Setting<string> {
  return { ...matching(expected, /^[!-~]+$/), isSecret: true };
}
const ACCESS_KEY = credential("an access key ID for the bucket in CONTENT");
const SECRET_KEY = credential("the secret of that access key ID");
const SESSION_TOKEN = credential("the session token of that access key ID");

/** The variables of the policy, which validates them itself. */
const POLICY_VARIABLES: Readonly<Record<keyof PolicySettings, string>> = {
  deprecatedAt: "DEPRECATED_AT",
  sunsetAt: "SUNSET_AT",
  brownouts: "BROWNOUTS",
  brownoutStatus: "BROWNOUT_STATUS",
  afterSunset: "AFTER_SUNSET",
  documentation: "DEPRECATION_DOC",
};

/**
 * Reads and validates the settings.
 *
 * @param variable Looks up a variable. An empty value counts as unset.
 * @param user The server must know when the deprecation began, unless it is only being tried;
 *   commands need not.
 * @throws {ConfigError} If any value is invalid or missing, with its name and what was expected.
 */
export function readConfig(
  variable: (name: string) => string | undefined,
  user: "server" | "command",
): Config {
  const get = (name: string) => variable(name) || undefined;
  const problems: string[] = [];
  const expect = (name: string, expected: string, value: unknown) =>
    problems.push(`${name}: expected ${expected}, got ${shown(value)}`);
  const read = <T>(name: string, { expected, isSecret, read }: Setting<T>, isRequired = false) => {
    const text = get(name);
    const value = text === undefined ? undefined : read(text);
    if (value === undefined && (isRequired || text !== undefined)) {
      expect(name, expected, isSecret && text !== undefined ? "…" : text);
    }
    return value;
  };
  /** Returns the first of the variables that is set. */
  const readFirst = (names: readonly [string, string]) =>
    names.find((name) => get(name) !== undefined) ?? names[0];
  const readBucket = (): ContentPlace => {
    const address = read("CONTENT", BUCKET) ?? { bucket: "", prefix: "" };
    return {
      kind: "bucket",
      ...address,
      accessKeyId: read("AWS_ACCESS_KEY_ID", ACCESS_KEY, true) ?? "",
      secretAccessKey: read("AWS_SECRET_ACCESS_KEY", SECRET_KEY, true) ?? "",
      sessionToken: read("AWS_SESSION_TOKEN", SESSION_TOKEN),
      region: read(readFirst(["AWS_REGION", "AWS_DEFAULT_REGION"]), REGION, true) ?? "",
      endpoint: read(readFirst(["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]), ENDPOINT),
      timeoutMs: STORE_TIMEOUT_MS[user],
    };
  };

  const readContent = (): ContentPlace => {
    const text = get("CONTENT") ?? (isOnDeploy ? "none" : "./data/files");
    if (text === "none") return { kind: "none" };
    if (text.startsWith("s3:")) return readBucket();
    read("CONTENT", isOnDeploy ? DEPLOY_CONTENT : FOLDER);
    return { kind: "folder", path: text };
  };

  const isOnDeploy = get("DENO_DEPLOY") !== undefined;
  const database = isOnDeploy ? DEPLOY_DATABASE : DATABASE_URL;
  const databaseUrl = read("DATABASE_URL", database, isOnDeploy);
  const content = readContent();
  const settings: Omit<Config, "policy"> = {
    host: read("HOST", HOST) ?? "0.0.0.0",
    port: read("PORT", PORT) ?? 8000,
    reusePort: read("REUSE_PORT", SWITCH) === "true",
    publicUrl: read("PUBLIC_URL", PUBLIC_URL),
    engine: isPostgres(databaseUrl ?? "") ? "postgres" : "sqlite",
    databaseUrl: databaseUrl ?? "sqlite:./data/catalogue.sqlite",
    content,
    isOnDeploy,
    isDefaultStorage: databaseUrl === undefined && content.kind === "folder",
    cacheMaxAge: read("CACHE_MAX_AGE", MAX_AGE) ?? 300,
    cacheTtl: (read("CACHE_TTL", TTL) ?? 5) * 1000,
    usageDays: read("USAGE_DAYS", DAYS) ?? 400,
    clientField: read("CLIENT_FIELD", CLIENT_FIELD),
    isTelemetryOn: ["true", "1"].includes(get("OTEL_DENO") ?? ""),
    isDeprecationUnset: get("DEPRECATED_AT") === undefined,
  };
  const reason = IN_EARNEST.find((name) => get(name) !== undefined);
  if (user === "server" && settings.isDeprecationUnset && reason !== undefined) {
    const date = 'the ISO 8601 date from which the old paths are deprecated, like "2026-11-21"';
    expect("DEPRECATED_AT", `${date}, since ${reason} is set`, undefined);
  }
  try {
    const policy = readPolicy(get);
    if (problems.length === 0) return { ...settings, policy };
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    for (const { setting, value, expected } of error.issues) {
      const [name] = setting.split("["); // the variable holds the whole list
      expect(POLICY_VARIABLES[name as keyof PolicySettings], expected, value);
    }
  }
  throw new ConfigError(problems.join("\n"));
}

/** Formats a value for an error. */
function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  return JSON.stringify(typeof value === "string" ? withoutPassword(value) : value);
}

function readPolicy(get: (name: string) => string | undefined): Policy {
  const set = (name: keyof PolicySettings) => get(POLICY_VARIABLES[name]);
  // A date that nobody chose must not make another one invalid.
  const unset = set("sunsetAt") ?? set("brownouts") ? "1970-01-01" : SAMPLES_DEPRECATED_AT;
  return definePolicy({
    deprecatedAt: set("deprecatedAt") ?? unset,
    sunsetAt: set("sunsetAt"),
    brownouts: set("brownouts")?.split(",").map((text) => text.trim()),
    // The policy validates these.
    brownoutStatus: statusIn(set("brownoutStatus")) as BrownoutStatus | undefined,
    afterSunset: set("afterSunset") as AfterSunset | undefined,
    documentation: set("documentation") ?? "/deprecation",
  });
}

/** Returns a status as a number; anything else as it is. */
function statusIn(text: string | undefined): number | string | undefined {
  return text !== undefined && /^\d{3}$/.test(text) ? Number(text) : text;
}
