/**
 * The gate's probe. It checks whether calls through the public URL reach the servers that count
 * them: a cache in front hides callers, and no response field prevents that without breaking
 * playback. A probe can find a cache, but never prove that there is none.
 */

import { formatInstant } from "../../http/timestamp.ts";
import { momentAt, type Phase, type RoutePolicies } from "../../lifecycle/policy.ts";
import { dayOf } from "../record/day.ts";
import type { Ledger } from "../record/ledger.ts";
import { MINUTE_MS, type Session } from "../record/records.ts";
import { OTHER_PROBES, PROBE_FIELD, PROBE_PREFIX } from "../record/client_names.ts";
import type { HiddenCalls } from "./verdict.ts";
import { waitForReports } from "./waiting.ts";

export interface ProbeOptions {
  /** The public URL, for messages. */
  readonly url: string;
  /** The routes to probe. */
  readonly routes: readonly string[];
  /** The policies that the servers announce. */
  readonly policies: RoutePolicies;
  /** Returns a URL under a route that is served in a phase, if there is one. */
  readonly urlOf: (route: string, phase: Phase) => Promise<string | undefined>;
  /** Fields to send, e.g. for authentication. */
  readonly fields?: Headers | undefined;
  /** The instruction to leave the probe out, for messages. */
  readonly howNotToProbe: string;
  /** Called with the sessions whose reports are awaited. */
  readonly onWait: (sessions: readonly Session[]) => void;
}

/** The findings of a probe. */
export interface ProbeResult {
  /** The URL that the probe went through. */
  readonly url: string;
  /** The routes for which every request was counted. */
  readonly probed: readonly string[];
  readonly hidden: readonly HiddenCalls[];
}

/** The limit on a request and its response, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** The methods of requests after the first GET. Most caches answer the third GET at the latest. */
const LATER_METHODS = ["GET", "GET", "HEAD", "HEAD"] as const;

/**
 * Sends a GET to each route, under a random name in the probe's field. To each route whose GET was
 * counted under that name, sends two more GETs and two HEADs. Elsewhere, more requests could be
 * counted as calls.
 *
 * @returns A function that returns the result. Call it once every session has reported after the
 *   requests.
 */
export async function probe(
  ledger: Pick<Ledger, "usage" | "sessions" | "time">,
  { url, routes, policies, urlOf, fields, howNotToProbe, onWait }: ProbeOptions,
): Promise<() => Promise<ProbeResult>> {
  const name = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
  const headers = new Headers(fields);
  headers.set("User-Agent", "media-head-gate");
  headers.set(PROBE_FIELD, name);
  const { now } = await ledger.time();
  const hidden: HiddenCalls[] = [];
  const hide = (route: string, reason: string) => hidden.push({ route, reason });
  const hideAnswer = (route: string, { text }: Answer) =>
    hide(route, `${url} ${text}. To leave the probe out, ${howNotToProbe}`);

  const targets = new Map<string, string>();
  for (const route of routes) {
    const policy = policies[route];
    if (policy === undefined) continue;
    const { phase, until } = momentAt(policy, now);
    const target = await urlOf(route, phase);
    if (target === undefined) continue;
    if (phase === "brownout" || until - now < MINUTE_MS) {
      const what = phase === "brownout" ? "in a brownout" : "just before its phase changes";
      hide(route, `no response may be cached ${what}, so probe it after ${formatInstant(until)}`);
    } else {
      targets.set(route, target);
    }
  }

  const first = await sendAll(["GET"], targets, headers);
  if (targets.size > 0) await waitForReports(ledger, await ledger.time(), onWait);
  const counts = await countsOf(ledger, name, now);
  for (const [route, answer] of first) {
    if (counts.of(route, "GET") > 0) continue;
    targets.delete(route);
    if (counts.isFull(route)) hide(route, TOO_MANY);
    else hideAnswer(route, answer);
  }
  const cached = `a cache in front of ${url} answers for the servers: exclude this path from it`;
  const later = await sendAll(LATER_METHODS, targets, headers);
  return async () => {
    const { of } = await countsOf(ledger, name, now);
    for (const [route, answer] of later) {
      if (of(route, "GET") >= 3 && of(route, "HEAD") >= 2) continue;
      targets.delete(route);
      if (isRefusal(answer)) hideAnswer(route, answer);
      else hide(route, cached);
    }
    return { url, probed: [...targets.keys()], hidden };
  };
}

/** The answer to a request. */
interface Answer {
  /** The status; `undefined` if there was no response. */
  readonly status?: number;
  /** The explanation if no server counted the request. */
  readonly text: string;
}

/** Returns whether an answer explains, without a cache, why the request was not counted. */
function isRefusal({ status }: Answer): boolean {
  return status === undefined || [401, 403, 429].includes(status);
}

const TOO_MANY = "too many probes were counted today, so this one has no line of its own: probe " +
  "again tomorrow (UTC)";

/** Sends requests to each target in order. Returns the last answer, by route. */
async function sendAll(
  methods: readonly ("GET" | "HEAD")[],
  targets: ReadonlyMap<string, string>,
  headers: Headers,
): Promise<Map<string, Answer>> {
  const answers = await Promise.all([...targets].map(async ([route, url]) => {
    let answer: Answer = { text: "" };
    for (const method of methods) {
      answer = await send(method, url, headers);
      if (isRefusal(answer)) break;
    }
    return [route, answer] as const;
  }));
  return new Map(answers);
}

async function send(method: "GET" | "HEAD", url: string, headers: Headers): Promise<Answer> {
  try {
    const response = await fetch(url, {
      method,
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    for await (const _ of response.body ?? []); // a cache may store only what was read to its end
    return { status: response.status, text: meaningOf(response) };
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error && cause.message || message;
    return { text: `does not answer (${reason})${UNTRUSTED.test(reason) ? HOW_TO_TRUST : ""}` };
  }
}

/** Matches what Deno and Node say of a certificate whose issuer they do not know. */
const UNTRUSTED = /UnknownIssuer|self-signed certificate|unable to (?:get|verify)/;

const HOW_TO_TRUST =
  ". If you trust its certificate, name the file of its issuer's certificate in " +
  ("Deno" in globalThis ? "DENO_CERT" : "NODE_EXTRA_CA_CERTS");

function meaningOf({ status, headers }: Response): string {
  if (status >= 300 && status < 400) return `redirects to ${headers.get("location")} (${status})`;
  if (status === 401 || status === 403) return `asks for credentials (${status})`;
  if (status === 429) return `limits the rate of requests (${status})`;
  return `answers (${status}), but no server counted the request under the probe's name: a cache ` +
    `answered, it is another deployment, or something removes the field ${PROBE_FIELD}`;
}

/** Counts the requests of a probe that are on record since an instant. */
async function countsOf(ledger: Pick<Ledger, "usage">, name: string, since: number) {
  const counts = new Map<string, number>();
  const full = new Set<string>();
  for await (const { route, method, client, calls, last } of ledger.usage(dayOf(since))) {
    const key = `${route} ${method}`;
    if (client === PROBE_PREFIX + name) counts.set(key, (counts.get(key) ?? 0) + calls);
    if (client === OTHER_PROBES && last >= since) full.add(route);
  }
  return {
    of: (route: string, method: string) => counts.get(`${route} ${method}`) ?? 0,
    isFull: (route: string) => full.has(route),
  };
}
