/** The settings of the proxy: one file, validated as a whole before anything listens. */

import { parseDatabaseUrl } from "../../database/place.ts";
import { WrongUsageError } from "../../errors/refused_error.ts";
import { HTTP_TOKEN } from "../../http/http_token.ts";
import { CONTACT } from "../../input/contact.ts";
import { isPrintable, quoted, withoutPassword } from "../../input/printable.ts";
import { FAILED } from "../../lifecycle/breaking.ts";
import { isPath, isPathOrSecureUrl } from "../../lifecycle/link_target.ts";
import { describeValue } from "../../lifecycle/mismatch.ts";
import type { Policy } from "../../lifecycle/policy.ts";
import { definePolicy, PolicyError, type PolicySettings } from "../../lifecycle/policy_settings.ts";
import { PUBLIC_URL } from "../options.ts";
import { match, type Pattern, patternOf, tiesIn } from "./routing.ts";

/** Where to listen: an address, or the path of a socket. */
export type Listen =
  & { readonly name: string }
  & ({ readonly host: string; readonly port: number } | { readonly path: string });

/** The server behind: an origin, or the path of a socket. */
export type Upstream = {
  /** The URL as it was given. */
  readonly url: string;
  readonly isSecure: boolean;
  /** `undefined` for a socket. */
  readonly host: string | undefined;
  readonly port: number | undefined;
  /** `undefined` for an origin. */
  readonly socketPath: string | undefined;
};

/** A retired path, and what is below it. */
export interface FrontRoute {
  /** Its name: the path as it was given. */
  readonly name: string;
  readonly pattern: Pattern;
  readonly policy: Policy;
  /** The path, or the URL, in place of the retired one. Names of segments stand for what they match. */
  readonly successor: string | undefined;
  /** The field by which clients are known, in the response or in the request; in lower case. */
  readonly clientField: string | undefined;
  readonly answers: readonly number[];
}

export interface FrontSettings {
  readonly upstream: Upstream;
  readonly listen: Listen;
  readonly database: string;
  /** Whether another proxy has set the fields that say who the client is. */
  readonly behindProxy: boolean;
  /** How long to wait for the head of a response, in milliseconds. */
  readonly timeoutMs: number;
  readonly retainDays: number | undefined;
  readonly publicUrl: string | undefined;
  readonly contact: string | undefined;
  /** The path of the notice. */
  readonly notice: string;
  readonly routes: readonly FrontRoute[];
}

const NAMES = [
  ...["upstream", "listen", "database", "behindProxy", "timeout", "retainDays", "publicUrl"],
  ...["contact", "notice", "routes"],
];

/** The default of `timeout`, and its limit, in seconds. */
const [TIMEOUT, MAX_TIMEOUT] = [60, 3_600];

/** Adds a fault. */
type Refuse = (place: string, value: unknown, expected: string) => undefined;

/**
 * Reads the settings in a file.
 *
 * @param text The content of the file.
 * @param name The name of the file, for messages.
 * @param database The database, if the file names none.
 * @throws {WrongUsageError} If one is missing, unknown or invalid. The message lists every fault by its
 *   place.
 */
export function readSettings(
  text: string,
  { name, database: fallback }: {
    readonly name: string;
    readonly database: string | undefined;
  },
): FrontSettings {
  let given: unknown;
  try {
    given = JSON.parse(text.replace(/^\ufeff/, ""));
  } catch (error) {
    throw new WrongUsageError(`${name}: expected JSON: ${(error as Error).message}`);
  }
  const faults: string[] = [];
  const refuse: Refuse = (place, value, expected) => {
    const shown = typeof value === "string" ? quoted(withoutPassword(value)) : describeValue(value);
    faults.push(`${place}: expected ${expected}, got ${shown}`);
    return undefined;
  };
  const settings = settingsIn(given, fallback, refuse);
  if (settings === undefined || faults.length > 0) {
    throw new WrongUsageError([`${name}:`, ...faults].join("\n  "));
  }
  return settings;
}

function settingsIn(
  given: unknown,
  fallback: string | undefined,
  refuse: Refuse,
): FrontSettings | undefined {
  if (!isObject(given)) return refuse("(the file)", given, "an object");
  requireNames("", given, NAMES, refuse);
  const { timeout = TIMEOUT, retainDays, publicUrl, contact, notice = "/deprecation" } = given;
  const { database = fallback } = given;
  const upstream = upstreamIn(given["upstream"], refuse);
  const listen = listenIn(given["listen"], refuse);
  const isDatabase = typeof database === "string" && parseDatabaseUrl(database).kind !== "invalid";
  if (!isDatabase) {
    refuse(
      "database",
      database,
      'a URL like "sqlite:/var/lib/retire/calls.sqlite" or "postgres://…"',
    );
  }
  const behindProxy = behindProxyIn(given["behindProxy"], listen, refuse);
  if (typeof timeout !== "number" || !(timeout > 0 && timeout <= MAX_TIMEOUT)) {
    refuse("timeout", timeout, `seconds from above 0 to ${MAX_TIMEOUT}`);
  }
  if (retainDays !== undefined && !(Number.isInteger(retainDays) && (retainDays as number) >= 1)) {
    refuse("retainDays", retainDays, "whole days from 1");
  }
  requireUrl("publicUrl", publicUrl, PUBLIC_URL, refuse);
  requireUrl("contact", contact, CONTACT, refuse);
  const isNotice = typeof notice === "string" && isPath(notice) && !/[?#]/.test(notice);
  if (!isNotice) refuse("notice", notice, 'a path like "/deprecation"');
  const documentation = isNotice ? notice : undefined;
  const routes = routesIn(given["routes"], documentation, refuse);
  if (upstream === undefined || listen === undefined || behindProxy === undefined) return undefined;
  return {
    ...{ upstream, listen, behindProxy, routes },
    database: database as string,
    timeoutMs: (timeout as number) * 1_000,
    retainDays: retainDays as number | undefined,
    publicUrl: publicUrl as string | undefined,
    contact: contact as string | undefined,
    notice: notice as string,
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return Object(value) === value && !Array.isArray(value);
}

/** Refuses unknown names: a misspelt one would silently count as absent. */
function requireNames(
  place: string,
  given: Record<string, unknown>,
  names: readonly string[],
  refuse: Refuse,
): void {
  for (const name of Object.keys(given).filter((name) => !names.includes(name))) {
    refuse(
      `${place}${name}`,
      given[name],
      `no setting of this name, but any of ${names.join(", ")}`,
    );
  }
}

function requireUrl(
  place: string,
  value: unknown,
  { expected, parse }: Pick<typeof CONTACT, "expected" | "parse">,
  refuse: Refuse,
): void {
  if (value === undefined || typeof value === "string" && parse(value) !== undefined) return;
  refuse(place, value, expected);
}

function upstreamIn(value: unknown, refuse: Refuse): Upstream | undefined {
  const expected =
    'a URL without a path, like "http://127.0.0.1:8000" or "https://app.internal", ' +
    'or "unix:/path"';
  if (typeof value !== "string") return refuse("upstream", value, expected);
  if (/^unix:\/./.test(value)) {
    const socketPath = value.slice("unix:".length);
    return { url: value, isSecure: false, host: undefined, port: undefined, socketPath };
  }
  const url = /^https?:/i.test(value) && URL.canParse(value) ? new URL(value) : undefined;
  const isOrigin = url !== undefined &&
    url.username + url.password + url.search + url.hash === "" &&
    url.pathname === "/";
  if (!isOrigin) return refuse("upstream", value, expected);
  const isSecure = url.protocol === "https:";
  const port = Number(url.port) || (isSecure ? 443 : 80);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return { url: value, isSecure, host, port, socketPath: undefined };
}

function listenIn(value: unknown, refuse: Refuse): Listen | undefined {
  const expected = 'an address and a port, like "127.0.0.1:8001", or "unix:/path"';
  if (typeof value !== "string") return refuse("listen", value, expected);
  if (/^unix:\/./.test(value)) return { name: value, path: value.slice("unix:".length) };
  const [, host = "", port] = /^(.+):(\d{1,5})$/.exec(value) ?? [];
  const url = `http://${host}:${port}`;
  const isValid = Number(port) > 0 && Number(port) < 65_536 && URL.canParse(url) &&
    new URL(url).pathname === "/";
  if (!isValid) return refuse("listen", value, expected);
  return { name: value, host: host.replace(/^\[|\]$/g, ""), port: Number(port) };
}

function behindProxyIn(
  value: unknown,
  listen: Listen | undefined,
  refuse: Refuse,
): boolean | undefined {
  if (typeof value === "boolean") return value;
  const isLocal = listen !== undefined &&
    ("path" in listen || /^(?:127(?:\.\d+){3}|::1|localhost)$/.test(listen.host));
  if (value === undefined && (isLocal || listen === undefined)) return true;
  return refuse(
    "behindProxy",
    value,
    "true if another proxy sets X-Forwarded-For, or false, since others can reach this address",
  );
}

const POLICY_NAMES = ["deprecatedAt", "sunsetAt", "brownouts", "brownoutStatus", "afterSunset"];
const ROUTE_NAMES = [...POLICY_NAMES, "documentation", "successor", "clientField", "answers"];

function routesIn(
  value: unknown,
  documentation: string | undefined,
  refuse: Refuse,
): FrontRoute[] {
  const expected = 'an object with a policy for each path, like { "/v1": { "deprecatedAt": … } }';
  if (!isObject(value) || Object.keys(value).length === 0) {
    return refuse("routes", value, expected) ?? [];
  }
  const routes = Object.entries(value).flatMap(([name, given]) =>
    routeIn(name, given, documentation, refuse) ?? []
  );
  for (const [first, second] of tiesIn(routes.map(({ pattern }) => pattern))) {
    refuse(
      `routes.${second}`,
      second,
      `a path that differs from ${quoted(first)} in more than names`,
    );
  }
  return routes;
}

function routeIn(
  name: string,
  given: unknown,
  documentation: string | undefined,
  refuse: Refuse,
): FrontRoute | undefined {
  const place = `routes.${name}`;
  const pattern = isPrintable(name) ? patternOf(name) : undefined;
  if (pattern === undefined) {
    return refuse(place, name, 'a path like "/v1" or "/users/:id/avatar", without "*"');
  }
  if (!isObject(given)) return refuse(place, given, "an object with a policy");
  requireNames(`${place}.`, given, ROUTE_NAMES, refuse);
  const { successor, clientField, answers = [], ...settings } = given;
  const isSuccessor = successor === undefined || typeof successor === "string" &&
      isPathOrSecureUrl(successor) && !/[?#]/.test(successor) &&
      patternOf(pathIn(successor))?.names.every((each) => pattern.names.includes(each)) === true &&
      match([{ pattern }], successor.startsWith("/") ? successor : "") === undefined;
  if (!isSuccessor) {
    const named = pattern.names.map((each) => `:${each}`).join(", ") || "none";
    refuse(
      `${place}.successor`,
      successor,
      'a path like "/v2" that is not below the retired one, or an "https:" URL, without a query ' +
        `(names that it may have: ${named})`,
    );
  }
  const isField = typeof clientField === "string" && FIELD_NAME.test(clientField);
  if (clientField !== undefined && !isField) {
    refuse(`${place}.clientField`, clientField, 'the name of a field, like "X-Consumer-Id"');
  }
  const wrong = Array.isArray(answers) ? answers.filter((each) => !FAILED.has(each)) : [answers];
  if (wrong.length > 0) {
    refuse(`${place}.answers`, wrong[0], `a list of any of ${[...FAILED].join(", ")}`);
  }
  const known = Object.entries(settings).filter(([each]) => ROUTE_NAMES.includes(each));
  const policy = policyIn(place, { documentation, ...Object.fromEntries(known) }, refuse);
  if (policy === undefined) return undefined;
  return {
    ...{ name, pattern, policy },
    successor: successor as string | undefined,
    clientField: isField ? clientField.toLowerCase() : undefined,
    answers: answers as number[],
  };
}

const FIELD_NAME = new RegExp(`^${HTTP_TOKEN}$`);

/** Returns the path of a path or URL. */
function pathIn(target: string): string {
  return target.replace(/^https:\/\/[^/]*/i, "") || "/";
}

function policyIn(place: string, settings: object, refuse: Refuse): Policy | undefined {
  try {
    return definePolicy(settings as PolicySettings);
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    for (const { setting, value, expected } of error.issues) {
      refuse(`${place}.${setting}`, value, expected);
    }
    return undefined;
  }
}
