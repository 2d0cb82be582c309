/**
 * The environment, read once at start.
 */

import { z } from "zod";
import {
  type AfterSunset,
  definePolicy,
  type Policy,
  PolicyError,
  type PolicySettings,
} from "./lifecycle/policy.ts";

/** The settings of a server. */
export interface Config {
  /** The interface to listen on. */
  readonly host: string;
  /** The port to listen on; 0 for any free one. */
  readonly port: number;
  /** Where the catalogue is: a path or a KV Connect URL; the platform's own without one. */
  readonly kv: string | undefined;
  /** The content folder. */
  readonly files: string;
  /** Whether nobody chose where the catalogue is, so that samples may be published into it. */
  readonly isDefaultStorage: boolean;
  /** Seconds of freshness stated in Cache-Control. */
  readonly cacheMaxAge: number;
  /** Milliseconds for which a look-up may be reused; 0 for none. */
  readonly cacheTtl: number;
  /** Days for which it is kept who called the old routes. */
  readonly usageDays: number;
  /** Whether Deno exports telemetry. */
  readonly isTelemetryOn: boolean;
  /** How the old routes are retired. */
  readonly policy: Policy;
}

/** Values of the environment that cannot be used; one line each. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Environment variables that are read, and no others. */
const VARIABLES = [
  "HOST",
  "PORT",
  "STORAGE_KV",
  "STORAGE_FILES",
  "CACHE_MAX_AGE",
  "CACHE_TTL",
  "DEPRECATED_AT",
  "SUNSET_AT",
  "BROWNOUTS",
  "AFTER_SUNSET",
  "DEPRECATION_DOC",
  "USAGE_DAYS",
  "DENO_DEPLOYMENT_ID",
  "OTEL_DENO",
] as const;

/** The date of the first release. */
const FIRST_RELEASE = "2026-11-21";

const integer = (what: string, max: number, min = 0) =>
  z.string()
    .refine((text) => /^\d+$/.test(text) && min <= Number(text) && Number(text) <= max, {
      error: `expected ${what} from ${min} to ${max}`,
    })
    .transform(Number);

/** The variables that make up the policy. */
const POLICY_VARIABLES: Readonly<Record<keyof PolicySettings, typeof VARIABLES[number]>> = {
  deprecatedAt: "DEPRECATED_AT",
  sunsetAt: "SUNSET_AT",
  brownouts: "BROWNOUTS",
  afterSunset: "AFTER_SUNSET",
  documentation: "DEPRECATION_DOC",
};

const kvLocation = z.string().refine(
  (text) => !/^[a-z][a-z0-9+.-]+:\/\//i.test(text) || /^https?:\/\/./i.test(text),
  { error: 'expected a path, or a KV Connect URL that starts with "https://"' },
);

const Environment = z.object({
  HOST: z.string().regex(/^[\w.:-]+$/, { error: "expected a host name or an IP address" })
    .default("0.0.0.0"),
  PORT: integer("a port number", 65535).default(8000),
  STORAGE_KV: kvLocation.optional(),
  STORAGE_FILES: z.string().default("./data/files"),
  CACHE_MAX_AGE: integer("seconds", 31_536_000).default(300),
  CACHE_TTL: integer("seconds", 86_400).default(5),
  USAGE_DAYS: integer("days", 3650, 1).default(400),
  DENO_DEPLOYMENT_ID: z.string().optional(),
  OTEL_DENO: z.string().optional(),
});

/**
 * Reads the settings.
 *
 * @param get Looks one variable up. One that is set but empty counts as not set.
 * @throws {ConfigError} When a value cannot be used, naming it and what was expected.
 */
export function readConfig(get: (name: string) => string | undefined): Config {
  const given = Object.fromEntries(VARIABLES.map((name) => [name, get(name) || undefined]));
  const environment = Environment.safeParse(given);
  const policy = readPolicy(given);
  if (!environment.success || policy instanceof PolicyError) {
    const problems = [
      ...(environment.error?.issues ?? []).map(({ path: [name], message }) =>
        `${String(name)}: ${message}, got ${JSON.stringify(given[String(name)])}`
      ),
      ...(policy instanceof PolicyError ? policy.issues : []).map(({ setting, value, expected }) =>
        `${POLICY_VARIABLES[setting]}: expected ${expected}, got ${JSON.stringify(value)}`
      ),
    ];
    throw new ConfigError(problems.join("\n"));
  }
  const env = environment.data;
  const isDeploy = env.DENO_DEPLOYMENT_ID !== undefined;
  return {
    host: env.HOST,
    port: env.PORT,
    kv: env.STORAGE_KV ?? (isDeploy ? undefined : "./data/catalogue.sqlite"),
    files: env.STORAGE_FILES,
    isDefaultStorage: env.STORAGE_KV === undefined && !isDeploy,
    cacheMaxAge: env.CACHE_MAX_AGE,
    cacheTtl: env.CACHE_TTL * 1000,
    usageDays: env.USAGE_DAYS,
    isTelemetryOn: env.OTEL_DENO === "true" || env.OTEL_DENO === "1",
    policy,
  };
}

function readPolicy(given: Record<string, string | undefined>): Policy | PolicyError {
  try {
    return definePolicy({
      deprecatedAt: given[POLICY_VARIABLES.deprecatedAt] ?? FIRST_RELEASE,
      sunsetAt: given[POLICY_VARIABLES.sunsetAt],
      brownouts: given[POLICY_VARIABLES.brownouts]?.split(",").map((text) => text.trim()),
      // Whether it is one of the two is for the policy to say.
      afterSunset: given[POLICY_VARIABLES.afterSunset] as AfterSunset | undefined,
      documentation: given[POLICY_VARIABLES.documentation] ?? "/deprecation",
    });
  } catch (error) {
    if (error instanceof PolicyError) return error;
    throw error;
  }
}
