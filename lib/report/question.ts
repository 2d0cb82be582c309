/**
 * The gate's question: whether calls through the public URL reach the servers that count them. A
 * cache in front hides callers, and no response field prevents that without breaking playback.
 */

import { formatInstant, momentAt } from "../lifecycle/policy.ts";
import type { Kind } from "../storage/item.ts";
import { dayOf } from "../storage/ledger/day.ts";
import type { RoutePolicies } from "../storage/ledger/records.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import { newToken } from "../storage/token.ts";
import { type Route, withToken } from "../server/route.ts";
import { QUESTIONERS } from "../usage/client_names.ts";
import type { HiddenCalls } from "./verdict.ts";

/** Milliseconds until the public URL must have answered. */
const TIMEOUT_MS = 10_000;

interface Question {
  /** The public URL. */
  readonly url: string;
  readonly routes: readonly Route[];
  /** What the servers announce. */
  readonly policies: RoutePolicies;
  /** Milliseconds since the epoch, by the ledger's clock. */
  readonly now: number;
}

/**
 * Sends two HEADs to each deprecated route, under two names, because a cache answers the second one
 * at the latest. A route without a published item of its kind is not asked.
 *
 * @returns A function to call once every server has reported after the answers. It returns the routes
 *   whose calls may be hidden.
 */
export async function ask(
  { catalogue, ledger }: Pick<MediaStorage, "catalogue" | "ledger">,
  { url, routes, policies, now }: Question,
): Promise<() => Promise<HiddenCalls[]>> {
  /** Counts the calls on record by route and name, ours among them. */
  const count = async () => {
    const counts = new Map<string, number>();
    for await (const { route, client, calls } of ledger.usage(dayOf(now))) {
      const key = `${route} ${client}`;
      counts.set(key, (counts.get(key) ?? 0) + calls);
    }
    return counts;
  };
  const before = await count();
  const hidden: HiddenCalls[] = [];
  /** The Cache-Control of each route that was asked. */
  const asked = new Map<string, string>();
  for (const { pattern: { pathname: route }, serves, successor } of routes) {
    const policy = policies[route];
    if (successor === undefined || policy === undefined) continue;
    const { phase, until } = momentAt(policy, now);
    const token = phase === "removed" // when any token counts
      ? newToken()
      : await catalogue.anyPublished(serves as readonly Kind[]);
    if (token === undefined) continue;
    if (phase === "brownout") {
      const end = formatInstant(until);
      hidden.push({ route, reason: `no response may be cached in a brownout: ask after ${end}` });
      continue;
    }
    try {
      asked.set(route, await send(url + withToken(route, token)));
    } catch (error) {
      const { message, cause } = error as Error;
      const why = cause instanceof Error && cause.message || message;
      const reason =
        `${url} cannot be asked (${why}): run this where it can be reached, ${WAY_OUT}`;
      hidden.push({ route, reason });
    }
  }
  return async () => {
    const after = await count();
    const isCounted = (key: string) => (after.get(key) ?? 0) > (before.get(key) ?? 0);
    for (const [route, caching] of asked) {
      if (!QUESTIONERS.every((name) => isCounted(`${route} app ${name}`))) {
        const reason = `a cache in front of ${url} answers for the servers, or that address is ` +
          "another deployment: exclude /audio/ and /video/ from it";
        hidden.push({ route, reason });
      } else if (!/\bmax-age=[1-9]/.test(caching)) {
        const reason =
          `its responses may not be cached now ("Cache-Control: ${caching}"), so a cache ` +
          `in front would not show: ask later, ${WAY_OUT}`;
        hidden.push({ route, reason });
      }
    }
    return hidden;
  };
}

const WAY_OUT = "or set PUBLIC_URL= for this command, which leaves the question out";

/** Sends the two HEADs, and returns the Cache-Control of the second response. */
async function send(url: string): Promise<string> {
  let caching: string | null = null;
  for (const name of QUESTIONERS) {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const request = { method: "HEAD", headers: { "User-Agent": name }, signal } as const;
    caching = (await fetch(url, { ...request, redirect: "manual" })).headers.get("cache-control");
  }
  return caching ?? "";
}
