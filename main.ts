/**
 * media-head: keeps HEAD /audio/{token} and HEAD /video/{token} alive until they are removed, and
 * promises that a HEAD says exactly what the GET would have said. This file is the whole HTTP
 * surface: every route, and every status in the order in which it is decided. Only (1) to (3) tell
 * GET and HEAD apart. Two things are not decided here: Deno answers what is not HTTP with a bare 400,
 * and a stopping server that has saved its last counts answers nothing more.
 *
 * Startup order: check the Deno version, read the settings (lib/server/config.ts), check that Deno
 * lets storage be used, open it (lib/storage/), check that its content belongs to its catalogue,
 * publish the samples if storage is the default and empty, register in the ledger of calls
 * (lib/usage/), listen. With `media` as the first argument, run a command instead (lib/cli/).
 *
 * Permissions (deno.json): net to listen, to reach PostgreSQL and the bucket, and each public URL
 * that is published or verified; env for the settings, and INIT_CWD, the folder in which `deno task
 * media` was typed; sys for the machine's name; read and write for ./data, and read for `.env` and
 * the samples. The media task may read and write any file.
 */

import { validate } from "@std/uuid/v4";
import { CORS_FIELDS, PREFLIGHT_FIELDS } from "./lib/http/cors.ts";
import { isHost } from "./lib/http/host.ts";
import { type Field, NO_STORE, textOutcome } from "./lib/http/outcome.ts";
import { evaluatePreconditions, requestedRange } from "./lib/http/preconditions.ts";
import { type Decision, problemDetails } from "./lib/http/problem.ts";
import { representDocument } from "./lib/documents/documents.ts";
import { announcementFields } from "./lib/lifecycle/announcement.ts";
import { limitFreshness } from "./lib/lifecycle/freshness.ts";
import { momentAt } from "./lib/lifecycle/policy.ts";
import { refusal } from "./lib/lifecycle/refusal.ts";
import { readConfig } from "./lib/server/config.ts";
import { readVariables, warnOfUnused } from "./lib/server/environment.ts";
import type { Answer, Handler, HandlerOptions } from "./lib/server/handler.ts";
import { closeWhenStopping, type Shutdown } from "./lib/server/listener.ts";
import { FaultLog, lineLog } from "./lib/server/log.ts";
import { openStorage } from "./lib/storage/media/open_storage.ts";
import { nextChange, policyOf } from "./lib/server/policies.ts";
import { prepareResponses } from "./lib/server/prepared_responses.ts";
import { problem, PROBLEM_TYPES_PAGE } from "./lib/server/problem_types.ts";
import { type App, requireHonestHead, runServer } from "./lib/server/process.ts";
import { lengthFields, type Representation, representItem } from "./lib/server/representation.ts";
import type { Route } from "./lib/server/route.ts";
import { deprecatedPaths, METHODS, normalizeUrl, withToken } from "./lib/server/route.ts";
import { requireStorageAccess } from "./lib/server/storage_access.ts";
import { CachedStorage } from "./lib/storage/cache.ts";
import { ReplacedError, StorageError, UnpublishedError } from "./lib/storage/errors.ts";
import type { Kind, LookupResult } from "./lib/storage/item.ts";
import { tokenOf } from "./lib/storage/token.ts";
import { Recorder } from "./lib/usage/recorder.ts";

const MEDIA = "/media/:token"; // replaces the deprecated paths

/**
 * Every route. Each accepts GET, HEAD and OPTIONS. Those with a successor are deprecated: delete
 * these two lines when nobody calls the old paths any more.
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

/** Creates the handler for all requests; `assemble()` wraps it to reuse valid responses. */
export function createHandler(options: HandlerOptions): Handler {
  const freshness: Field = ["Cache-Control", `max-age=${options.config.cacheMaxAge}`];
  const server = { ...options, freshness, faults: new FaultLog(options.log) };
  return async (request) => {
    const call = readCall(server, request, server.clock());
    try {
      return respond(call, await answer(call));
    } catch (error) {
      return respond(call, fail(call, error));
    }
  };
}

/** What all requests share. */
type Server = HandlerOptions & { readonly freshness: Field; readonly faults: FaultLog };
/** What is known of a request before anything is looked up, and the server that it came to. */
type Call = ReturnType<typeof readCall>;

/** @param instant When the request arrived, which decides its phase, however long it takes. */
function readCall(server: Server, { method, url, headers }: Request, instant: number) {
  const { routes, config } = server;
  const badHost = !isHost(headers.get("host")); // Deno builds the URL from Host, unchecked
  const { route, segment } = badHost ? NOWHERE : match(routes, normalizeUrl(url));
  const token = validate(segment) ? tokenOf(segment) : undefined; // a version 4 UUID
  const path = route?.pattern.pathname;
  const policy = policyOf(config, path); // the route's own, or the common one
  const { phase } = momentAt(policy, instant);
  const successor = token && route?.successor && withToken(route.successor, token);
  const retirement = path && route?.successor ? { path, policy, phase, successor } : undefined;
  // A deprecated route's responses may change with its phase, and the notice with that of any
  // policy, including the common one, which has no path.
  const deprecated = route?.serves === "notice" ? ["", ...deprecatedPaths(routes)] : [];
  const phaseEnd = nextChange(config, retirement ? [retirement.path] : deprecated, instant);
  return { server, method, headers, instant, badHost, route, segment, token, retirement, phaseEnd };
}

/** Finds the route of a URL, and the segment in place of its token; empty if it has none. */
function match(routes: readonly Route[], url: string) {
  for (const route of routes) {
    const matched = route.pattern.exec(url);
    if (matched !== null) return { route, segment: matched.pathname.groups["token"] ?? "" };
  }
  return NOWHERE;
}

/** Returns the first outcome that applies. */
async function answer(call: Call): Promise<Decision> {
  const { method, headers, instant, badHost, route, segment, token, retirement } = call;
  const { routes, storage, config, meter } = call.server;
  if (badHost) return problem(400, "bad-host", "The Host field is not a valid host");
  if (route === undefined) return problem(404, "no-such-route", "No such route", { isKept: true });
  if (!METHODS.includes(method)) {
    const detail = `This route accepts ${ALLOW[1]}`;
    return problem(405, "method-not-allowed", detail, { fields: [ALLOW] });
  }
  if (method === "OPTIONS") {
    return { kind: "final", status: 204, fields: [ALLOW, ...PREFLIGHT_FIELDS, NO_STORE] };
  }

  // In a brownout 503 (or 410, if the policy says so); after the sunset 410 (or 308, if the policy
  // says so and the token is valid).
  const refused = retirement && refusal(retirement.policy, {
    now: instant,
    successor: retirement.successor,
    maxAge: config.cacheMaxAge,
    problemTypesPage: PROBLEM_TYPES_PAGE,
  });
  if (refused) return { ...refused, isKept: true }; // nothing is looked up

  const { serves } = route;
  if (serves === "health") {
    await storage.check();
    const text = meter?.fault ? `ok, but no record of calls: ${meter.fault}\n` : "ok\n";
    return textOutcome(200, { type: "text/plain", text, fields: [NO_STORE] });
  }
  if (serves === "notice" || serves === "description") {
    const options = { routes, config, now: instant };
    return await serve(call, await representDocument(serves, headers, options));
  }
  if (token === undefined) {
    return problem(400, "malformed-token", `"${segment}" is not a version 4 UUID`, {
      isKept: true,
    });
  }
  // This also compares the stored content with what was published, so that a HEAD, which opens
  // nothing, fails where the GET does (502, 503): the promise hangs on it.
  return await answerItem(call, await storage.find(token, instant), serves);
}

/** Returns the outcome for what a lookup found. */
async function answerItem(
  call: Call,
  found: LookupResult,
  kinds: readonly Kind[],
): Promise<Decision> {
  const hasNoSuccessor = found.state === "unknown" || found.state === "unpublished";
  const options = { isKept: true, hasNoSuccessor } as const;
  if (found.state === "unknown" || !kinds.includes(found.kind)) {
    const detail = `No such ${kinds.join(" or ")} was ever published`;
    return problem(404, "never-published", detail, options);
  }
  if (found.state === "unpublished") return problem(410, "unpublished", UNPUBLISHED, options);
  if (found.state === "linked") {
    // Preconditions and Range apply at the target (RFC 9110 §13.2.1): clients resend them.
    const location: Field = ["Location", found.item.location];
    const fields = [location, EMPTY, call.server.freshness];
    return { kind: "final", status: 307, fields, isKept: true };
  }
  const representation = representItem(found.item, call.server.storage, call.instant);
  const outcome = await serve(call, representation);
  // A stream can be sent only once. If the publisher's clock was ahead, Last-Modified is the current
  // time, and so changes.
  const isStream = outcome.kind === "final" && outcome.body instanceof ReadableStream;
  const isKept = !isStream && found.item.publishedAt <= call.instant;
  return isKept ? { ...outcome, isKept } : outcome;
}

/** Serves a representation as the request's conditions and range ask: 412, 304, 416, 206 or 200. */
async function serve(call: Call, selected: Representation): Promise<Decision> {
  const { server: { freshness, faults }, method, headers, instant } = call;
  const { length, contentFields } = selected;
  const status = evaluatePreconditions(headers, selected, instant);
  if (status === 412) return problem(412, "precondition-failed", "A precondition failed");
  const validatorFields = [...selected.validatorFields, freshness];
  if (status === 304) return { kind: "final", status, fields: validatorFields };

  // (1) Only a GET has its Range evaluated (RFC 9110 §14.2).
  const isGet = method === "GET";
  const range = isGet ? requestedRange(headers, selected, instant) : undefined;
  if (range === "unsatisfiable") {
    const fields: Field[] = [["Content-Range", `bytes */${length}`]];
    return problem(416, "range-not-satisfiable", `The content has ${length} bytes`, { fields });
  }
  // (2) Only a GET opens the content.
  const body = isGet ? faults.watch(await selected.open(range), { method }) : undefined;
  return {
    kind: "final",
    status: range === undefined ? 200 : 206,
    fields: [...contentFields, ...lengthFields(length, range), ...validatorFields],
    body,
  };
}

/** Returns the outcome of an error. The log has its cause under the id that the client gets. */
function fail({ server, method, route }: Call, error: unknown): Decision {
  if (error instanceof UnpublishedError) { // between lookup and opening: no fault
    return problem(410, "unpublished", UNPUBLISHED, { hasNoSuccessor: true });
  }
  const isReplaced = error instanceof ReplacedError;
  const status = isReplaced ? 502 : error instanceof StorageError ? 503 : 500;
  const facts = { status, method, route: route?.pattern.pathname };
  const instance = `urn:uuid:${server.faults.report(error, facts)}`;
  if (status === 502) return problem(502, "content-replaced", REPLACED, { instance });
  if (status === 500) return problem(500, "server-fault", "The server failed", { instance });
  const fields: Field[] = [["Retry-After", "5"]]; // seconds
  const detail = "Storage is unavailable; retry later";
  return problem(503, "storage-unavailable", detail, { instance, fields });
}

/** Makes the response, and counts it if its route is deprecated. */
function respond(call: Call, decision: Decision): Answer {
  const { method, instant, token, retirement } = call;
  const { config, clock, meter } = call.server;
  const isProblem = decision.kind === "problem";
  const successor = isProblem && decision.hasNoSuccessor ? undefined : retirement?.successor;
  const links = { successor, documentation: retirement?.policy.documentation };
  const outcome = isProblem ? problemDetails(decision, links) : decision;
  const { status, body, isKept } = outcome;
  // On every status, a deprecated route announces its retirement by Deprecation (RFC 9745), Sunset
  // (RFC 8594) and Link (RFC 8288). No cache may keep what depends on the phase beyond its end.
  const { fields, unchangedUntil } = limitFreshness([
    ...outcome.fields,
    ...CORS_FIELDS,
    ...retirement ? announcementFields(retirement.policy, successor) : [],
    ...retirement && config.isOnDeploy ? [CDN_NO_STORE] : [],
  ], { until: call.phaseEnd, now: clock() });
  const headers = Object.fromEntries(fields); // no name comes twice; an object saves 5 µs
  // (3) A HEAD says all that and sends no content.
  const response = new Response(method === "HEAD" ? null : body, { status, headers });

  const answered = { method, status, hasToken: token !== undefined };
  const counter = retirement &&
    meter?.counterOf({ route: retirement.path, phase: retirement.phase, ...answered });
  counter?.count(call.headers, instant);
  return { response, counter, keepUntil: isKept ? unchangedUntil : 0 };
}

/** Assembles the server, in the order given at the top, until it registers. */
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
  const recorder = new Recorder({ ...common, ledger: media.ledger, routes: deprecated });
  const storage = new CachedStorage(media);
  const handle = createHandler({ ...common, routes, storage, meter: recorder.meter });
  // Reuses responses while they stay valid; during shutdown, asks clients to close connections.
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
