/**
 * The gate's probe: whether calls through the public URL reach the servers that count them. A cache in
 * front hides callers, and no response field prevents that without breaking playback. A probe can find
 * a cache, but never prove that there is none.
 */

import { formatInstant } from "../http/timestamp.ts";
import { momentAt, type Phase } from "../lifecycle/policy.ts";
import { dayOf } from "./day.ts";
import type { Ledger } from "./ledger.ts";
import { MINUTE_MS, type RoutePolicies } from "./records.ts";
import { OTHER_PROBES, PROBE, PROBE_FIELD } from "./client_names.ts";
import { waitForReports } from "./report.ts";
import type { HiddenCalls, ProbeResult } from "./verdict.ts";

export interface ProbeOptions {
  /** The public URL, for messages. */
  readonly url: string;
  /** The routes to probe. */
  readonly routes: readonly string[];
  /** The policies that the servers announce. */
  readonly policies: RoutePolicies;
  /** Returns a URL under a route that is served in a phase; `undefined` if there is none. */
  readonly urlOf: (route: string, phase: Phase) => Promise<string | undefined>;
  /** Fields to send, e.g. for authentication. */
  readonly fields?: Headers | undefined;
  /** How to have the routes not probed, for messages. */
  readonly howNotToProbe: string;
  /** Called with the ids of the sessions whose reports are awaited. */
  readonly onWait: (sessions: readonly string[]) => void;
}

/** Milliseconds until a response must have ended. */
const TIMEOUT_MS = 10_000;

/** The requests after the first GET. Most caches answer the third GET at the latest. */
const LATER = ["GET", "GET", "HEAD", "HEAD"] as const;

/** A route that is probed. */
interface Target {
  readonly route: string;
  readonly url: string;
}

/**
 * Sends one GET to each route, under a random name in a field of its own. Where that was counted, it
 * sends two GETs more and two HEADs. Where it was not, more requests would be counted as calls.
 *
 * @returns A function to call once every session has reported after the requests.
 */
export async function probe(
  ledger: Pick<Ledger, "usage" | "sessions" | "time">,
  { url, routes, policies, urlOf, fields, howNotToProbe, onWait }: ProbeOptions,
): Promise<() => Promise<ProbeResult>> {
  const name = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
  const headers = new Headers(fields);
  headers.set("User-Agent", "media-head-gate");
  headers.set(PROBE_FIELD, name);
  const wayOut = `To leave the probe out, ${howNotToProbe}`;
  const { now } = await ledger.time();
  const hidden: HiddenCalls[] = [];
  const targets: Target[] = [];
  for (const route of routes) {
    const policy = policies[route];
    if (policy === undefined) continue;
    const { phase, until } = momentAt(policy, now);
    const target = await urlOf(route, phase);
    if (target === undefined) continue;
    if (phase === "brownout" || until - now < MINUTE_MS) {
      const what = phase === "brownout" ? "in a brownout" : "just before its phase changes";
      const reason = `no response may be cached ${what}, so probe it after ${formatInstant(until)}`;
      hidden.push({ route, reason });
      continue;
    }
    targets.push({ route, url: target });
  }

  const counted: Target[] = [];
  const first = await Promise.all(targets.map(({ url }) => send("GET", url, headers)));
  if (targets.length > 0) await waitForReports(ledger, await ledger.time(), onWait);
  const counts = await countsOf(ledger, name, now);
  for (const [at, target] of targets.entries()) {
    const { route } = target;
    if (counts.of(route, "GET") > 0) counted.push(target);
    else {
      const isFull = counts.isFull(route);
      hidden.push({ route, reason: isFull ? TOO_MANY : `${url} ${first[at]}. ${wayOut}` });
    }
  }

  const faults = new Map<string, string>();
  await Promise.all(counted.map(async (target) => {
    for (const method of LATER) {
      const answer = await send(method, target.url, headers);
      if (answer.startsWith(NO_ANSWER)) faults.set(target.route, answer);
    }
  }));
  return async () => {
    const { of } = await countsOf(ledger, name, now);
    const isHidden = ({ route }: Target) => of(route, "GET") < 3 || of(route, "HEAD") < 2;
    for (const { route } of counted.filter(isHidden)) {
      const fault = faults.get(route);
      const reason = fault === undefined
        ? `a cache in front of ${url} answers for the servers: exclude this path from it`
        : `${url} ${fault}. ${wayOut}`;
      hidden.push({ route, reason });
    }
    const probed = counted.filter((target) => !isHidden(target)).map(({ route }) => route);
    return { url, probed, hidden };
  };
}

const NO_ANSWER = "does not answer";

const TOO_MANY = "too many probes were counted today, so this one has no line of its own: probe " +
  "again tomorrow (UTC)";

/** Sends a request, and says what its URL does, in case that no server counted it. */
async function send(method: "GET" | "HEAD", url: string, headers: Headers): Promise<string> {
  try {
    const response = await fetch(url, {
      method,
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    for await (const _ of response.body ?? []); // a cache may keep only what was read to its end
    return meaningOf(response);
  } catch (error) {
    const { message, cause } = error as Error;
    return `${NO_ANSWER} (${cause instanceof Error && cause.message || message})`;
  }
}

function meaningOf({ status, headers }: Response): string {
  if (status >= 300 && status < 400) return `redirects to ${headers.get("location")} (${status})`;
  if (status === 401 || status === 403) return `asks for credentials (${status})`;
  if (status === 429) return `limits the rate of requests (${status})`;
  return `answers (${status}), but no server counted the request under the probe's name: a cache ` +
    `answered, it is another deployment, or something removes the field ${PROBE_FIELD}`;
}

/** Counts what is on record of a probe, since an instant. */
async function countsOf(ledger: Pick<Ledger, "usage">, name: string, since: number) {
  const counts = new Map<string, number>();
  const full = new Set<string>();
  for await (const { route, method, client, calls, last } of ledger.usage(dayOf(since))) {
    const key = `${route} ${method}`;
    if (client === PROBE + name) counts.set(key, (counts.get(key) ?? 0) + calls);
    if (client === OTHER_PROBES && last >= since) full.add(route);
  }
  return {
    of: (route: string, method: string) => counts.get(`${route} ${method}`) ?? 0,
    isFull: (route: string) => full.has(route),
  };
}
