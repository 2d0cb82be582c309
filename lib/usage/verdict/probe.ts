/**
 * The gate's probe. It checks whether calls through the public URL reach the servers that count
 * them: a cache in front hides callers, and no response field prevents that without breaking
 * playback. A probe can find a cache, but never prove that there is none.
 */

import { momentAt, type Phase, type RoutePolicies } from "../../lifecycle/policy.ts";
import { OTHER_PROBES, PROBE_FIELD, PROBE_PREFIX } from "../record/client_names.ts";
import { dayOf } from "../../http/timestamp.ts";
import type { Ledger } from "../record/ledger.ts";
import { HEARTBEAT_INTERVAL_MS } from "../record/heartbeat_schedule.ts";
import { lagOf, SHORTEST_GAP_MS } from "../record/records.ts";
import type { Answer, HiddenCalls } from "./hidden_calls.ts";

export interface ProbeOptions {
  readonly url: string;
  readonly routes: readonly string[];
  /** The policies that the servers announce. */
  readonly policies: RoutePolicies;
  /** Returns a URL under a route that is served in a phase, if there is one. */
  readonly urlOf: (route: string, phase: Phase) => Promise<string | undefined>;
  /** Fields to send, e.g. for authentication. */
  readonly fields?: Headers | undefined;
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

/** How long a running process may take to record what it has counted, in milliseconds. */
const RECORDING_LIMIT_MS = 2 * HEARTBEAT_INTERVAL_MS;

/** Milliseconds between two looks at the ledger. */
const POLL_INTERVAL_MS = 200;

/** How much of a phase has to be left for a probe of it, in milliseconds. */
const LEAST_LEFT_MS = 60_000;

/** The methods of requests after the first GET. Most caches answer the third GET at the latest. */
const LATER_METHODS: Methods = ["GET", "GET", "HEAD", "HEAD"];

type Method = "GET" | "HEAD";
type Methods = readonly [Method, ...Method[]];

/**
 * Sends a GET to each route, under a random name in the probe's field. To each route whose GET was
 * counted under that name, sends two more GETs and two HEADs. Elsewhere, more requests could be
 * counted as calls. If no route can be probed, requests the URL itself once: where servers sleep
 * until they are asked, one starts. Waits until what was answered is on record, each time for two
 * heartbeats at most.
 */
export async function probe(
  ledger: Pick<Ledger, "usage" | "time">,
  { url, routes, policies, urlOf, fields }: ProbeOptions,
): Promise<ProbeResult> {
  const name = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
  const headers = new Headers(fields);
  headers.set("User-Agent", "media-head-gate");
  headers.set(PROBE_FIELD, name);
  const { now } = await ledger.time();
  const hidden: HiddenCalls[] = [];

  const targets = new Map<string, string>();
  for (const route of routes) {
    const policy = policies[route];
    if (policy === undefined) continue;
    const { phase, until } = momentAt(policy, now);
    const target = await urlOf(route, phase);
    if (target === undefined) continue;
    if (phase === "brownout") hidden.push({ route, reason: "brownout", until });
    else if (until - now < LEAST_LEFT_MS) hidden.push({ route, reason: "phase ends", until });
    else targets.set(route, target);
  }

  if (targets.size === 0) await send("HEAD", url, headers);
  const first = await sendAll(["GET"], targets, headers);
  const counted = (isDone: (counts: Counts) => boolean) =>
    countsWithin(ledger, { name, since: now, isDone });
  const counts = await counted(({ of }) => answered(first).every((route) => of(route, "GET") > 0));
  for (const [route, answer] of first) {
    if (counts.of(route, "GET") > 0) continue;
    targets.delete(route);
    const why = counts.isFull(route) ? { reason: "too many probes" } as const : answer;
    hidden.push({ route, ...why });
  }
  const later = await sendAll(LATER_METHODS, targets, headers);
  const isWhole = ({ of }: Counts, route: string) =>
    of(route, "GET") >= 3 && of(route, "HEAD") >= 2;
  const all = await counted((counts) => answered(later).every((route) => isWhole(counts, route)));
  for (const [route, answer] of later) {
    if (isWhole(all, route)) continue;
    targets.delete(route);
    const why = isRefusal(answer) ? answer : { reason: "cached" } as const;
    hidden.push({ route, ...why });
  }
  return { url, probed: [...targets.keys()], hidden };
}

/** Returns whether an answer explains, without a cache, why the request was not counted. */
function isRefusal({ reason }: Answer): boolean {
  return reason === "credentials" || reason === "rate limit" || reason === "no answer";
}

/** Returns the routes whose requests were answered: only those are waited for. */
function answered(answers: ReadonlyMap<string, Answer>): string[] {
  return [...answers].filter(([, { reason }]) => reason !== "no answer").map(([route]) => route);
}

/** Sends requests to each target in order. Returns the last answer, by route. */
async function sendAll(
  [method, ...others]: Methods,
  targets: ReadonlyMap<string, string>,
  headers: Headers,
): Promise<Map<string, Answer>> {
  const answers = await Promise.all([...targets].map(async ([route, url]) => {
    let answer = await send(method, url, headers);
    for (const other of others) {
      if (isRefusal(answer)) break;
      answer = await send(other, url, headers);
    }
    return [route, answer] as const;
  }));
  return new Map(answers);
}

async function send(method: Method, url: string, headers: Headers): Promise<Answer> {
  try {
    const response = await fetch(url, {
      method,
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    for await (const _ of response.body ?? []); // a cache may store only what was read to its end
    return meaningOf(response);
  } catch (error) {
    const { message, cause } = error as Error;
    const text = cause instanceof Error && cause.message || message;
    return { reason: "no answer", message: text, isUntrusted: UNTRUSTED.test(text) };
  }
}

/** Matches what Deno and Node say of a certificate whose issuer they do not know. */
const UNTRUSTED = /UnknownIssuer|self-signed certificate|unable to (?:get|verify)/;

/** The statuses that redirect (RFC 9110 §15.4). */
const REDIRECTS = [301, 302, 303, 307, 308];

function meaningOf({ status, headers }: Response): Answer {
  const location = headers.get("location");
  if (REDIRECTS.includes(status) && location !== null) {
    return { reason: "redirect", status, location };
  }
  if (status === 401 || status === 403) return { reason: "credentials", status };
  if (status === 429) return { reason: "rate limit", status };
  return { reason: "not counted", status };
}

/** The requests of a probe that are on record. */
interface Counts {
  of(route: string, method: string): number;
  /** Returns whether other probes may have used up the limit of names. */
  isFull(route: string): boolean;
}

/** Counts the requests of a probe that are on record, once that is enough, or after two heartbeats. */
async function countsWithin(
  ledger: Pick<Ledger, "usage" | "time">,
  { name, since, isDone }: {
    readonly name: string;
    readonly since: number;
    readonly isDone: (counts: Counts) => boolean;
  },
): Promise<Counts> {
  const lag = lagOf(await ledger.time());
  const limit = lag < SHORTEST_GAP_MS ? lag + RECORDING_LIMIT_MS : 0;
  const deadline = performance.now() + limit;
  while (true) {
    const counts = await countsOf(ledger, name, since);
    if (isDone(counts) || performance.now() >= deadline) return counts;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

/** Counts the requests of a probe that are on record since an instant. */
async function countsOf(
  ledger: Pick<Ledger, "usage">,
  name: string,
  since: number,
): Promise<Counts> {
  const counts = new Map<string, number>();
  const full = new Set<string>();
  for await (const { route, method, client, calls, last } of ledger.usage(dayOf(since))) {
    const key = `${route} ${method}`;
    if (client === PROBE_PREFIX + name) counts.set(key, (counts.get(key) ?? 0) + calls);
    if (client === OTHER_PROBES && last >= since) full.add(route);
  }
  return {
    of: (route, method) => counts.get(`${route} ${method}`) ?? 0,
    isFull: (route) => full.has(route),
  };
}
