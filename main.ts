/**
 * media-head: serves the deprecated HEAD /audio/{token} and HEAD /video/{token} until they are
 * removed. A HEAD says exactly what the GET would have said, with four exceptions:
 * - A HEAD ignores `Range`, which HTTP defines for GET only.
 * - What is counted by the clock may differ: `Date`, and `max-age` shortly before a change of phase.
 * - A GET meets content that was lost or replaced behind the server's back at once, or within five
 *   seconds if it is short. A HEAD may take five seconds to show it for a folder, or a minute for a
 *   bucket, unless a GET has met it before. (In a folder, only another length is noticed.)
 * - Deno answers a request to upgrade that has `Content-Length` with a bare 400. Java's HttpClient
 *   sends such a HEAD, but no such GET.
 *
 * This file has every route, and every status that this server decides. `answer()` and the functions
 * that it calls decide them in order of precedence, and `fail()` decides those of what was thrown.
 * `respond()` makes every response with the one `new Response`, and counts calls in memory; the
 * wrappers around the handler may send one again, which they count, too. No response waits for a
 * record. HEAD and GET are told apart at the places marked (1), (2) and (3), and `prepareResponses()`
 * reuses each method's responses for that method only. The method is also logged and counted, and
 * passed to `FreshnessLimits`, which treats both alike. `tests/server/request_table_test.ts` sends
 * every case as both. The start, the wrappers, and the permissions are explained at `assemble()`.
 */

import "./lib/server/runtime.ts"; // first: ends the process if this release of Deno is too old
import { representDocument } from "./lib/documents/documents.ts";
import { exitStatusOfCrash } from "./lib/errors/exit_status.ts";
import { StorageError } from "./lib/errors/storage_error.ts";
import { CORS_FIELDS } from "./lib/http/cors.ts";
import { isHost } from "./lib/http/host.ts";
import { type Field, NO_STORE, NO_TRANSFORM, textOutcome } from "./lib/http/outcome.ts";
import { evaluatePreconditions, requestedRange } from "./lib/http/preconditions.ts";
import { quoted } from "./lib/input/printable.ts";
import { announcementFields } from "./lib/lifecycle/announcement.ts";
import { isBreaking } from "./lib/lifecycle/breaking.ts";
import {
  brownoutStatusAt,
  type Moment,
  momentAt,
  nextChange,
  type Policy,
} from "./lib/lifecycle/policy.ts";
import {
  brownoutRefusal,
  type Refusal,
  removalRedirect,
  removalRefusal,
} from "./lib/lifecycle/refusal.ts";
import { FaultLog, lineLog, type Log } from "./lib/log/log.ts";
import { PhaseLog } from "./lib/log/phases.ts";
import { type Config, readConfig } from "./lib/server/config.ts";
import { readVariables, warnOfVariables } from "./lib/server/environment.ts";
import { FreshnessLimits } from "./lib/server/freshness_limits.ts";
import type { Handler, HandlerOptions, MarkedOutcome } from "./lib/server/handler.ts";
import { closeWhenStopping } from "./lib/server/listener.ts";
import { type MarkedResponse, prepareResponses } from "./lib/server/prepared_responses.ts";
import { problem, PROBLEM_TYPES_PAGE } from "./lib/server/problems.ts";
import { type App, requireListenAccess, runServer } from "./lib/server/process.ts";
import { lengthFields, type Representation, representItem } from "./lib/server/representation.ts";
import {
  deprecatedPaths,
  METHODS,
  normalizeUrl,
  pathOf,
  type Route,
  withToken,
} from "./lib/server/route.ts";
import { logStart, thisProcess } from "./lib/server/start_line.ts";
import { requireStorageAccess } from "./lib/server/storage_access.ts";
import { unlikelyDates } from "./lib/server/unlikely_dates.ts";
import { VERSION } from "./lib/server/version.ts";
import { CachedStorage } from "./lib/storage/cache.ts";
import { type OpenStorage, openStorage } from "./lib/storage/engines/open_storage.ts";
import { ReplacedError, UnpublishedError } from "./lib/storage/errors.ts";
import { PERIOD_MS } from "./lib/storage/generations.ts";
import type { Kind, LookupResult } from "./lib/storage/item.ts";
import { parseToken, type Token } from "./lib/storage/token.ts";
import { ledgerPlaceOf, openLedger } from "./lib/usage/record/open_ledger.ts";
import { Recorder, type RecorderOptions } from "./lib/usage/record/recorder.ts";

const MEDIA = "/media/:token"; // replaces the deprecated paths

/**
 * Every route. Each accepts GET, HEAD and OPTIONS. Those with a successor are deprecated: delete
 * their lines once nobody calls the old paths.
 */
export const ROUTES: readonly Route[] = [
  { pattern: new URLPattern({ pathname: "/audio/:token" }), serves: ["audio"], successor: MEDIA },
  { pattern: new URLPattern({ pathname: "/video/:token" }), serves: ["video"], successor: MEDIA },
  { pattern: new URLPattern({ pathname: MEDIA }), serves: ["audio", "video"] },
  { pattern: new URLPattern({ pathname: "/deprecation" }), serves: "notice" },
  { pattern: new URLPattern({ pathname: "/openapi.json" }), serves: "description" },
  { pattern: new URLPattern({ pathname: "/healthz" }), serves: "health" },
];

const ALLOWED = METHODS.join(", ");
const ALLOW: Field = ["Allow", ALLOWED];
const NO_CONTENT: Field = ["Content-Length", "0"];
/**
 * The request fields that a page may set in addition to the CORS-safelisted ones: all of them. The
 * wildcard never covers Authorization (Fetch standard §2.2.2). Browsers that do not know the
 * wildcard need those that have a meaning here by name.
 */
const REQUEST_FIELDS = "*, Authorization, " +
  "If-Match, If-Modified-Since, If-None-Match, If-Range, If-Unmodified-Since, Range";
/** The answer to a preflight, which browsers may keep for a day. */
const PREFLIGHT_FIELDS: readonly Field[] = [
  ["Access-Control-Allow-Methods", "GET, HEAD"],
  ["Access-Control-Allow-Headers", REQUEST_FIELDS],
  ["Access-Control-Max-Age", "86400"],
];
/** Lets pages that isolate themselves with COEP embed the media (Fetch standard §3.7). */
const EMBEDDABLE: Field = ["Cross-Origin-Resource-Policy", "cross-origin"];
/** Keeps deprecated routes out of the CDN of Deno Deploy, which would hide calls (RFC 9213). */
const CDN_NO_STORE: Field = ["Deno-CDN-Cache-Control", "no-store"];
/** The seconds after which a cached fault has expired. */
const RETRY_AFTER: Field = ["Retry-After", `${PERIOD_MS / 1_000}`];
const UNPUBLISHED = "This item was permanently unpublished";
const REPLACED = "The stored content is not what was published";
const UNAVAILABLE = "Storage is unavailable; retry later";

/** A request as it came. */
interface Received {
  /** The options of the handler that received the request. */
  readonly options: HandlerOptions;
  /** The limits on caching that responses have in common. */
  readonly freshness: FreshnessLimits;
  readonly request: Request;
  /**
   * When the request arrived, in milliseconds since the epoch. The phase is the one at that time,
   * however long the response takes.
   */
  readonly now: number;
}

/** A request whose URL has a route. */
interface Routed extends Received {
  readonly route: Route;
  /** The segment matched by the route's `:token`; empty if the route has none. */
  readonly segment: string;
  /** The segment as a token, if it is a version 4 UUID. */
  readonly token: Token | undefined;
}

/** A request to a route that is not deprecated. */
interface Plain extends Routed {
  readonly kind: "plain";
  /**
   * The end of the phase that the response depends on, in milliseconds since the epoch; `Infinity`
   * if it depends on none.
   */
  readonly phaseEnd: number;
}

/** A request to a deprecated route. */
interface Retired extends Routed {
  readonly kind: "retired";
  /** The route's path, by which its calls are counted. */
  readonly path: string;
  readonly policy: Policy;
  /** The phase, and when it ends. */
  readonly moment: Moment;
  /** The path that replaces the requested one, if there is a token. */
  readonly successor: string | undefined;
}

/** A request, and what is known about it before any lookup. */
type ReadCall =
  | Received & { readonly kind: "bad host" }
  | Received & { readonly kind: "no route" }
  | Plain
  | Retired;

/** The same, or a request of which nothing is known, because `readCall()` failed. */
type Call = ReadCall | Received & { readonly kind: "unread" };

/** Creates the handler for all requests; `assemble()` wraps it to reuse responses. */
export function createHandler(options: HandlerOptions): Handler {
  const { recorder } = options;
  const freshness = new FreshnessLimits();
  return async (request, now) => {
    let call: Call = { kind: "unread", options, freshness, request, now };
    recorder?.arrive(); // until it is answered, the record is not told that the process has stopped
    try {
      call = readCall(call); // assigned, so that an error in answer() is announced and counted, too
      return respond(call, await answer(call));
    } catch (error) {
      return respond(call, fail(call, error));
    } finally {
      recorder?.leave();
    }
  };
}

/** Adds what is known before any lookup, including the route's policy and phase. */
function readCall(received: Received): ReadCall {
  const { options: { routes, policies }, request, now } = received;
  // Deno builds the URL from the Host field, unchecked.
  if (!isHost(request.headers.get("host"))) return { ...received, kind: "bad host" };
  const matched = match(routes, normalizeUrl(request.url));
  if (matched === undefined) return { ...received, kind: "no route" };
  const { route, segment } = matched;
  const token = parseToken(segment); // by validate() of @std/uuid/v4 (lib/storage/token.ts)
  const routed = { ...received, route, segment, token };
  if (route.serves === "notice") { // it changes with the phase of any deprecated route
    return { ...routed, kind: "plain", phaseEnd: nextChange(policies(), now) };
  }
  if (route.successor === undefined) return { ...routed, kind: "plain", phaseEnd: Infinity };
  const path = pathOf(route);
  const policy = policies()[path];
  if (policy === undefined) throw new Error(`Route "${path}" is deprecated, but has no policy`);
  const moment = momentAt(policy, now);
  const successor = token && withToken(route.successor, token);
  return { ...routed, kind: "retired", path, policy, moment, successor };
}

/** Finds the route of a URL, and the segment matched by `:token`; empty if the route has none. */
function match(routes: readonly Route[], url: string) {
  for (const route of routes) {
    const matched = route.pattern.exec(url);
    if (matched !== null) return { route, segment: matched.pathname.groups["token"] ?? "" };
  }
  return undefined;
}

/**
 * Returns the first outcome that applies. Every `problem()` has these fields, and those passed to
 * it: Content-Type: application/problem+json, Content-Length, X-Content-Type-Options: nosniff, and
 * Cache-Control: no-store, no-transform.
 */
async function answer(call: ReadCall): Promise<MarkedOutcome> {
  const { request: { method, headers }, now } = call;
  const { routes, storage, config, policies, recorder } = call.options;
  if (call.kind === "bad host") {
    return problem(call, 400, "bad-host", "The Host field is not a valid host");
  }
  if (method === "OPTIONS") { // on any path: a failed preflight would hide the 404 from a page
    const allow = call.kind === "no route" ? [] : [ALLOW];
    return { status: 204, fields: [...allow, ...PREFLIGHT_FIELDS, NO_STORE] };
  }
  if (call.kind === "no route") {
    return problem(call, 404, "no-such-route", "No such route", { isReusable: true });
  }
  if (!METHODS.includes(method)) {
    const detail = `This route accepts ${ALLOWED}`;
    return problem(call, 405, "method-not-allowed", detail, { fields: [ALLOW] });
  }
  // In a brownout and after the sunset, nothing is looked up.
  const refusal = call.kind === "retired" ? refusalOf(call) : undefined;
  if (refusal !== undefined) return { ...refusal, isReusable: true, isRefused: true };

  const { route: { serves }, segment, token } = call;
  if (serves === "health") {
    await storage.check(); // throws a StorageError if storage is unavailable: 503
    const text = recorder?.fault ? `ok, but ${recorder.fault}\n` : "ok\n";
    return textOutcome(200, { type: "text/plain", text, fields: [NO_STORE] });
  }
  if (serves === "notice" || serves === "description") {
    const facts = { routes, config, policies: policies(), now };
    return await serve(call, await representDocument(serves, headers, facts));
  }
  if (token === undefined) {
    const detail = `"${segment}" is not a version 4 UUID`;
    return problem(call, 400, "malformed-token", detail, { isReusable: true });
  }
  // The lookup also compares the stored content with what was published: in a folder by its length, in
  // a bucket by its ETag. A HEAD reads no content, but must fail where its GET does: 502 if an object
  // was replaced, 503 if content is missing, incomplete, or cannot be read. Lookups, and responses
  // made from them, are reused for a generation: until a change of the catalogue is detected, and for
  // PERIOD_MS at most. An object in a bucket is compared once a minute, by a GET of its first byte
  // (lib/storage/object_checks.ts). Besides, whichever object is requested next is fetched every
  // PERIOD_MS, to see whether the store answers. Content that is lost in that time fails on GET first,
  // and then on HEAD, too.
  return await answerItem(call, await storage.find(token, now), serves);
}

/**
 * Returns the refusal in a brownout or after the sunset; `undefined` at any other time. Any GET or
 * HEAD of a deprecated route then gets these fields, with those that `respond()` adds:
 * - 503 brownout: Content-Type, Content-Length, X-Content-Type-Options, Cache-Control, Retry-After
 * - 410 brownout: Content-Type, Content-Length, X-Content-Type-Options, Cache-Control, Retry-After
 * - 308 removed: Location, Content-Length, Cache-Control
 * - 410 removed: Content-Type, Content-Length, X-Content-Type-Options, Cache-Control
 *
 * Content-Type is application/problem+json. Retry-After is a date, the end of the brownout.
 * Cache-Control is no-store in a brownout, and max-age=CACHE_MAX_AGE after the sunset; for 503 and
 * 410 also no-transform. A malformed token has no successor, so it gets 410 where others get 308.
 *
 * This repeats `refusal()` of the library, so that each status stands here.
 */
function refusalOf({ policy, moment, successor, options }: Retired): Refusal | undefined {
  const { cacheMaxAge } = options.config;
  const { phase, until } = moment;
  const facts = { policy, successor, problemTypesPage: PROBLEM_TYPES_PAGE };
  const brownoutStatus = brownoutStatusAt(policy, moment);
  if (brownoutStatus === 503) return brownoutRefusal(503, until, facts);
  if (brownoutStatus === 410) return brownoutRefusal(410, until, facts);
  if (phase !== "removed") return undefined;
  if (policy.afterSunset === "redirect" && successor !== undefined) {
    return removalRedirect(308, successor, cacheMaxAge);
  }
  return removalRefusal(410, cacheMaxAge, facts);
}

/**
 * Returns the outcome for the result of a lookup. The response made from an outcome that is marked
 * with `isReusable`, here or above, may be reused for the same request in the same generation and
 * phase. All others are made for each request.
 */
async function answerItem(
  call: Plain | Retired,
  found: LookupResult,
  kinds: readonly Kind[],
): Promise<MarkedOutcome> {
  if (found.state === "unknown" || !kinds.includes(found.kind)) {
    const detail = `No such ${kinds.join(" or ")} was ever published`;
    // An item that is served has a successor, also on the 404 of the route for the other kind.
    const isServed = found.state === "published" || found.state === "linked";
    const marks = { isReusable: true, hasNoSuccessor: !isServed } as const;
    return problem(call, 404, "never-published", detail, marks);
  }
  if (found.state === "unpublished") {
    const marks = { isReusable: true, hasNoSuccessor: true } as const;
    return problem(call, 410, "unpublished", UNPUBLISHED, marks);
  }
  if (found.state === "linked") { // the content is at a public URL
    // Preconditions and Range apply at the target (RFC 9110 §13.2.1): clients resend them.
    const location: Field = ["Location", found.item.location];
    const fields = [location, NO_CONTENT, cacheControlOf(call)];
    return { status: 307, fields, isReusable: true };
  }
  const outcome = await serve(call, representItem(found.item, call.options.storage, call.now));
  if (outcome.body instanceof ReadableStream) return outcome; // it can be sent only once
  // If the publisher's clock was ahead, Last-Modified is the current time, and so changes.
  if (found.item.publishedAt > call.now) return outcome;
  return { ...outcome, isReusable: true };
}

/** Serves a representation by the request's preconditions and Range: 412, 304, 416, 206 or 200. */
async function serve(call: Plain | Retired, selected: Representation): Promise<MarkedOutcome> {
  const { options: { faults }, request: { method, headers }, now } = call;
  const { length, contentFields } = selected;
  const condition = evaluatePreconditions(headers, selected, now);
  if (condition === 412) return problem(call, 412, "precondition-failed", "A precondition failed");
  const validatorFields = [...selected.validatorFields, cacheControlOf(call)];
  if (condition === 304) return { status: 304, fields: validatorFields };

  // (1) Only a GET has its Range evaluated (RFC 9110 §14.2).
  const isGet = method === "GET";
  const range = isGet ? requestedRange(headers, selected, now) : undefined;
  if (range === "unsatisfiable") {
    const fields: Field[] = [["Content-Range", `bytes */${length}`]];
    const detail = `The content has ${length} bytes`;
    return problem(call, 416, "range-not-satisfiable", detail, { fields });
  }
  // (2) Only a GET opens the content. If reading fails midway, the log says why.
  const onFault = (error: unknown) => faults.log(error, { method });
  const body = isGet ? await selected.open(range, onFault) : undefined;
  const fields = [...contentFields, ...lengthFields(length, range), ...validatorFields];
  if (range !== undefined) return { status: 206, fields, body };
  return { status: 200, fields, body };
}

/** Returns the field that says how long caches may store what was found, and only as it is. */
function cacheControlOf({ options: { config } }: Received): Field {
  return ["Cache-Control", `max-age=${config.cacheMaxAge}, ${NO_TRANSFORM}`];
}

/** Returns an error's outcome. A fault is logged under the id in the problem's `instance`. */
function fail(call: Call, error: unknown): MarkedOutcome {
  const { options: { faults }, request: { method } } = call;
  if (error instanceof UnpublishedError) { // between lookup and opening, so it is no fault
    return problem(call, 410, "unpublished", UNPUBLISHED, { hasNoSuccessor: true });
  }
  const route = "route" in call ? pathOf(call.route) : undefined;
  const logAs = (status: number) => faults.log(error, { status, method, route });
  if (error instanceof ReplacedError) {
    return problem(call, 502, "content-replaced", REPLACED, { logAs });
  }
  if (error instanceof StorageError) {
    return problem(call, 503, "storage-unavailable", UNAVAILABLE, { fields: [RETRY_AFTER], logAs });
  }
  return problem(call, 500, "server-fault", "The server failed", { logAs });
}

/**
 * Makes the response, and counts the call, even before it is sent, if its route is deprecated. These
 * are the fields of an item on a deprecated path outside brownouts, and where each is made; a 304 has
 * those from ETag on:
 *   Content-Type: audio/mpeg                    representItem()
 *   Content-Language: en                        representItem(), if the item has a language
 *   Content-Disposition: inline; filename="…"   representItem(), if the item has a name
 *   Accept-Ranges: bytes                        representItem()
 *   Repr-Digest: sha-256=:…:                    representItem()
 *   X-Content-Type-Options: nosniff             representItem()
 *   Content-Length: 1000                        lengthFields()
 *   ETag: "…"                                   representItem()
 *   Last-Modified: Fri, 06 Mar 2026 …           representItem()
 *   Cache-Control: max-age=300, no-transform    cacheControlOf(); while any later change of phase is
 *     scheduled, FreshnessLimits adds must-revalidate and stale-while-revalidate=0, and
 *     shortens an age that would reach beyond it, that of a 304 to a second at least
 *   Access-Control-Allow-Origin: *              CORS_FIELDS
 *   Access-Control-Expose-Headers: *            CORS_FIELDS
 *   Cross-Origin-Resource-Policy: cross-origin  EMBEDDABLE
 *   Deprecation: @1795219200                    announcementFields()
 *   Sunset: Wed, 30 Jun 2027 …                  announcementFields(), if there is a date
 *   Link: </media/…>; rel="successor-version"   announcementFields(), if there is a successor,
 *     </deprecation>; rel="deprecation"           always,
 *     </deprecation>; rel="sunset"                and if there is a date
 *   Deno-CDN-Cache-Control: no-store            CDN_NO_STORE, on Deno Deploy
 */
function respond(call: Call, outcome: MarkedOutcome): MarkedResponse {
  const { options: { config, clock }, request, freshness } = call;
  const { status, body, isReusable, hasNoSuccessor } = outcome;
  // On every status from the lookup of the route on, a deprecated one announces its retirement with
  // Deprecation (RFC 9745), Sunset (RFC 8594) and Link (RFC 8288).
  const retired = call.kind === "retired" ? call : undefined;
  const successor = hasNoSuccessor ? undefined : retired?.successor;
  // No cache may keep a response beyond the phase that it depends on. The clock is read again for
  // that, because a lookup may have taken seconds. A request's Authorization does not matter:
  // responses are the same for everybody.
  const until = phaseEndOf(call);
  const { fields, unchangedUntil } = freshness.limit([
    ...outcome.fields,
    ...CORS_FIELDS,
    EMBEDDABLE,
    ...(retired ? announcementFields(retired.policy, successor) : []),
    ...(retired && config.isOnDeploy ? [CDN_NO_STORE] : []),
  ], { until, now: clock(), method: request.method, status, isAuthorized: false });
  const headers = Object.fromEntries(fields); // names are unique
  // (3) A HEAD gets the same status and fields, without content.
  const response = new Response(request.method === "HEAD" ? null : body, { status, headers });

  const counter = counterOf(call, outcome);
  counter?.count(request.headers);
  const reusableUntil = isReusable ? unchangedUntil : 0;
  return { response, counter, reusableUntil };
}

/** Returns the end of the phase that a response depends on; `Infinity` if it depends on none. */
function phaseEndOf(call: Call): number {
  if (call.kind === "retired") return call.moment.until;
  return call.kind === "plain" ? call.phaseEnd : Infinity;
}

/**
 * Returns the counter of calls with this route, method, phase and class of status; `undefined` if
 * the route is not deprecated, or nobody counts.
 */
function counterOf(call: Call, outcome: MarkedOutcome) {
  if (call.kind !== "retired") return undefined;
  const { options: { recorder }, request: { method }, path: route, policy, moment } = call;
  const { status } = outcome;
  const breaks = isBroken(call, outcome);
  return recorder?.meter.counterFor({ route, policy, method, moment, status, breaks });
}

/** Returns whether the removal breaks the call. It breaks none without a valid token. */
function isBroken({ request: { method }, token }: Retired, { status, isRefused }: MarkedOutcome) {
  return token !== undefined && isBreaking({ method, status, isRefused: isRefused === true });
}

/**
 * Assembles the server: reads the settings (lib/server/config.ts), checks that Deno's permissions
 * allow listening and storage, opens storage (lib/storage/), checks that its content belongs to its
 * catalogue, or creates a place for content if there is none, and publishes the samples if no
 * database or bucket is configured and nothing was ever published. `runServer()`
 * (lib/server/process.ts) then opens the ledger of calls (lib/usage/) and registers, for which it
 * waits two seconds at most, and listens. From then on, the server logs each change of phase
 * (lib/log/). Every five seconds, or sooner after a call, it writes to the ledger what was counted,
 * and reads the holds (lib/usage/record/holds.ts): commands that put off a brownout or the sunset.
 *
 * Two wrappers sit between the handler and the network:
 * - `prepareResponses()` (lib/server/prepared_responses.ts) reuses a response to a HEAD for later
 *   HEADs, and clones one to a GET for later GETs.
 * - `closeWhenStopping()` (lib/server/listener.ts), while the server is stopping, makes a second
 *   Response from the first to add `Connection: close`.
 *
 * Deno adds `Date`, and answers malformed or oversized requests with a bare 400.
 *
 * The permissions (deno.json) are:
 * - net, to listen, to reach PostgreSQL and the bucket, to publish and verify public URLs, and for
 *   the probe of `media usage --gate`;
 * - env, for the settings, and for INIT_CWD, the folder in which `deno task media` was typed;
 * - sys, for the machine's name, and to refuse root in another user's folder;
 * - read and write, for ./data; and read, for `.env` and the samples. The media task may read and
 *   write any file.
 */
async function assemble(routes: readonly Route[], stopping: AbortSignal): Promise<App> {
  const clock = Date.now;
  const log = lineLog(clock);
  const variables = readVariables();
  warnOfVariables(variables, log); // first, because they may say why the start fails
  const config = readConfig(variables.get, "server", deprecatedPaths(routes));
  requireListenAccess(config);
  requireStorageAccess(config);
  const { media, close } = await openAndPrepare(config, log);
  const samples = config.isDefaultStorage
    ? await (await import("./lib/publishing/samples.ts")).publishSamples(media, routes)
    : [];
  const storage = new CachedStorage(media, media.catalogue, clock);
  const onHold = () => storage.generations.end(); // with all prepared responses
  const recorder = await createRecorder(config, { clock, log, onHold });
  const policies = () => recorder.policies; // those of `config`, under the holds in the ledger
  const phases = new PhaseLog({ policies, clock, log });
  const faults = new FaultLog(log);
  const handle = createHandler({ routes, storage, config, policies, clock, faults, recorder });
  // Reuses responses marked with `isReusable` for the same method, URL, Host and conditions, but not
  // for a GET with a Range.
  const prepared = prepareResponses(handle, { generations: storage.generations, clock });
  const serving = closeWhenStopping(prepared, stopping);
  const { host, port, reusePort, isOnDeploy } = config;
  return {
    host,
    port,
    reusePort,
    isOnDeploy,
    recorder,
    log,
    // With compression, the fields of a GET would differ from those of its HEAD.
    listen: (options) => Deno.serve({ ...options, automaticCompression: false }, serving),
    onListen(address) {
      logStart(address, config, { samples, recorder, log });
      phases.start();
    },
    async close() {
      phases.stop();
      await recorder.close();
      await close();
    },
  };
}

/**
 * Opens storage, and checks that the content belongs to the catalogue, or creates a place for content
 * if there is none.
 */
async function openAndPrepare(config: Config, log: Log): Promise<OpenStorage> {
  const onCreate = (what: string) => log({ event: "create", message: `created ${what}` });
  const opened = await openStorage(config, { onCreate });
  if (config.content.kind !== "none") await opened.media.prepare();
  return opened;
}

/** Creates the recorder of calls. If telemetry is on, it also exports metrics. */
async function createRecorder(
  { database, policies, retainDays, clientField, isTelemetryOn, isOnDeploy }: Config,
  options: Pick<RecorderOptions, "clock" | "log" | "onHold">,
): Promise<Recorder> {
  const metrics = isTelemetryOn
    ? await (await import("./lib/server/metrics.ts")).exportUsage(policies)
    : undefined;
  const { clock, log } = options;
  return new Recorder({
    ...options,
    async open() {
      const { DENO_RUNTIME } = await import("./lib/database/sqlite/deno_runtime.ts");
      return await openLedger(ledgerPlaceOf(database), { runtime: () => DENO_RUNTIME });
    },
    onRegister(sessions) { // with the dates that were announced before
      for (const message of unlikelyDates(policies, sessions, clock())) {
        log({ event: "warning", message });
      }
    },
    process: thisProcess(),
    policies,
    retainDays,
    clientField,
    metrics,
    onDemand: isOnDeploy,
  });
}

/**
 * Runs the server with these routes. With `--check`, only says what the start would do
 * (lib/server/start_check.ts); with `--version`, prints the version; and with `media` as the first
 * argument, runs a command instead (lib/cli/).
 */
export async function main(routes: readonly Route[]): Promise<void> {
  const [command, ...args] = Deno.args;
  if (command === undefined) return await runServer((stopping) => assemble(routes, stopping));
  if (command === "media") {
    const running = import("./lib/cli/media.ts")
      .then(({ runMedia }) => runMedia(args, { routes, createHandler }));
    Deno.exit(await running.catch((error) => exitStatusOfCrash(error, args)));
  }
  if (command === "--check" && args.length === 0) {
    const { checkStart } = await import("./lib/server/start_check.ts");
    Deno.exit(await checkStart(routes));
  }
  if (command === "--version" && args.length === 0) {
    const { printLines } = await import("./lib/server/print_lines.ts");
    Deno.exit(await printLines([`media-head ${VERSION}`]));
  }
  const got = quoted(Deno.args.join(" "));
  console.error(`media-head: expected no argument, --check, --version or "media", got ${got}`);
  Deno.exit(2);
}

if (import.meta.main) await main(ROUTES);
