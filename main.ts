/**
 * media-head: serves the deprecated HEAD /audio/{token} and HEAD /video/{token} until they are
 * removed, and promises that a HEAD says exactly what the GET would have said. This file is the whole
 * HTTP surface: every route, and every status in the order in which it is decided. GET and HEAD are
 * told apart only at the places marked (1), (2) and (3) below; a HEAD has no Range (1). Two things are
 * not decided here: Deno answers what is not HTTP with a bare 400, and a server that is stopping sends
 * no response any more once the counts of calls are saved.
 *
 * The start checks the Deno version, reads the settings (lib/server/config.ts), checks that Deno's
 * permissions allow storage, opens storage (lib/storage/), checks that its content belongs to its
 * catalogue, publishes the samples if storage is the default and empty, registers in the ledger of
 * calls (lib/usage/), and listens. With `media` as the first argument, it runs a command instead
 * (lib/cli/).
 *
 * The permissions (deno.json) are
 * - net, to listen, to reach PostgreSQL and the bucket, and to publish and verify public URLs;
 * - env, for the settings, and for INIT_CWD, the folder in which `deno task media` was typed;
 * - sys, for the machine's name;
 * - read and write, for ./data; and read, for `.env` and the samples. The media task may read and
 *   write any file.
 */

import { validate } from "@std/uuid/v4";
import { CORS_FIELDS, PREFLIGHT_FIELDS } from "./lib/http/cors.ts";
import { isHost } from "./lib/http/host.ts";
import { type Field, NO_STORE, type Outcome, textOutcome } from "./lib/http/outcome.ts";
import { evaluatePreconditions, requestedRange } from "./lib/http/preconditions.ts";
import { representDocument } from "./lib/documents/documents.ts";
import { announcementFields } from "./lib/lifecycle/announcement.ts";
import { limitFreshness } from "./lib/lifecycle/freshness.ts";
import { momentAt } from "./lib/lifecycle/policy.ts";
import { refusalIn } from "./lib/lifecycle/refusal.ts";
import { readConfig } from "./lib/server/config.ts";
import { readVariables, warnOfUnused } from "./lib/server/environment.ts";
import { closeWhenStopping, type Shutdown } from "./lib/server/listener.ts";
import { FaultLog, lineLog } from "./lib/server/log.ts";
import { openStorage } from "./lib/storage/media/open_storage.ts";
import { nextChange, policyOf, type Retirement } from "./lib/server/policies.ts";
import { type Answer, type Handler, prepareResponses } from "./lib/server/prepared_responses.ts";
import { problem, PROBLEM_TYPES_PAGE } from "./lib/server/problem_types.ts";
import { type App, requireHonestHead, runServer } from "./lib/server/process.ts";
import { lengthFields, type Representation, representItem } from "./lib/server/representation.ts";
import type { Route } from "./lib/server/route.ts";
import { deprecatedPaths, METHODS, normalizeUrl, withToken } from "./lib/server/route.ts";
import type { Server } from "./lib/server/server.ts";
import { requireStorageAccess } from "./lib/server/storage_access.ts";
import { CachedStorage } from "./lib/storage/cache.ts";
import { ReplacedError, StorageError, UnpublishedError } from "./lib/storage/errors.ts";
import type { Kind, LookupResult } from "./lib/storage/item.ts";
import { type Token, tokenOf } from "./lib/storage/token.ts";
import { Recorder } from "./lib/usage/recorder.ts";

const MEDIA = "/media/:token"; // replaces the deprecated paths

/**
 * Every route. Each accepts GET, HEAD and OPTIONS. Those with a successor are deprecated: delete
 * their two lines when nobody calls the old paths any more.
 */
export const ROUTES: readonly Route[] = [
  { pattern: new URLPattern({ pathname: "/audio/:token" }), serves: ["audio"], successor: MEDIA },
  { pattern: new URLPattern({ pathname: "/video/:token" }), serves: ["video"], successor: MEDIA },
  { pattern: new URLPattern({ pathname: MEDIA }), serves: ["audio", "video"] },
  { pattern: new URLPattern({ pathname: "/deprecation" }), serves: "notice" },
  { pattern: new URLPattern({ pathname: "/openapi.json" }), serves: "description" },
  { pattern: new URLPattern({ pathname: "/healthz" }), serves: "health" },
];

const NOWHERE = { route: undefined, segment: "" };
const ALLOW: Field = ["Allow", METHODS.join(", ")];
const EMPTY: Field = ["Content-Length", "0"];
/** Keeps deprecated routes out of the CDN of Deno Deploy, which would hide calls (RFC 9213). */
const CDN_NO_STORE: Field = ["Deno-CDN-Cache-Control", "no-store"];
const UNPUBLISHED = "This item was permanently unpublished";
const REPLACED = "The stored content is not what was published";

/** What is known of a request before anything is looked up. */
interface Call {
  /** The server that it came to. */
  readonly server: Server;
  readonly method: string;
  /** Its fields. */
  readonly headers: Headers;
  /**
   * When it came, in milliseconds since the epoch. This decides its phase, however long the response
   * takes.
   */
  readonly now: number;
  /** Whether its Host is not a valid host. */
  readonly isBadHost: boolean;
  /** The route of its URL; `undefined` if there is none, or the host is not valid. */
  readonly route: Route | undefined;
  /** What its path has in place of the route's `:token`; empty if the route has none. */
  readonly segment: string;
  /** That segment as a token, if it is a version 4 UUID. */
  readonly token: Token | undefined;
  /**
   * If its route is deprecated: the route's path and policy, the phase and its end, and the path that
   * replaces the requested one, if the token is valid.
   */
  readonly retirement: Retirement | undefined;
  /**
   * When a phase that the response may depend on ends, in milliseconds since the epoch; `Infinity`
   * for never.
   */
  readonly phaseEnd: number;
}

/** Creates the handler for all requests; `assemble()` wraps it to reuse what it marks. */
export function createHandler(server: Server): Handler {
  return async (request, now) => {
    const call = readCall(server, request, now);
    try {
      return respond(call, await answer(call));
    } catch (error) {
      return respond(call, fail(call, error));
    }
  };
}

/** Reads what is known of a request before any lookup, including its policy and phase. */
function readCall(server: Server, { method, url, headers }: Request, now: number): Call {
  const { routes, config } = server;
  const isBadHost = !isHost(headers.get("host")); // Deno builds the URL from Host, unchecked
  const { route, segment } = isBadHost ? NOWHERE : match(routes, normalizeUrl(url));
  const token = validate(segment) ? tokenOf(segment) : undefined; // a version 4 UUID
  const retirement = route && retirementOf(server, route, token, now);
  // The notice changes with the phase of each deprecated route, and is checked again when that of the
  // common policy changes, which has no path.
  const phaseEnd = route?.serves === "notice"
    ? nextChange(config, ["", ...deprecatedPaths(routes)], now)
    : retirement?.moment.until ?? Infinity;
  const known = { server, method, headers, now };
  return { ...known, isBadHost, route, segment, token, retirement, phaseEnd };
}

/** Finds the route of a URL, and the segment in place of its token, which is empty without one. */
function match(routes: readonly Route[], url: string) {
  for (const route of routes) {
    const matched = route.pattern.exec(url);
    if (matched !== null) return { route, segment: matched.pathname.groups["token"] ?? "" };
  }
  return NOWHERE;
}

/** Returns the retirement of a route at an instant; `undefined` if the route stays. */
function retirementOf(
  { config }: Server,
  { pattern: { pathname: path }, successor }: Route,
  token: Token | undefined,
  now: number,
): Retirement | undefined {
  if (successor === undefined) return undefined;
  const policy = policyOf(config, path);
  const moment = momentAt(policy, now);
  return { path, policy, moment, successor: token && withToken(successor, token) };
}

/** Returns the first outcome that applies. */
async function answer(call: Call): Promise<Outcome> {
  const { method, headers, now, isBadHost, route, segment, token, retirement } = call;
  const { routes, storage, config, meter } = call.server;
  if (isBadHost) return problem(call, 400, "bad-host", "The Host field is not a valid host");
  if (route === undefined) {
    return problem(call, 404, "no-such-route", "No such route", { isKept: true });
  }
  if (!METHODS.includes(method)) {
    const detail = `This route accepts ${ALLOW[1]}`;
    return problem(call, 405, "method-not-allowed", detail, { fields: [ALLOW] });
  }
  if (method === "OPTIONS") return { status: 204, fields: [ALLOW, ...PREFLIGHT_FIELDS, NO_STORE] };

  // In a brownout 503 (or 410, if the policy says so); after the sunset 410 (or 308, if the policy
  // says so and the token is valid). Nothing is looked up.
  const refused = retirement && refusalIn(retirement.moment, retirement.policy, {
    successor: retirement.successor,
    maxAge: config.cacheMaxAge,
    problemTypesPage: PROBLEM_TYPES_PAGE,
  });
  if (refused) return { ...refused, isKept: true };

  const { serves } = route;
  if (serves === "health") {
    await storage.check();
    const text = meter?.fault ? `ok, but ${meter.fault}\n` : "ok\n";
    return textOutcome(200, { type: "text/plain", text, fields: [NO_STORE] });
  }
  if (serves === "notice" || serves === "description") {
    return await serve(call, await representDocument(serves, headers, { routes, config, now }));
  }
  if (token === undefined) {
    const detail = `"${segment}" is not a version 4 UUID`;
    return problem(call, 400, "malformed-token", detail, { isKept: true });
  }
  // The lookup also compares the stored content with what was published (502, 503). A HEAD never
  // reads the content, but must fail where its GET does, so the promise depends on this. What a
  // lookup found, and a response made from it, is used for one generation: until a change of the
  // catalogue is detected, and for five seconds at most.
  return await answerItem(call, await storage.find(token, now), serves);
}

/**
 * Returns the outcome for what a lookup found. An outcome that is marked with `isKept`, here or
 * above, may be reused for the same request in the same generation and phase. Any other is made
 * anew.
 */
async function answerItem(
  call: Call,
  found: LookupResult,
  kinds: readonly Kind[],
): Promise<Outcome> {
  if (found.state === "unknown" || !kinds.includes(found.kind)) {
    const detail = `No such ${kinds.join(" or ")} was ever published`;
    const hasNoSuccessor = found.state === "unknown" || found.state === "unpublished";
    return problem(call, 404, "never-published", detail, { isKept: true, hasNoSuccessor });
  }
  if (found.state === "unpublished") {
    return problem(call, 410, "unpublished", UNPUBLISHED, { isKept: true, hasNoSuccessor: true });
  }
  if (found.state === "linked") {
    // Preconditions and Range apply at the target (RFC 9110 §13.2.1): clients resend them.
    const location: Field = ["Location", found.item.location];
    return { status: 307, fields: [location, EMPTY, freshnessOf(call)], isKept: true };
  }
  const outcome = await serve(call, representItem(found.item, call.server.storage, call.now));
  // A stream can be sent only once. If the publisher's clock was ahead, Last-Modified is the current
  // time, which changes.
  const isKept = !(outcome.body instanceof ReadableStream) && found.item.publishedAt <= call.now;
  return isKept ? { ...outcome, isKept } : outcome;
}

/** Serves a representation as the request's conditions and range ask: 412, 304, 416, 206 or 200. */
async function serve(call: Call, selected: Representation): Promise<Outcome> {
  const { server: { faults }, method, headers, now } = call;
  const { length, contentFields } = selected;
  const status = evaluatePreconditions(headers, selected, now);
  if (status === 412) return problem(call, 412, "precondition-failed", "A precondition failed");
  const validatorFields = [...selected.validatorFields, freshnessOf(call)];
  if (status === 304) return { status, fields: validatorFields };

  // (1) Only a GET has its Range evaluated (RFC 9110 §14.2).
  const isGet = method === "GET";
  const range = isGet ? requestedRange(headers, selected, now) : undefined;
  if (range === "unsatisfiable") {
    const fields: Field[] = [["Content-Range", `bytes */${length}`]];
    const detail = `The content has ${length} bytes`;
    return problem(call, 416, "range-not-satisfiable", detail, { fields });
  }
  // (2) Only a GET reads the content. If it cannot be read to its end, the log says why.
  const onFault = (error: unknown) => faults.report(error, { method });
  const body = isGet ? await selected.open(range, onFault) : undefined;
  return {
    status: range === undefined ? 200 : 206,
    fields: [...contentFields, ...lengthFields(length, range), ...validatorFields],
    body,
  };
}

/** Returns the field that says how long caches may keep what was found. */
function freshnessOf({ server: { config } }: Call): Field {
  return ["Cache-Control", `max-age=${config.cacheMaxAge}`];
}

/** Returns the outcome of an error. The log has its cause under the id that the client gets. */
function fail(call: Call, error: unknown): Outcome {
  const { server, method, route } = call;
  if (error instanceof UnpublishedError) { // between lookup and opening: no fault
    return problem(call, 410, "unpublished", UNPUBLISHED, { hasNoSuccessor: true });
  }
  const isReplaced = error instanceof ReplacedError;
  const status = isReplaced ? 502 : error instanceof StorageError ? 503 : 500;
  const facts = { status, method, route: route?.pattern.pathname };
  const instance = `urn:uuid:${server.faults.report(error, facts)}`;
  if (status === 502) return problem(call, 502, "content-replaced", REPLACED, { instance });
  if (status === 500) return problem(call, 500, "server-fault", "The server failed", { instance });
  const fields: Field[] = [["Retry-After", "5"]]; // seconds
  const detail = "Storage is unavailable; retry later";
  return problem(call, 503, "storage-unavailable", detail, { instance, fields });
}

/** Makes the response, and counts it if its route is deprecated. */
function respond(call: Call, outcome: Outcome): Answer {
  const { server: { config, clock, meter }, method, token, retirement } = call;
  const { status, body, isKept } = outcome;
  const successor = outcome.hasNoSuccessor ? undefined : retirement?.successor;
  // On every status, a deprecated route announces its retirement by Deprecation (RFC 9745), Sunset
  // (RFC 8594) and Link (RFC 8288). No cache may keep a response longer than the phase that it
  // depends on. The clock is read again for that, since a lookup may have taken seconds.
  const { fields, unchangedUntil } = limitFreshness([
    ...outcome.fields,
    ...CORS_FIELDS,
    ...retirement ? announcementFields(retirement.policy, successor) : [],
    ...retirement && config.isOnDeploy ? [CDN_NO_STORE] : [],
  ], { until: call.phaseEnd, now: clock() });
  const headers = Object.fromEntries(fields); // no name comes twice; an object saves 5 µs
  // (3) A HEAD gets the same status and fields, and no content.
  const response = new Response(method === "HEAD" ? null : body, { status, headers });

  const counter = retirement && meter?.counterOf({
    route: retirement.path,
    moment: retirement.moment,
    method,
    status,
    hasToken: token !== undefined,
  });
  counter?.count(call.headers);
  return { response, counter, keepUntil: isKept ? unchangedUntil : 0 };
}

/** Assembles the server in the order given at the top, up to its registration. */
async function assemble(routes: readonly Route[], shutdown: Shutdown): Promise<App> {
  requireHonestHead(Deno.version.deno);
  const deprecated = deprecatedPaths(routes);
  const variables = readVariables();
  const config = readConfig(variables.get, "server", deprecated);
  requireStorageAccess(config);
  const clock = Date.now;
  const log = lineLog(clock);
  warnOfUnused(variables, log);
  const onCreate = (what: string) => log({ event: "create", message: `created ${what}` });
  const media = await openStorage(config, { onCreate });
  if (config.content.kind !== "none") await media.prepare();
  const samples = config.isDefaultStorage
    ? await (await import("./lib/publishing/samples.ts")).publishSamples(media, routes)
    : [];
  const common = { config, clock, log };
  const policies = Object.fromEntries(deprecated.map((path) => [path, policyOf(config, path)]));
  const { usageDays, clientField, isTelemetryOn } = config;
  const counting = { policies, usageDays, clientField, isTelemetryOn, clock, log };
  const recorder = new Recorder({ ...counting, ledger: media.ledger });
  const storage = new CachedStorage(media, media.catalogue);
  const faults = new FaultLog(log);
  const handle = createHandler({ ...common, routes, storage, faults, meter: recorder.meter });
  // Responses marked with `isKept` are reused for the same method, URL, Host and conditions, but not
  // for a GET with a Range. During shutdown, responses ask clients to close their connections.
  const prepared = prepareResponses(handle, { generations: storage.generations, clock });
  const serving = closeWhenStopping(prepared, shutdown);
  return {
    ...config,
    recorder,
    log,
    routes: deprecated,
    samples,
    // Compressed, a GET would differ from its HEAD.
    listen: (options) => Deno.serve({ ...options, automaticCompression: false }, serving),
    async close() {
      await recorder.stop();
      await storage.close();
    },
  };
}

/** Runs the server, or a command, with these routes. */
export async function main(routes: readonly Route[]): Promise<void> {
  const [command, ...args] = Deno.args;
  if (command === undefined) return await runServer((shutdown) => assemble(routes, shutdown));
  if (command !== "media") {
    console.error(`media-head: expected no argument, or "media", got "${command}"`);
    Deno.exit(2);
  }
  const { runMedia } = await import("./lib/cli/media.ts");
  Deno.exit(await runMedia(args, { routes, createHandler }));
}

if (import.meta.main) await main(ROUTES);
