/**
 * Caches as RFC 9111 describes them, in each way that it leaves open, and nginx: what they may store,
 * and until when they may reuse it without asking. It is written from the RFC and from nginx, and
 * shares no code with the library.
 */

// deno-lint-ignore-file no-import-prefix -- a start would download what the import map has

import { parseDictionary } from "npm:structured-headers@2.1.0";

/** What a cache does where the RFC leaves a choice. Times are in milliseconds. */
export interface Cache {
  readonly isShared: boolean;
  /** Reads Cache-Control; otherwise Expires alone, as in HTTP/1.0. */
  readonly isModern: boolean;
  readonly knowsMustUnderstand: boolean;
  /** The field that it prefers to Cache-Control, if any: one of RFC 9213, or a surrogate's. */
  readonly target: string | undefined;
  /** Reads as nginx does. Of the rest, only `isCoarse` and `travel` hold for it. */
  readonly isNginx: boolean;
  /** Accepts seconds as a quoted string (§5.2). */
  readonly acceptsQuoted: boolean;
  /** What a lifetime that is no number means (§4.2.1). */
  readonly invalid: "stale" | "ignored";
  /** Which of several lifetimes it uses (§4.2.1). */
  readonly chosen: "first" | "last";
  /** From when it counts a lifetime. */
  readonly counts: "from receipt" | "from Date" | "by age";
  /** The time for which it serves stale, unless the response gives one. */
  readonly grace: number;
  /** Counts in whole seconds, including the last one, as nginx does. */
  readonly isCoarse: boolean;
  /** The time until it receives a response. */
  readonly travel: number;
}

/** A response, and what matters of its request. */
export interface Exchange {
  readonly method: string;
  readonly isAuthorized: boolean;
  readonly status: number;
  readonly headers: Headers;
  /** When it is sent. */
  readonly sent: number;
}

/** The lifetime that a cache assumes by itself (§4.2.2), in seconds. */
const ASSUMED = 86_400;

/** Statuses of which caches may keep a response without being told (RFC 9110 §15.1). */
const KEPT = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501];

type Said = Map<string, (string | true)[]>;

const add = (said: Said, name: string, value: string | true) =>
  said.set(name, [...said.get(name) ?? [], value]);

/** Divides a list at commas, but not within quoted strings. */
function divide(value: string): string[] {
  const members = [""];
  let isQuoted = false;
  for (let at = 0; at < value.length; at++) {
    const character = value[at] ?? "";
    if (character === '"') isQuoted = !isQuoted;
    if (!isQuoted && character === ",") members.push("");
    else members[members.length - 1] += character;
    if (isQuoted && character === "\\") members[members.length - 1] += value[++at] ?? "";
  }
  return members.map((member) => member.replaceAll(/^[\t ]+|[\t ]+$/g, ""));
}

/** Reads what the RFC's grammar accepts of Cache-Control; the rest is ignored. */
function readList(value: string): Said {
  const said: Said = new Map();
  for (const text of divide(value)) {
    const [, name, argument] =
      /^([\w!#$%&'*+.^`|~-]+)(?:=([\w!#$%&'*+.^`|~-]+|"(?:[^"\\]|\\[^])*"))?$/
        .exec(text) ?? [];
    if (name !== undefined) add(said, name.toLowerCase(), argument ?? true);
  }
  return said;
}

/** Reads a targeted field (RFC 9213 §2.1): if it is empty or malformed, it does not count. */
function readTargeted(value: string): Said | undefined {
  const said: Said = new Map();
  try {
    for (const [name, [item]] of parseDictionary(value)) {
      const text = typeof item === "string" ? JSON.stringify(item) : String(item);
      add(said, name, item === true ? true : text);
    }
  } catch {
    return undefined;
  }
  return said.size === 0 ? undefined : said;
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/**
 * Reads Surrogate-Control, whose lifetimes have the time for serving stale behind them and whose
 * directives may be for one device, or Edge-Control, whose lifetimes have units. It does not count if
 * it neither gives a lifetime nor forbids to store.
 */
function readSurrogate(value: string): Said | undefined {
  const said: Said = new Map();
  for (const text of divide(value)) {
    const [, name = "", seconds, unit = "s", stale] =
      /^(max-age|cache-maxage|stale-\w+-\w+)=(\d+)([smhd]?)(?:\+(\d+))?(?:;.*)?$/i.exec(text) ?? [];
    const age = String(Number(seconds) * (UNITS[unit] ?? 1));
    if (/^stale/i.test(name)) add(said, name.toLowerCase(), age);
    else if (name !== "") add(said, "max-age", age);
    if (stale !== undefined) add(said, "stale-while-revalidate", stale);
    if (/^(?:no-store|bypass-cache)(?:;.*)?$/i.test(text)) add(said, "no-store", true);
    if (/^must-revalidate$/i.test(text)) add(said, "must-revalidate", true);
  }
  return said.has("max-age") || said.has("no-store") ? said : undefined;
}

/** Returns what a cache goes by: the directives, and whether Expires counts beside them. */
function directivesFor(cache: Cache, headers: Headers): { said: Said; countsExpires: boolean } {
  const { target } = cache;
  const targeted = target ? headers.get(target) : null;
  if (target !== undefined && targeted !== null) {
    const isSurrogate = !target.endsWith("cache-control");
    const said = isSurrogate ? readSurrogate(targeted) : readTargeted(targeted);
    if (said) return { said, countsExpires: false };
  }
  return { said: readList(headers.get("cache-control") ?? ""), countsExpires: true };
}

/**
 * Returns until when nginx reuses what it receives at some time; 0 if it does not store it. It reads
 * X-Accel-Expires first, and looks for parts of Cache-Control.
 */
function nginxUntil({ headers }: Exchange, received: number): number {
  const [, at, own] = /^(?:@(\d+)|(\d+))$/.exec(headers.get("x-accel-expires") ?? "") ?? [];
  if (at !== undefined) return Number(at) * 1000;
  if (own !== undefined) return Number(own) === 0 ? 0 : received + Number(own) * 1000;
  const control = headers.get("cache-control") ?? "";
  const expires = Date.parse(headers.get("expires") ?? "");
  const absolute = expires < received || Number.isNaN(expires) ? 0 : expires;
  if (/no-cache|no-store|private/i.test(control)) return 0;
  const [, seconds] = /s-maxage=([^,; ]*)/i.exec(control) ?? /max-age=([^,; ]*)/i.exec(control) ??
    [];
  if (seconds === undefined) return absolute;
  return /^0*[1-9]\d*$/.test(seconds) ? received + Number(seconds) * 1000 : 0;
}

/** Returns the seconds of a directive; 0 where it is no number and that means stale. */
function secondsOf(cache: Cache, said: Said, name: string): number | undefined {
  const given = (said.get(name) ?? []).flatMap((value) => {
    const text = cache.acceptsQuoted ? String(value).replace(/^"(.*)"$/, "$1") : String(value);
    if (/^\d+(?:\.\d+)?$/.test(text)) return [Number(text)];
    return cache.invalid === "stale" ? [0] : [];
  });
  return given.at(cache.chosen === "first" ? 0 : -1);
}

const isPlain = (said: Said, name: string) => said.get(name)?.includes(true) ?? false;

/** Whether a cache may store a response (§3, and §3.5 for a request with Authorization). */
export function mayStore(cache: Cache, exchange: Exchange): boolean {
  const { method, isAuthorized, status, headers, sent } = exchange;
  if (cache.isNginx) return /^(?:GET|HEAD)$/.test(method) && nginxUntil(exchange, sent) > sent;
  const { said, countsExpires } = directivesFor(cache, headers);
  const { isShared, isModern } = cache;
  const hasExpires = headers.has("expires") && (countsExpires || !isModern);
  if (!isModern) {
    return method !== "PUT" && !(isShared && isAuthorized) &&
      (hasExpires || method !== "POST" && KEPT.includes(status));
  }
  const [maxAge, sharedAge] = ["max-age", "s-maxage"].map((name) => secondsOf(cache, said, name));
  const hasLifetime = hasExpires || maxAge !== undefined || isShared && sharedAge !== undefined;
  // Of a POST, only with explicit freshness (RFC 9110 §9.3.3), and of a PUT never (§9.3.4).
  if (method === "PUT" || method === "POST" && !hasLifetime) return false;
  const ignoresNoStore = cache.knowsMustUnderstand && said.has("must-understand");
  if (said.has("no-store") && !ignoresNoStore) return false;
  if (isShared && isPlain(said, "private")) return false;
  const mayShare = isPlain(said, "public") || isPlain(said, "must-revalidate") ||
    sharedAge !== undefined;
  if (isShared && isAuthorized && !mayShare) return false;
  return hasLifetime || KEPT.includes(status) || isPlain(said, "public") ||
    !isShared && isPlain(said, "private");
}

/** Returns for how many seconds a stored response is fresh (§4.2.1, §4.2.2). */
function lifetimeOf(cache: Cache, { headers, sent }: Exchange): number {
  const { said, countsExpires } = directivesFor(cache, headers);
  const expires = headers.get("expires");
  const date = Date.parse(headers.get("date") ?? "") || sent;
  const byExpires = expires === null ? undefined : ((Date.parse(expires) || 0) - date) / 1000;
  // An HTTP/1.0 cache assumes a lifetime without Expires, and nothing can prevent that.
  if (!cache.isModern) return byExpires ?? 0;
  const sharedAge = cache.isShared ? secondsOf(cache, said, "s-maxage") : undefined;
  const age = sharedAge ?? secondsOf(cache, said, "max-age");
  return age ?? (countsExpires ? byExpires : undefined) ?? ASSUMED;
}

/** Returns for how many seconds a cache serves a stale response (§4.2.4, RFC 5861). */
function staleTimeOf(cache: Cache, { headers }: Exchange): number {
  if (!cache.isModern) return 0;
  const { said } = directivesFor(cache, headers);
  const names = ["must-revalidate", ...cache.isShared ? ["proxy-revalidate", "s-maxage"] : []];
  const limits = { ...cache, invalid: "ignored" } as const;
  const whileAsking = secondsOf(limits, said, "stale-while-revalidate");
  // Varnish serves stale for its grace in any case, unless the response gives another.
  if (cache.grace > 0) return whileAsking ?? cache.grace / 1000;
  if (names.some((name) => said.has(name))) return 0;
  return Math.max(whileAsking ?? 0, secondsOf(limits, said, "stale-if-error") ?? 0);
}

/** Returns when a cache stops reusing a response without asking; 0 if it never does. */
export function reusedUntil(cache: Cache, exchange: Exchange): number {
  const { headers, sent } = exchange;
  if (!mayStore(cache, exchange)) return 0;
  if (cache.isNginx) return inWholeSeconds(cache, nginxUntil(exchange, sent + cache.travel));
  if (cache.isModern && isPlain(directivesFor(cache, headers).said, "no-cache")) return 0;
  const received = sent + cache.travel;
  const date = Date.parse(headers.get("date") ?? "") || sent;
  const start = {
    "from receipt": received,
    "from Date": date,
    "by age": received - Math.max(0, received - date),
  }[cache.counts];
  const lifetime = Math.max(0, lifetimeOf(cache, exchange)) * 1000;
  const stale = staleTimeOf(cache, exchange) * 1000;
  if (lifetime + stale === 0) return 0;
  const end = start + lifetime;
  return inWholeSeconds(cache, end) + stale;
}

const inWholeSeconds = ({ isCoarse }: Cache, end: number) =>
  isCoarse ? Math.floor(end / 1000) * 1000 + 999 : end;

/**
 * Returns when a cache stops reusing a stored response that a 304 has updated (§4.3.4); 0 if it never
 * reuses it.
 */
export function reusedAfterUpdate(cache: Cache, stored: Exchange, update: Exchange): number {
  if (!mayStore(cache, stored)) return 0;
  const { sent } = update;
  const headers = new Headers(stored.headers);
  for (const [name, value] of update.headers) headers.set(name, value);
  if (!cache.isNginx) return reusedUntil(cache, { ...stored, headers, sent });
  // nginx goes by what it has stored unless the 304 gives a time.
  const received = sent + cache.travel;
  const own = nginxUntil(update, received);
  return inWholeSeconds(cache, own || nginxUntil(stored, received));
}

/** Whether a cache that is cut off may serve a response however stale it is (§4.2.4). */
export function mayServeForever(cache: Cache, exchange: Exchange): boolean {
  const { said } = directivesFor(cache, exchange.headers);
  const names = ["must-revalidate", "no-cache"];
  const forShared = cache.isShared ? ["proxy-revalidate", "s-maxage"] : [];
  return cache.isModern && !cache.isNginx && mayStore(cache, exchange) &&
    ![...names, ...forShared].some((name) => said.has(name));
}
