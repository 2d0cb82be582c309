/** Checks the announcements of URLs, for the command `lifecycle check`. */

import { parseHttpDate } from "../../http/http_date.ts";
import type { Field } from "../../http/outcome.ts";
import { formatInstant } from "../../http/timestamp.ts";
import { CHECK_CLIENT } from "../breaking.ts";
import { isCacheControl } from "../cache_control.ts";
import { type Fault, inspect, type Inspection, RELATIONS } from "./inspect.ts";

/** Milliseconds within which a response must begin. */
const TIME_LIMIT_MS = 10_000;

/** How many redirects are followed. */
const MAX_REDIRECTS = 20;

/** Statuses of a redirect from a resource that has moved for good (RFC 9110 §15.4). */
const PERMANENT_REDIRECTS = new Set([301, 308]);

/** Statuses of a redirect. */
const REDIRECTS = new Set([...PERMANENT_REDIRECTS, 302, 303, 307]);

/** The fault of a response without an announcement, e.g. if the middleware was removed. */
const NOT_ANNOUNCED: Fault = {
  name: "not-announced",
  section: "RFC 9745 §2",
  message: "Nothing is announced: expected Deprecation, Sunset, or a link to an explanation",
};

/**
 * Statuses that leave open whether a path is being retired, if nothing is announced: there is no such
 * path (any more), or something in front of it has answered. So does any 5xx.
 */
const TELLING_NOTHING = new Set([401, 403, 404, 407, 410, 429]);

/** Fields that a HEAD shares with its GET: of the representation, the retirement and caching. */
const SHARED_FIELDS = new Set([
  "accept-ranges",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-length",
  "content-location",
  "content-type",
  "etag",
  "last-modified",
  "repr-digest",
  "deprecation",
  "sunset",
  "location",
  "retry-after",
  "expires",
  "vary",
  "x-accel-expires",
]);

interface CheckOptions {
  /** Fields to send with each request. */
  readonly fields?: Field[] | undefined;
  /** Whether to ask only that nothing is announced. */
  readonly expectsNone?: boolean;
}

/** What was found at a URL. */
interface Finding {
  readonly exitStatus: number;
  readonly lines: readonly string[];
  readonly data:
    | ({ readonly url: string; readonly error: string } & Judged)
    | (Described & Judged & { readonly faults?: readonly Fault[] | undefined });
}

/** Whether a URL is as expected, if anything was. */
interface Judged {
  readonly expectation?: Expectation;
}

type Expectation = "met" | "not met" | "unknown";

/**
 * Checks URLs, side by side. User and password of a URL are sent, and printed nowhere.
 *
 * @returns What was found, as lines to print, and as data for programs; and the exit status: 0 without
 *   faults, 1 with faults, 2 if a URL cannot be reached. With `expectsNone`: 1 if a URL announces a
 *   retirement, 0 if none does, and 2 if that is open of one.
 */
export async function check(
  urls: readonly string[],
  { fields = [], expectsNone = false }: CheckOptions = {},
) {
  const checkOne = expectsNone ? checkForNone : checkForFaults;
  const results = await Promise.all(urls.map(async (text): Promise<Finding> => {
    const { url, headers } = splitCredentials(text, fields);
    try {
      return await checkOne(url, headers);
    } catch (error) { // the connection failed, or took too long
      const { message, cause } = error as Error;
      const reason = cause instanceof Error && cause.message || message;
      const judged: Judged = expectsNone ? { expectation: "unknown" } : {};
      return {
        exitStatus: 2,
        lines: [`${url}: ${reason}`],
        data: { url, error: reason, ...judged },
      };
    }
  }));
  const statuses = results.map(({ exitStatus }) => exitStatus);
  return {
    lines: results.flatMap(({ lines }) => lines),
    data: results.map(({ data }) => data),
    exitStatus: expectsNone && statuses.includes(1) ? 1 : Math.max(...statuses),
  };
}

/** Returns a URL without user and password, and the fields of a request, with them. */
function splitCredentials(text: string, fields: readonly Field[]) {
  const headers = new Headers(fields as Field[]);
  const url = new URL(text);
  const { username, password } = url;
  if (username + password === "") return { url: text, headers };
  url.username = url.password = "";
  if (!headers.has("Authorization")) {
    const bytes = new TextEncoder().encode(`${decoded(username)}:${decoded(password)}`);
    headers.set("Authorization", `Basic ${btoa(String.fromCharCode(...bytes))}`);
  }
  return { url: url.href, headers };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch { // a "%" that encodes nothing
    return text;
  }
}

async function checkForFaults(url: string, fields: Headers): Promise<Finding> {
  const began = Date.now();
  const { head, get } = await ask(url, fields, began);
  const faults = faultsOf(head, get, (Date.now() - began) / 1000 + 1);
  const { lines, data } = describe(url, get, targetOf(get[0], url));
  const findings = faults.map(({ section, message }) => `fault: ${message} (${section})`);
  return {
    exitStatus: faults.length === 0 ? 0 : 1,
    lines: [...lines, ...(faults.length === 0 ? ["no faults"] : findings).map(indented)],
    data: { ...data, faults },
  };
}

/**
 * Checks that a URL announces nothing, nor those to which it redirects on the same origin. Faults are
 * not looked for: they are the server's, and a client cannot mend them.
 */
async function checkForNone(url: string, fields: Headers): Promise<Finding> {
  let asked = url;
  let temporary: number | undefined;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const { head, get } = await ask(asked, fields, Date.now());
    const [{ status }, { state }] = get;
    const found: Inspected = [get[0], state === "none" ? head[1] : get[1]];
    const target = targetOf(get[0], asked);
    const leadsOn = found[1].state === "none" && REDIRECTS.has(status) && target !== undefined;
    if (leadsOn && new URL(target).origin === new URL(asked).origin) {
      const isMoved = PERMANENT_REDIRECTS.has(status) || pathIn(asked) === pathIn(target);
      if (!isMoved) temporary = status;
      asked = target;
      continue;
    }
    const { exitStatus, expectation, text } = judge(found, { asked, target, temporary });
    const { lines, data } = describe(url, found, target ?? (asked === url ? undefined : asked));
    return { exitStatus, lines: [...lines, indented(text)], data: { ...data, expectation } };
  }
  throw new Error(`more than ${MAX_REDIRECTS} redirects`);
}

/** Returns the path of a URL without the slashes at its end, which many servers add or remove. */
function pathIn(url: string): string {
  return new URL(url).pathname.replace(/\/+$/, "");
}

/** Judges whether nothing is announced. */
function judge([{ status }, { state }]: Inspected, { asked, target, temporary }: {
  /** The URL of the response. */
  readonly asked: string;
  readonly target: string | undefined;
  /** The status of a temporary redirect to another path, if one was followed. */
  readonly temporary: number | undefined;
}): { exitStatus: number; expectation: Expectation; text: string } {
  const unknown = (text: string) => {
    return { exitStatus: 2, expectation: "unknown", text: `unknown: ${text}` } as const;
  };
  if (state !== "none") {
    const text = "not as expected: a retirement is announced";
    return { exitStatus: 1, expectation: "not met", text };
  }
  if (REDIRECTS.has(status) && target !== undefined) {
    return unknown(`it redirects to another origin; check ${target}`);
  }
  if (REDIRECTS.has(status) || TELLING_NOTHING.has(status) || status >= 500) {
    return unknown(`a ${status} does not tell whether the path is being retired`);
  }
  if (temporary !== undefined) {
    return unknown(`a ${temporary} led to another path, as to a login page; check ${asked}`);
  }
  return { exitStatus: 0, expectation: "met", text: "as expected" };
}

/** Asks for a URL by HEAD, and then by GET. */
async function ask(url: string, fields: Headers, now: number) {
  const head = await send("HEAD", url, fields);
  const get = await send("GET", url, fields);
  const inspected = (response: Response): Inspected => [response, inspect(response, { url, now })];
  return { head: inspected(head), get: inspected(get) };
}

/** Returns the URL to which a response redirects, without user and password. */
function targetOf({ headers }: Response, url: string): string | undefined {
  const location = headers.get("location") ?? "";
  if (location === "" || !URL.canParse(location, url)) return undefined;
  const target = new URL(location, url);
  target.username = target.password = "";
  return target.href;
}

type Described = ReturnType<typeof describe>["data"];

/** Describes the announcement of a response, and where it was found or redirects. */
function describe(
  url: string,
  [{ status }, { faults: _, ...inspection }]: Inspected,
  location: string | undefined,
) {
  const links = Object.fromEntries(inspection.links);
  const lines = [
    `${status} ${url}${location ? ` to ${location}` : ""}: ${describeState(inspection)}`,
    ...RELATIONS.flatMap((name) =>
      links[name]?.map((target) => indented(`${name}: ${target}`)) ?? []
    ),
  ];
  return { lines, data: { url, status, location, ...inspection, links } };
}

function indented(line: string): string {
  return `  ${line}`;
}

/** A response, and what it announces. */
type Inspected = readonly [response: Response, inspection: Inspection];

/** Returns the faults of a GET, and of the HEAD that was sent some seconds before it. */
function faultsOf(
  [head, ofHead]: Inspected,
  [get, ofGet]: Inspected,
  seconds: number,
): Fault[] {
  const faults = [...ofGet.faults];
  if (ofGet.state === "none") faults.push(NOT_ANNOUNCED);
  if (head.status !== get.status) {
    return [...faults, differs("the status", head.status, get.status)];
  }
  const known = new Set(faults.map(({ name }) => name));
  faults.push(...ofHead.faults.filter(({ name }) => !known.has(name)));
  faults.push(...differencesOf(head, get, seconds));
  for (const name of RELATIONS) {
    const [a, b] = [ofHead, ofGet].map(({ links }) => links.get(name)?.join(" "));
    if (a !== b) faults.push(differs(`the link "${name}"`, a, b));
  }
  return faults;
}

async function send(method: string, url: string, fields: Headers): Promise<Response> {
  // fetch() decodes encoded content, but leaves its Content-Length as it was.
  const headers = new Headers({ "Accept-Encoding": "identity", "User-Agent": CHECK_CLIENT });
  for (const [name, value] of fields) headers.set(name, value);
  const signal = AbortSignal.timeout(TIME_LIMIT_MS);
  const response = await fetch(url, { method, headers, redirect: "manual", signal })
    .catch((error) => {
      if (!signal.aborted) throw error;
      throw new Error(`no response to the ${method} within ${TIME_LIMIT_MS / 1000} s`);
    });
  await response.body?.cancel();
  return response;
}

/** Compares the shared fields of a HEAD with those of a GET sent some seconds later. */
function differencesOf(head: Response, get: Response, seconds: number): Fault[] {
  const names = new Set([...head.headers.keys(), ...get.headers.keys()]);
  const [ofHead = 0, ofGet] = [head, get].map(({ headers }) =>
    +(headers.get("content-length") ?? 0)
  );
  // A default error page that names the method, like "Cannot HEAD /x", is longer by a letter.
  const ofPage = get.status >= 400 && ofHead - 1 === ofGet ? ["content-length", "etag"] : [];
  for (const name of ofPage) names.delete(name);
  return [...names].flatMap((name) => {
    const [a, b] = [head.headers.get(name), get.headers.get(name)];
    const isShared = SHARED_FIELDS.has(name) || isCacheControl(name);
    if (a === b || !isShared || isCountdown(name, [a ?? "", b ?? ""], seconds)) return [];
    // A HEAD may omit a field whose value depends on generating the content (RFC 9110 §9.3.2).
    return name === "content-length" && a === null ? [] : [differs(name, a, b)];
  });
}

function differs(subject: string, ofHead: unknown, ofGet: unknown): Fault {
  const [a, b] = [ofHead, ofGet].map((value) => JSON.stringify(value ?? undefined) ?? "none");
  const message = `${subject} is ${a} on HEAD, ${b} on GET`;
  return { name: "head-differs", section: "RFC 9110 §9.3.2", message };
}

/** Returns whether two instants or countdowns differ by that many seconds at most. */
function isCountdown(name: string, values: [string, string], seconds: number): boolean {
  const [at = NaN, other = NaN] = values.map((value) => parseHttpDate(value, Date.now()));
  if (Math.abs(at - other) <= seconds * 1000) return true;
  const [parts, others] = values.map((value) => value.split(/(\d+)/)) as [string[], string[]];
  return /-control$|^retry-after$/.test(name) && parts.length === others.length &&
    parts.every((part, index) =>
      part === others[index] || Math.abs(+part - Number(others[index])) <= seconds
    );
}

/** Describes an announcement, like "deprecated (deprecation 2026-11-21T00:00:00Z)". */
function describeState(
  { state, deprecatedAt, retryAt, sunsetAt }: Omit<Inspection, "faults">,
): string {
  const dates = { deprecation: deprecatedAt, "retry-after": retryAt, sunset: sunsetAt };
  const stated = Object.entries(dates)
    .flatMap(([name, at]) => at === undefined ? [] : [`${name} ${formatInstant(at)}`]);
  const name = state === "none" ? "nothing announced" : state;
  return stated.length === 0 ? name : `${name} (${stated.join(", ")})`;
}
