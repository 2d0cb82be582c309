/** Checks the announcements of URLs, for the command `lifecycle check`. */

import { parseHttpDate } from "../../http/http_date.ts";
import type { Field } from "../../http/outcome.ts";
import { formatInstant } from "../../http/timestamp.ts";
import { CHECK_CLIENT } from "../breaking.ts";
import { isCacheControl } from "../cache_control.ts";
import { type Fault, inspect, type Inspection, RELATIONS } from "./inspect.ts";

/** Milliseconds within which a response must begin. */
const TIME_LIMIT_MS = 10_000;

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

/**
 * Checks URLs, side by side.
 *
 * @returns What was found, as lines to print, and as data for programs; and the exit status: 0 without
 *   faults, 1 with faults, 2 if a URL cannot be reached. With `expectsNone`: 0 if no URL announces a
 *   retirement, 1 if one does, and 2 also if the status of one leaves that open.
 */
export async function check(
  urls: readonly string[],
  { fields = [], expectsNone = false }: CheckOptions = {},
) {
  const headers = new Headers(fields);
  const results = await Promise.all(urls.map((url) => checkUrl(url, headers, expectsNone)));
  return {
    lines: results.flatMap(({ lines }) => lines),
    data: results.map(({ data }) => data),
    exitStatus: Math.max(...results.map(({ exitStatus }) => exitStatus)),
  };
}

async function checkUrl(url: string, fields: Headers, expectsNone: boolean) {
  const now = Date.now();
  try {
    const head = await send("HEAD", url, fields);
    const get = await send("GET", url, fields);
    const { status } = get;
    const [ofHead, ofGet] = [inspect(head, { url, now }), inspect(get, { url, now })];
    const inspection = expectsNone && ofGet.state === "none" ? ofHead : ofGet;
    const links = Object.fromEntries(inspection.links);
    const target = get.headers.get("location") ?? "";
    const location = target && URL.canParse(target, url) ? new URL(target, url).href : undefined;
    const { exitStatus, findings, faults } = expectsNone
      ? compareWithNone(inspection, status)
      : judge(faultsOf([head, ofHead], [get, ofGet], (Date.now() - now) / 1000 + 1));
    const lines = [
      `${status} ${url}${location ? ` to ${location}` : ""}: ${describeState(inspection)}`,
      ...RELATIONS.flatMap((name) => links[name]?.map((target) => `  ${name}: ${target}`) ?? []),
      ...findings.map((finding) => `  ${finding}`),
    ];
    return { exitStatus, lines, data: { url, status, location, ...inspection, links, faults } };
  } catch (error) { // the connection failed, or took too long
    const { message, cause } = error as Error;
    const reason = cause instanceof Error && cause.message || message;
    return { exitStatus: 2, lines: [`${url}: ${reason}`], data: { url, error: reason } };
  }
}

/** What the exit status is, and why. */
interface Judgement {
  readonly exitStatus: number;
  /** Lines to print. */
  readonly findings: readonly string[];
  /** Left out where nobody asked for faults. */
  readonly faults: readonly Fault[] | undefined;
}

function judge(faults: readonly Fault[]): Judgement {
  const findings = faults.map(({ section, message }) => `fault: ${message} (${section})`);
  if (faults.length === 0) return { exitStatus: 0, findings: ["no faults"], faults };
  return { exitStatus: 1, findings, faults };
}

/** Judges whether nothing is announced. Faults are the server's, and a client cannot mend them. */
function compareWithNone({ state }: Inspection, status: number): Judgement {
  const [exitStatus, finding] = state !== "none"
    ? [1, "not as expected: a retirement is announced"]
    : TELLING_NOTHING.has(status) || status >= 500
    ? [2, `unknown: a ${status} does not tell whether the path is being retired`]
    : [0, "as expected"];
  return { exitStatus, findings: [finding], faults: undefined };
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
function describeState({ state, deprecatedAt, retryAt, sunsetAt }: Inspection): string {
  const dates = { deprecation: deprecatedAt, "retry-after": retryAt, sunset: sunsetAt };
  const stated = Object.entries(dates)
    .flatMap(([name, at]) => at === undefined ? [] : [`${name} ${formatInstant(at)}`]);
  const name = state === "none" ? "nothing announced" : state;
  return stated.length === 0 ? name : `${name} (${stated.join(", ")})`;
}
