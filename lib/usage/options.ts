/** The options of a record, and their checks, because callers may not use TypeScript. */

import { CONTACT } from "../input/contact.ts";
import { withoutPassword } from "../input/printable.ts";
import { FAILED } from "../lifecycle/breaking.ts";
import { mismatch, requireNames } from "../lifecycle/mismatch.ts";
import type { Policy } from "../lifecycle/policy.ts";
import { LIFECYCLE_OPTION_NAMES } from "../lifecycle/serving/options.ts";
import { retire } from "../lifecycle/serving/retire.ts";
import type { LogEvent } from "../log/log.ts";
import { requireRouteNames } from "./record/records.ts";

/** The options of `openUsage()`. */
export interface UsageOptions {
  /**
   * The policy of each route, from `definePolicy()`, by the route's name, e.g. `/v1`. Names are
   * well-formed Unicode without control characters. All processes with the same database count the
   * same routes.
   */
  readonly routes: Readonly<Record<string, Policy>>;
  /**
   * Returns PostgreSQL's password, in place of the URL's. Called for each new connection.
   */
  readonly password?: (() => string | Promise<string>) | undefined;
  /**
   * Whether processes run on demand and not all the time, as on Cloud Run or Fly, or in business hours
   * only. Then a time without a process is a time without calls. Default: false, so verdicts name each
   * time of a minute or more without a process.
   */
  readonly onDemand?: boolean | undefined;
  /**
   * The URL at which clients reach the application: `https:` or `http:`, without user and password.
   * The page for a client's owner names it.
   */
  readonly publicUrl?: string | undefined;
  /** The contact on the page for a client's owner: a `mailto:` or `https:` URL. */
  readonly contact?: string | undefined;
  /** For how many whole days counts are retained, at least 1. Default: 400. */
  readonly retainDays?: number | undefined;
  /** Logs an event. Default: prints it to standard error as a line of JSON. */
  readonly log?: ((event: LogEvent) => void) | undefined;
}

/** The options of a route that those of the library lack. */
export interface RouteOptions<Handled extends readonly unknown[]> {
  /**
   * Returns the id of the client that called, as the application knows it after its own
   * authentication, e.g. `request.user?.id`. Called with what the handler got, when the response's
   * head is sent. An id is 1 to 64 printable ASCII characters, without a space at either end;
   * anything else counts as "(other)". Without an id, the client is known by `Origin`, `Referer` or
   * `User-Agent`. Ids are recorded as they are: return no secret and no mail address.
   */
  readonly client?: ((...handled: Handled) => string | number | null | undefined) | undefined;
  /**
   * The statuses that clients of the route read as an answer, e.g. `[404]` where they ask whether
   * something exists. Requests that are answered with one of them count as calls, and `breaks` is
   * true for them. Only 400, 401, 403, 404, 405, 407 and 410 may be listed, because all other
   * statuses count in any case. Default: none.
   */
  readonly answers?: readonly number[] | undefined;
}

const OPTION_NAMES = [
  "routes",
  "password",
  "onDemand",
  "publicUrl",
  "contact",
  "retainDays",
  "log",
];

/** Where options went that are no more. */
const GONE: Readonly<Record<string, string>> = {
  required: "a database that is away keeps no process from starting; usage.fault says so meanwhile",
  unrecorded: "calls are served and counted while the database is away; verdicts name what is lost",
  extensions:
    'give the client a route of its own, such as "/v1 for acme", with a policy of its own',
};

/** Checks the names of options. */
function requireKnown(options: object, names: readonly string[]): void {
  const gone = Object.keys(GONE).find((name) => Object.hasOwn(Object(options), name));
  if (gone !== undefined) throw new TypeError(`${gone}: this option is gone: ${GONE[gone]}`);
  requireNames(options, names);
}

/**
 * Checks the names of a route's options, and the options that the library lacks.
 *
 * @throws {TypeError} If one is not valid.
 */
export function requireRouteOptions<
  Options extends { readonly client?: unknown; readonly answers?: unknown },
>(options: Options): Options {
  requireKnown(options, [...LIFECYCLE_OPTION_NAMES, "client", "answers"]);
  const { client, answers = [] } = options;
  if (client !== undefined && typeof client !== "function") {
    throw new TypeError(mismatch("client", client, "a function"));
  }
  const wrong = Array.isArray(answers)
    ? answers.filter((status) => !FAILED.has(status))
    : [answers];
  if (wrong.length === 0) return options;
  const expected = `a list of statuses that do not count by themselves (${[...FAILED].join(", ")})`;
  throw new TypeError(mismatch("answers", wrong[0], expected));
}

/** @throws {TypeError} If an option of `openUsage()` is not valid. */
export function requireOptions(options: UsageOptions): void {
  requireKnown(options, OPTION_NAMES);
  const { routes, password, onDemand = false, publicUrl, contact, retainDays = 1 } = options;
  if (Object(routes) !== routes) {
    throw new TypeError(mismatch("routes", routes, "an object with a policy for each route"));
  }
  requireRouteNames(routes);
  // Throws for any that is not from definePolicy().
  for (const policy of Object.values(routes)) retire(policy);
  if (!Number.isInteger(retainDays) || retainDays < 1) {
    throw new TypeError(mismatch("retainDays", retainDays, "whole days from 1"));
  }
  if (password !== undefined && typeof password !== "function") {
    throw new TypeError("password: expected a function that returns the password");
  }
  if (typeof onDemand !== "boolean") {
    throw new TypeError(mismatch("onDemand", onDemand, "true or false"));
  }
  requireUrl("publicUrl", publicUrl, PUBLIC_URL);
  requireUrl("contact", contact, CONTACT);
}

/** The rule of a URL. */
type UrlRule = Pick<typeof CONTACT, "expected" | "parse">;

export const PUBLIC_URL: UrlRule = {
  expected: "an https: or http: URL without user and password",
  parse(text) {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const isPublic = url !== undefined && /^https?:$/.test(url.protocol) && !hasPassword(text);
    return isPublic ? url : undefined;
  },
};

function requireUrl(name: string, value: unknown, { expected, parse }: UrlRule): void {
  if (value === undefined || typeof value === "string" && parse(value) !== undefined) return;
  const shown = typeof value === "string" && hasPassword(value) ? withoutPassword(value) : value;
  throw new TypeError(mismatch(name, shown, expected));
}

/** Returns whether a text is a URL with a user or password. */
function hasPassword(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username + password !== "";
}
