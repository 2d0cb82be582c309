/**
 * media-head: keeps HEAD /audio/{token} and HEAD /video/{token} alive and honest until they are
 * removed. This file is the whole HTTP surface: every route, and every status in the order in which
 * it is decided. GET and HEAD go through the same function: they differ at (1) and (2), and a HEAD
 * is sent without content (3).
 *
 * Startup order: check the Deno version, read the environment (lib/server/config.ts), check that
 * Deno lets storage be used (lib/server/storage_access.ts), open it (lib/storage/), check that its
 * content belongs to its catalogue, publish the samples if storage is the default and empty,
 * register in the ledger of calls (lib/usage/), listen. With `media` as the first argument, run a
 * command instead (lib/cli/).
 *
 * Permissions (deno.json): net to listen, and to reach PostgreSQL, the bucket, and each public URL
 * being published; env for the variables in lib/server/config.ts; sys for the machine's name; read
 * and write for ./data, and read for the samples. The media task may read and write any file.
 */

import { validate } from "@std/uuid/v4";
import { CORS_FIELDS, PREFLIGHT_FIELDS } from "./lib/http/cors.ts";
import { isHost } from "./lib/http/host.ts";
import { type Field, NO_STORE, type Outcome, textOutcome } from "./lib/http/outcome.ts";
import { evaluatePreconditions, requestedRange } from "./lib/http/preconditions.ts";
import { type Problem, problemDetails } from "./lib/http/problem.ts";
import { announcementFields } from "./lib/lifecycle/announcement.ts";
import { limitFreshness } from "./lib/lifecycle/freshness.ts";
import { momentAt } from "./lib/lifecycle/policy.ts";
import { refusal } from "./lib/lifecycle/refusal.ts";
import { readConfig } from "./lib/server/config.ts";
import type { Answer, Handler, HandlerOptions } from "./lib/server/handler.ts";
import { closing, type Shutdown } from "./lib/server/listener.ts";
import { FaultLog, lineLog } from "./lib/server/log.ts";
import { openStorage } from "./lib/storage/media/open_storage.ts";
import { prepared } from "./lib/server/prepared.ts";
import { problem, PROBLEM_TYPES_PAGE } from "./lib/server/problem_types.ts";
import { type App, requireHonestHead, runServer } from "./lib/server/process.ts";
import { lengthFields, type Representation, representItem } from "./lib/server/representation.ts";
import {
  deprecatedPaths,
  METHODS,
  normalizeUrl,
  pathOf,
  type Route,
  withToken,
} from "./lib/server/route.ts";
import { requireStorageAccess } from "./lib/server/storage_access.ts";
import { CachedStorage } from "./lib/storage/cache.ts";
import { ReplacedError, StorageError, UnpublishedError } from "./lib/storage/errors.ts";
import type { Token } from "./lib/storage/token.ts";
import { Recorder } from "./lib/usage/recorder.ts";

/** The path that replaces the deprecated ones. */
const MEDIA = "/media/:token";

/**
 * Every route. Each accepts GET, HEAD and OPTIONS. Those with a successor are deprecated: delete
 * their two lines once they are removed for good.
 */
export const ROUTES: readonly Route[] = [
  { pattern: new URLPattern({ pathname: "/audio/:token" }), serves: ["audio"], successor: MEDIA },
  { pattern: new URLPattern({ pathname: "/video/:token" }), serves: ["video"], successor: MEDIA },
  { pattern: new URLPattern({ pathname: MEDIA }), serves: ["audio", "video"] },
  { pattern: new URLPattern({ pathname: "/deprecation" }), serves: "notice" },
  { pattern: new URLPattern({ pathname: "/openapi.json" }), serves: "description" },
  { pattern: new URLPattern({ pathname: "/healthz" }), serves: "health" },
];

/** Finds the route of a URL, and the segment in place of its token; empty if it has none. */
function match(url: string): { route: Route | undefined; segment: string } {
  for (const route of ROUTES) {
    const matched = route.pattern.exec(url);
    if (matched !== null) return { route, segment: matched.pathname.groups["token"] ?? "" };
  }
  return NOWHERE;
}

const NOWHERE = { route: undefined, segment: "" };
const ALLOW: Field = ["Allow", METHODS.join(", ")];
const VARY: Field = ["Vary", "Accept"];
const EMPTY: Field = ["Content-Length", "0"];
const HEALTHY = textOutcome(200, { type: "text/plain", text: "ok\n", fields: [NO_STORE] });
/** Keeps deprecated routes out of the CDN of Deno Deploy, which would hide calls (RFC 9213). */
const CDN_NO_STORE: Field = ["Deno-CDN-Cache-Control", "no-store"];
const UNPUBLISHED = "This item was permanently unpublished";
const FOREVER = { freshUntil: Infinity }; // as long as the process runs

/**
 * Creates the handler for all requests. When served, it is wrapped to send responses again that are
 * still true; see `assemble()`.
 *
 * @example A handler on storage in memory
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { createHandler } from "@media-head/media-head";
 * import { definePolicy } from "@media-head/lifecycle";
 * import { MediaStorage } from "./lib/storage/media/media_storage.ts";
 * import { NO_CONTENT } from "./lib/storage/content/none/no_content.ts";
 * import { openEngine } from "./lib/storage/database/sqlite/engine.ts";
 *
 * const storage = new MediaStorage(await openEngine("sqlite::memory:"), NO_CONTENT);
 * const policy = definePolicy({ deprecatedAt: "2026-11-21" });
 * const config = { policy, cacheMaxAge: 300 };
 * const handle = createHandler({ storage, config, clock: Date.now, log: console.log });
 * const url = "http://localhost/audio/7f9c24e8-3b12-4fef-91e0-56a2d5a7bb2e";
 * const { response } = await handle(new Request(url, { method: "HEAD" }));
 * assertEquals(response.status, 404); // never published
 * assertEquals(response.headers.get("Deprecation"), "@1795219200");
 * await storage.close();
 * ```
 */
export function createHandler({ storage, config, clock, log, meter }: HandlerOptions): Handler {
  const { policy, cacheMaxAge: maxAge, isOnDeploy } = config;
  const freshness: Field = ["Cache-Control", `max-age=${maxAge}`];
  const refusals = { maxAge, problemTypesPage: PROBLEM_TYPES_PAGE, fields: [VARY] };
  const faults = new FaultLog(log);

  return async ({ method, url, headers }) => {
    const instant = clock(); // decides on the phase, however long the response takes
    const { phase, until } = momentAt(policy, instant);
    const hasHost = isHost(headers.get("host")); // Deno builds the URL from Host, unchecked
    const { route, segment } = hasHost ? match(normalizeUrl(url)) : NOWHERE;
    const token = validate(segment) ? segment.toLowerCase() as Token : undefined;
    let successor = token && route?.successor && withToken(route.successor, token);

    /** Returns the first outcome that applies. */
    const decide = async (): Promise<Outcome | Problem> => {
      if (!hasHost) return problem(400, "bad-host", "The Host field is not a valid host");
      if (route === undefined) return problem(404, "no-such-route", "No such route", FOREVER);
      if (!METHODS.includes(method)) {
        const detail = `This route accepts ${ALLOW[1]}`;
        return problem(405, "method-not-allowed", detail, { fields: [ALLOW] });
      }
      if (method === "OPTIONS") {
        return { status: 204, fields: [ALLOW, ...PREFLIGHT_FIELDS, NO_STORE] };
      }

      // In a brownout 503, or 410 if the policy says so; after the sunset 410, or 308 if the policy
      // says so and the token is valid. A client that prefers HTML gets a page.
      const refused = route.successor && refusal(policy, { ...refusals, now: instant, successor });
      if (refused && headers.get("accept")?.includes("text/html")) {
        const { presentRefusal } = await import("./lib/documents/refusal_page.ts");
        return presentRefusal(refused, headers, { policy, successor });
      }
      if (refused) return refused;

      const { serves } = route;
      let representation: Representation;
      let freshUntil: number | undefined;
      if (serves === "health") {
        await storage.check();
        meter?.check();
        return HEALTHY;
      } else if (serves === "notice" || serves === "description") {
        const { representDocument } = await import("./lib/documents/documents.ts");
        const options = { routes: ROUTES, config, now: instant };
        representation = await representDocument(serves, headers, options);
      } else {
        if (token === undefined) {
          return problem(400, "malformed-token", `"${segment}" is not a version 4 UUID`, FOREVER);
        }
        const found = await storage.find(token, instant);
        ({ freshUntil } = found);
        if (found.state === "unpublished") successor = undefined; // it has none to announce
        if (found.state === "unknown" || !serves.includes(found.kind)) {
          const detail = `No such ${serves.join(" or ")} was ever published`;
          return problem(404, "never-published", detail, { freshUntil });
        }
        if (found.state === "unpublished") {
          return problem(410, "unpublished", UNPUBLISHED, { freshUntil });
        }
        if (found.state === "linked") {
          // Preconditions and Range apply at the target (RFC 9110 §13.2.1): clients resend them.
          const location: Field = ["Location", found.item.location];
          return { status: 307, fields: [location, EMPTY, freshness], freshUntil };
        }
        representation = representItem(found.item, storage, instant);
        // If the publisher's clock was ahead, Last-Modified is the current time, and so changes.
        if (found.item.publishedAt > instant) freshUntil = undefined;
      }

      const { length, validatorFields, contentFields } = representation;
      const status = evaluatePreconditions(headers, representation, instant);
      if (status === 412) {
        return problem(412, "precondition-failed", "A precondition failed", { freshUntil });
      }
      if (status === 304) return { status, fields: [...validatorFields, freshness], freshUntil };

      // (1) Only a GET has its Range evaluated (RFC 9110 §14.2).
      const isGet = method === "GET";
      const range = isGet ? requestedRange(headers, representation, instant) : undefined;
      if (range === "unsatisfiable") {
        const fields: Field[] = [["Content-Range", `bytes */${length}`]];
        return problem(416, "range-not-satisfiable", `The content has ${length} bytes`, { fields });
      }
      // (2) Only a GET opens the content.
      const body = isGet ? await representation.open(range) : undefined;
      if (body instanceof ReadableStream) freshUntil = undefined; // it can be sent only once
      const lengths = lengthFields(length, range);
      const fields = [...contentFields, ...lengths, ...validatorFields, freshness];
      return { status: range === undefined ? 200 : 206, fields, body, freshUntil };
    };

    /** Returns the outcome of an error. The log has its cause under the id that the client gets. */
    const fail = (error: unknown): Problem => {
      if (error instanceof UnpublishedError) { // between lookup and opening: no error
        successor = undefined;
        return problem(410, "unpublished", UNPUBLISHED);
      }
      const isReplaced = error instanceof ReplacedError;
      const status = isReplaced ? 502 : error instanceof StorageError ? 503 : 500;
      const id = faults.report(error, { status, method, route: route && pathOf(route) });
      const instance = `urn:uuid:${id}`;
      if (status === 502) {
        return problem(502, "content-replaced", "The content was replaced", { instance });
      }
      if (status === 500) return problem(500, "server-fault", "The server failed", { instance });
      const detail = "Storage is unavailable; retry later";
      const fields: Field[] = [["Retry-After", "5"]]; // seconds
      return problem(503, "storage-unavailable", detail, { instance, fields });
    };

    /** Makes the response of an outcome. */
    const respond = (decided: Outcome | Problem): Answer => {
      const isDeprecated = route?.successor !== undefined;
      const links = isDeprecated ? { successor, documentation: policy.documentation } : {};
      const outcome = "detail" in decided ? problemDetails(decided, links) : decided;
      const { status, body, freshUntil = 0 } = outcome;
      // On every status, a deprecated route announces its retirement by Deprecation (RFC 9745),
      // Sunset (RFC 8594) and Link (RFC 8288). No cache may keep what depends on the phase beyond
      // its end.
      const { fields, unchangedUntil } = limitFreshness([
        ...outcome.fields,
        ...CORS_FIELDS,
        ...isDeprecated ? announcementFields(policy, successor) : [],
        ...isDeprecated && isOnDeploy ? [CDN_NO_STORE] : [],
      ], { until: isDeprecated || route?.serves === "notice" ? until : Infinity, now: clock() });
      // (3) A HEAD says all that and sends no content.
      const response = new Response(method === "HEAD" ? null : body, { status, headers: fields });

      const call = { method, phase, status, hasToken: token !== undefined };
      const counter = isDeprecated
        ? meter?.counterOf({ route: pathOf(route), ...call })
        : undefined;
      counter?.count(headers, instant);
      return { response, freshUntil: Math.min(freshUntil, unchangedUntil), counter };
    };

    try {
      return respond(await decide());
    } catch (error) {
      return respond(fail(error));
    }
  };
}

/** Assembles the server, in the order given at the top, until it starts to listen. */
async function assemble(shutdown: Shutdown): Promise<App> {
  requireHonestHead(Deno.version.deno);
  const config = readConfig((name) => Deno.env.get(name), "server");
  requireStorageAccess(config);
  const clock = Date.now;
  const log = lineLog(clock);
  const onCreate = (what: string) => log({ event: "create", message: `created ${what}` });
  const media = await openStorage(config, { onCreate });
  if (config.content.kind !== "none") await media.prepare();
  const samples = config.isDefaultStorage
    ? await (await import("./lib/publishing/samples.ts")).publishSamples(media, ROUTES)
    : [];
  const routes = deprecatedPaths(ROUTES);
  const recorder = new Recorder({ ledger: media.ledger, config, routes, clock, log });
  await recorder.start();
  const storage = new CachedStorage(media);
  const handle = createHandler({ storage, config, clock, log, meter: recorder.meter });
  // Sends a response again while it is true, and during shutdown asks clients to close connections.
  const serving = closing(prepared(handle, { generations: storage.generations, clock }), shutdown);
  return {
    ...config,
    recorder,
    log,
    routes,
    samples,
    // Compressed, a GET would differ from its HEAD.
    listen: (options) => Deno.serve({ ...options, automaticCompression: false }, serving),
    async close() {
      await recorder.stop();
      await storage.close();
    },
  };
}

if (import.meta.main) {
  const [command, ...args] = Deno.args;
  if (command === undefined) await runServer(assemble);
  else if (command === "media") {
    const { runMedia } = await import("./lib/cli/media.ts");
    Deno.exit(await runMedia(args, { routes: ROUTES, createHandler }));
  } else {
    console.error(`media-head: expected no argument, or "media", got "${command}"`);
    Deno.exit(2);
  }
}
