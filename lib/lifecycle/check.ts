/** The command that checks what URLs announce. */

import { inspect, type Inspection, RELATIONS } from "./inspect.ts";
import { formatInstant } from "./instant.ts";

const USAGE = `Usage: check [--json] URL...

Sends a HEAD and a GET to each URL; prints what they announce, and every fault.
Exits with 0 if there is none, 1 if there are some, 2 if a URL cannot be reached.`;

/** Milliseconds until a response must have begun. */
const TIME_LIMIT_MS = 10_000;

/** Fields that may differ between any two responses. */
const PER_MESSAGE = new RegExp(
  "^(?:age|alt-svc|cf-.*|connection|date|expires|keep-alive|nel|report-to|server-timing|" +
    "set-cookie|trace.*|transfer-encoding|via|x-cache.*|x-timer|.*ratelimit.*|.*-id(?:-2)?)$",
);

/**
 * Runs the command.
 *
 * @param args The words after the command's name.
 * @returns What to print, and the exit status: 0 without faults, 1 with some, 2 for wrong usage or
 *   a URL that cannot be reached.
 */
export async function runCheck(
  args: readonly string[],
): Promise<{ readonly text: string; readonly exitStatus: number }> {
  if (args.includes("--help")) return { text: USAGE, exitStatus: 0 };
  const urls = args.filter((arg) => arg !== "--json");
  const isUrl = (text: string) => /^https?:/i.test(text) && URL.canParse(text);
  if (urls.length === 0 || !urls.every(isUrl)) return { text: USAGE, exitStatus: 2 };
  const results: Awaited<ReturnType<typeof check>>[] = [];
  for (const url of urls) results.push(await check(url));
  const text = args.includes("--json")
    ? JSON.stringify(results.map(({ data }) => data), undefined, 2)
    : results.flatMap(({ lines }) => lines).join("\n");
  return { text, exitStatus: Math.max(...results.map(({ exitStatus }) => exitStatus)) };
}

async function check(
  url: string,
): Promise<{ exitStatus: number; lines: readonly string[]; data: unknown }> {
  const now = Date.now();
  try {
    const head = await send("HEAD", url);
    const get = await send("GET", url);
    const { status } = get;
    const inspection = inspect(get, { url, now });
    const ofHead = head.status === status ? inspect(head, { url, now }).faults : [];
    const faults = [
      ...inspection.faults,
      ...ofHead.filter(({ name }) => !inspection.faults.some((fault) => fault.name === name)),
      ...differencesOf(head, get, (Date.now() - now) / 1000 + 1)
        .map((message) => ({ name: "head-differs", section: "RFC 9110 §9.3.2", message })),
    ];
    const links = Object.fromEntries(inspection.links);
    const lines = [
      `${url}: ${status}, ${describe(status, inspection, now)}`,
      ...RELATIONS.flatMap((name) => links[name]?.map((target) => `  ${name}: ${target}`) ?? []),
      ...faults.map(({ section, message }) => `  fault: ${message} (${section})`),
    ];
    if (faults.length === 0) lines.push("  no faults");
    const data = { url, status, ...inspection, links, faults };
    return { exitStatus: faults.length > 0 ? 1 : 0, lines, data };
  } catch (error) { // of the connection, or its time limit
    const { message, cause } = error as Error;
    const reason = cause instanceof Error && cause.message || message;
    return { exitStatus: 2, lines: [`${url}: ${reason}`], data: { url, error: reason } };
  }
}

async function send(method: string, url: string): Promise<Response> {
  // Decoded content no longer has the length that is stated.
  const headers = { "Accept-Encoding": "identity", "User-Agent": "media-head-check" };
  const signal = AbortSignal.timeout(TIME_LIMIT_MS);
  const response = await fetch(url, { method, headers, redirect: "manual", signal });
  await response.body?.cancel();
  return response;
}

/** Describes differences that the seconds between a HEAD and a GET do not explain. */
function differencesOf(head: Response, get: Response, seconds: number): string[] {
  if (head.status !== get.status) return [`HEAD answers ${head.status}, GET ${get.status}`];
  const names = new Set([...head.headers.keys(), ...get.headers.keys()]);
  return [...names].flatMap((name) => {
    const [a, b] = [head.headers.get(name), get.headers.get(name)];
    if (a === b || PER_MESSAGE.test(name) || isCountdown(name, [a ?? "", b ?? ""], seconds)) {
      return [];
    }
    if (name === "content-length" && a === null) return []; // only the content may tell it
    return [`${name} is ${JSON.stringify(a)} on HEAD, ${JSON.stringify(b)} on GET`];
  });
}

/** Whether a field tells the seconds until something, and its values differ only in so many. */
function isCountdown(name: string, values: [string, string], seconds: number): boolean {
  const [parts, others] = values.map((value) => value.split(/(\d+)/)) as [string[], string[]];
  return /-control$|^retry-after$/.test(name) && parts.length === others.length &&
    parts.every((part, index) =>
      part === others[index] || Math.abs(+part - Number(others[index])) <= seconds
    );
}

/** Says what is announced, like "deprecated since …, removed in 7 months (…)". */
function describe(
  status: number,
  { deprecatedAt, sunsetAt, retryAt }: Inspection,
  now: number,
): string {
  const said: string[] = [];
  const relative = (at: number) => `${inWords((at - now) / 1000)} (${formatInstant(at)})`;
  if (deprecatedAt !== undefined) {
    const since = `since ${formatInstant(deprecatedAt)}`;
    said.push(`deprecated ${deprecatedAt <= now ? since : relative(deprecatedAt)}`);
  }
  if (retryAt !== undefined) said.push(`unavailable until ${formatInstant(retryAt)}`);
  if (sunsetAt !== undefined) {
    const isOverdue = sunsetAt <= now && (status < 300 || status === 304);
    said.push(`${isOverdue ? "due for removal" : "removed"} ${relative(sunsetAt)}`);
  }
  return said.join(", ") || "announces no date";
}

const UNITS = [["year", 31_557_600], ["month", 2_629_800], ["day", 86_400], [
  "hour",
  3600,
]] as const;

/** Says a length of time in its largest unit, rounded down: "in 7 months", "2 days ago". */
function inWords(seconds: number): string {
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= 2 * length) ??
    ["minute", 60] as const;
  return new Intl.RelativeTimeFormat("en").format(Math.trunc(seconds / length), unit);
}
