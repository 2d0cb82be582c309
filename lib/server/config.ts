/** The settings, read and validated once at startup. */

import { z } from "zod";
import { parseDatabaseUrl, sqliteAt } from "../database/place.ts";
import { foreignFormIn, parsePostgresUrl } from "../database/postgres_url.ts";
import { WrongUsageError } from "../errors/refused_error.ts";
import { HTTP_TOKEN } from "../http/http_token.ts";
import { CONTACT } from "../input/contact.ts";
import type { ContentPlace } from "../storage/content/content_place.ts";
import { readPolicyConfig } from "./policy_config.ts";
import { createReader, type Reader } from "./setting_reader.ts";

/** Thrown if settings are invalid. The message has one line for each invalid setting. */
export class ConfigError extends WrongUsageError {
  override readonly name = "ConfigError";
}

export type Config = Readonly<ReturnType<typeof readConfig>>;

/** A server's clients get an error within five seconds; a command can wait for a busy store. */
const STORE_TIMEOUT_MS = { server: 4_500, command: 30_000 };

const HOST = z.string().regex(/^[\w.:-]+$/);
const SWITCH = z.enum(["true", "false"]).transform((text) => text === "true");
const WEB_URL = z.url({ protocol: /^https?$/ }).transform((text) => new URL(text));
const ORIGIN = WEB_URL.refine(({ href, origin }) => href === `${origin}/`)
  .transform(({ origin }) => origin);
const ENDPOINT = WEB_URL
  .refine(({ username, password, search, hash }) => username + password + search + hash === "")
  .transform(({ href }) => href.replace(/\/+$/, ""));
const CONTACT_URL = z.string().transform(CONTACT.parse).refine((url) => url !== undefined)
  .transform((url) => url.href);
const POSTGRES_URL = z.string().regex(/^postgres(?:ql)?:\/\/.*\S$/is).refine((text) => {
  const url = parsePostgresUrl(text);
  // The only "@", if there is one, follows the user and password.
  return url && text.split("@").length === (url.username + url.password === "" ? 1 : 2);
});
const SQLITE_URL = z.string().regex(/\S$/)
  .refine((text) => parseDatabaseUrl(text).kind === "sqlite");
const DEFAULT_DATABASE = sqliteAt("./data/catalogue.sqlite");
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

/** Matches the name of a field that may identify clients: any but those of credentials. */
const CLIENT_FIELD = new RegExp(`^(?!(?:proxy-)?authorization$|cookie$)${HTTP_TOKEN}$`, "i");

const integer = (min: number, max: number) =>
  z.string().regex(/^\d+$/).transform(Number).pipe(z.number().min(min).max(max));
const PORT = integer(0, 65_535);
const MAX_AGE = integer(0, 31_536_000);
const DAYS = integer(1, 3_650);

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
  const server = readServer(reader);
  const storage = readStorage(reader, STORE_TIMEOUT_MS[user]);
  const policies = readPolicyConfig(reader, user, paths);
  const { faults } = reader;
  if (policies === undefined || faults.length > 0) throw new ConfigError(faults.join("\n"));
  return { ...server, ...storage, ...policies };
}

/** Reads how the server listens, what it tells clients, and what it counts. */
function readServer({ get, read }: Reader) {
  const origin = 'the "https:" or "http:" URL of this server, without a path';
  const field = "the name of a request field that names the client, and is no credential";
  return {
    host: read("HOST", "a host name or an IP address", HOST.default("0.0.0.0")),
    /** 0 for any free port. */
    port: read("PORT", "a port number from 0 to 65535", PORT.default(8000)),
    /** Whether other processes may listen on the same port. */
    reusePort: read("REUSE_PORT", '"true" or "false"', SWITCH.default(false)),
    /** The origin at which clients reach the server, if it is known: for documents, pages and probes. */
    publicUrl: read("PUBLIC_URL", origin, ORIGIN.optional()),
    /** The URL at which owners of clients reach the operator, if there is one. */
    contact: read("CONTACT", CONTACT.expected, CONTACT_URL.optional()),
    /** Seconds. */
    cacheMaxAge: read("CACHE_MAX_AGE", "seconds from 0 to 31536000", MAX_AGE.default(300)),
    retainDays: read("USAGE_DAYS", "days from 1 to 3650", DAYS.default(400)),
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
  const foreign = foreignFormIn(get("DATABASE_URL") ?? "");
  if (foreign !== undefined) faults.push(`DATABASE_URL: ${foreign}`);
  const url = foreign !== undefined
    ? undefined
    : isOnDeploy
    ? read("DATABASE_URL", DEPLOYED_DATABASE, POSTGRES_URL)
    : read("DATABASE_URL", DATABASE, POSTGRES_URL.or(SQLITE_URL).optional());
  const database = url === undefined ? DEFAULT_DATABASE : parseDatabaseUrl(url);
  if (database.kind === "invalid") faults.push(`DATABASE_URL: ${database.fault}`);
  const content = readContent(reader, { isOnDeploy, timeoutMs });
  return {
    database: database.kind === "invalid" ? DEFAULT_DATABASE : database, // not used after a fault
    content,
    /** Whether this runs on Deno Deploy, which caches responses itself. */
    isOnDeploy,
    /** Whether `DATABASE_URL` names the database, so that commands may create it. */
    isDatabaseNamed: url !== undefined,
    /** Whether neither a database nor a bucket is configured, so that samples may be published. */
    isDefaultStorage: url === undefined && content.kind === "folder",
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
