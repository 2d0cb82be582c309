/**
 * The environment, read once at start.
 */

import { z } from "zod";

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
  /** When the old routes were deprecated: milliseconds since the epoch. */
  readonly deprecatedAt: number;
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
  "DENO_DEPLOYMENT_ID",
] as const;

/** The date of the first release. */
const FIRST_RELEASE = "2026-11-21";

const integer = (what: string, max: number) =>
  z.string()
    .refine((text) => /^\d+$/.test(text) && Number(text) <= max, {
      error: `expected ${what} from 0 to ${max}`,
    })
    .transform(Number);

/** ISO 8601, a date or an instant with its offset: without one it would depend on the machine. */
const instant = z.union([z.iso.date(), z.iso.datetime({ offset: true })], {
  error: 'expected an ISO 8601 date or instant like "2026-11-21" or "2026-11-21T08:00:00Z"',
}).transform((text) => Date.parse(text));

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
  DEPRECATED_AT: instant.prefault(FIRST_RELEASE),
  DENO_DEPLOYMENT_ID: z.string().optional(),
});

/**
 * Reads the settings.
 *
 * @param get Looks one variable up. One that is set but empty counts as not set.
 * @throws {ConfigError} When a value cannot be used, naming it and what was expected.
 */
export function readConfig(get: (name: string) => string | undefined): Config {
  const given = Object.fromEntries(VARIABLES.map((name) => [name, get(name) || undefined]));
  const parsed = Environment.safeParse(given);
  if (!parsed.success) {
    throw new ConfigError(
      parsed.error.issues.map(({ path, message }) => {
        const name = String(path[0]);
        return `${name}: ${message}, got ${JSON.stringify(given[name])}`;
      }).join("\n"),
    );
  }
  const env = parsed.data;
  const isDeploy = env.DENO_DEPLOYMENT_ID !== undefined;
  return {
    host: env.HOST,
    port: env.PORT,
    kv: env.STORAGE_KV ?? (isDeploy ? undefined : "./data/catalogue.sqlite"),
    files: env.STORAGE_FILES,
    isDefaultStorage: env.STORAGE_KV === undefined && !isDeploy,
    cacheMaxAge: env.CACHE_MAX_AGE,
    cacheTtl: env.CACHE_TTL * 1000,
    deprecatedAt: env.DEPRECATED_AT,
  };
}
