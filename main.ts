/**
 * media-head: keeps HEAD /audio/{token} and HEAD /video/{token} alive and honest until they are
 * removed. This file is the whole HTTP surface: every route, and every status a route answers.
 *
 * Startup order: check the Deno version, read the environment (lib/server/config.ts), open storage
 * (lib/storage/), publish the samples if storage is the default and empty, start the usage meter,
 * serve (lib/server/process.ts). With `media` as the first argument, it runs the command line
 * instead.
 *
 * Permissions (deno.json): net to listen, and to reach PostgreSQL, the bucket, and each public URL
 * being published; env for the variables in lib/server/config.ts; read and write for the catalogue
 * and content.
 */

import { type Answer, type Field, NO_STORE, textAnswer } from "./lib/http/answer.ts";
import { andThen, type Awaitable } from "./lib/http/awaitable.ts";
import { PREFLIGHT_FIELDS } from "./lib/http/cors.ts";
import { evaluatePreconditions, requestedRange } from "./lib/http/preconditions.ts";
import type { Problem } from "./lib/http/problem.ts";
import type { Dependencies, Rooms } from "./lib/server/assembly.ts";
import { type Config, readConfig } from "./lib/server/config.ts";
import { describeError, lineLog } from "./lib/server/log.ts";
import { failure, problem } from "./lib/server/problem_types.ts";
import { type App, requireHonestHead, runServer } from "./lib/server/process.ts";
import { lengthFields, type Representation, representItem } from "./lib/server/representation.ts";
import { createResponder, type Handler } from "./lib/server/responder.ts";
import { Retirement } from "./lib/server/retirement.ts";
import {
  createMatcher,
  deprecatedPaths,
  type DocumentName,
  METHODS,
  type Route,
  type Target,
} from "./lib/server/route.ts";
import { cached } from "./lib/storage/cache.ts";
import { Files } from "./lib/storage/files.ts";
import { MediaStorage } from "./lib/storage/media_storage.ts";
import { NO_CONTENT } from "./lib/storage/no_content.ts";
import { ReplacedError, StorageError, UnpublishedError } from "./lib/storage/storage.ts";

export type * from "./lib/server/types.ts";

/**
 * Every route. Each accepts GET, HEAD and OPTIONS ({@linkcode METHODS}). Routes with a successor
 * are deprecated. Case and trailing slashes matter.
 */
export const ROUTES: readonly Route[] = [
  { path: "/audio/:token", serves: ["audio"], successor: "/media/:token" },
  { path: "/video/:token", serves: ["video"], successor: "/media/:token" },
  { path: "/media/:token", serves: ["audio", "video"] },
  { path: "/deprecation", serves: "notice" },
  { path: "/openapi.json", serves: "description" },
  { path: "/healthz", serves: "health" },
];

/** The optional rooms. To remove one, delete its line and the folder it imports from. */
const ROOMS: Rooms = {
  sqlite: () => import("./lib/storage/sqlite/engine.ts"),
  postgres: () => import("./lib/storage/postgres/engine.ts"),
  bucket: () => import("./lib/storage/bucket/content.ts"),
  usage: () => import("./lib/usage/recorder.ts"),
  documents: () => import("./lib/documents/documents.ts"),
  samples: () => import("./lib/publishing/samples.ts"),
  commands: () => import("./lib/cli/media.ts"),
};

const HEALTHY = textAnswer(200, { type: "text/plain", text: "ok\n", fields: [NO_STORE] });
const ALLOW: Field = ["Allow", METHODS.join(", ")];
const OPTIONS = { status: 204, fields: [ALLOW, ...PREFLIGHT_FIELDS, NO_STORE] };
const OTHER_METHOD = { detail: `This route accepts ${ALLOW[1]}`, fields: [ALLOW] };
const NO_ROUTE = { detail: "No such route", freshUntil: Infinity };
const INVALID_HOST = { detail: "The Host field is not a valid host" };
const FAILED = { detail: "A precondition of the request failed" };
const EMPTY: Field = ["Content-Length", "0"];
const GONE = { detail: "This item was permanently unpublished", hasSuccessor: false };

/**
 * Creates the handler for all requests.
 *
 * @example A handler on storage in memory
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { createHandler } from "@media-head/media-head";
 * import { definePolicy } from "@media-head/media-head/lifecycle";
 * import { MediaStorage } from "./lib/storage/media_storage.ts";
 * import { MemoryContent } from "./lib/storage/memory/content.ts";
 * import { openEngine } from "./lib/storage/memory/engine.ts";
 *
 * const handle = createHandler({
 *   storage: new MediaStorage(openEngine(), new MemoryContent()),
 *   config: { policy: definePolicy({ deprecatedAt: "2026-11-21" }), cacheMaxAge: 300 },
 *   now: Date.now,
 *   log: console.log,
 * });
 * const url = "http://localhost/audio/7f9c24e8-3b12-4fef-91e0-56a2d5a7bb2e";
 * const { status, headers } = await handle(new Request(url, { method: "HEAD" }));
 * assertEquals(status, 404); // never published
 * assertEquals(headers.get("Deprecation"), "@1795219200");
 * ```
 */
export function createHandler(dependencies: Dependencies): Handler {
  const { storage, config, now, log, meter, documents = ROOMS.documents } = dependencies;
  const { policy, cacheMaxAge: maxAge, isOnDeploy } = config;
  const retirement = new Retirement({ policy, maxAge, meter, isOnDeploy });
  const freshness: Field = ["Cache-Control", `max-age=${maxAge}`];

  /** Decides on the first outcome that applies; {@linkcode fail} handles what this throws. */
  function decide(request: Request, target: Target, now: number): Awaitable<Answer | Problem> {
    const { route, segment, token } = target;
    if (target.hasInvalidHost) return problem(400, "bad-host", INVALID_HOST);
    if (route === undefined) return problem(404, "no-such-route", NO_ROUTE);
    if (!METHODS.includes(request.method)) return problem(405, "method-not-allowed", OTHER_METHOD);
    if (request.method === "OPTIONS") return OPTIONS;
    const { serves } = route;
    if (serves === "health") return andThen(storage.check(), () => HEALTHY);
    if (serves === "notice" || serves === "description") return ownDocument(serves, request, now);

    const refused = retirement.refusal(target, now);
    if (refused?.reason === "brownout") return problem(410, "brownout", refused);
    if (refused?.reason === "removed") return problem(410, "removed", refused);
    if (refused?.reason === "redirected") {
      const { fields, freshUntil } = refused;
      return { status: 308, fields, freshUntil };
    }
    if (token === undefined) {
      const detail = `"${segment.slice(0, 64)}" is not a version 4 UUID`;
      return problem(400, "malformed-token", { detail, freshUntil: Infinity });
    }
    return andThen(storage.find(token, now), (result) => {
      const { freshUntil } = result;
      if (result.state === "unknown" || !serves.includes(result.kind)) {
        const detail = `No such ${serves.join(" or ")} was ever published`;
        const hasSuccessor = result.state !== "unpublished";
        return problem(404, "never-published", { detail, hasSuccessor, freshUntil });
      }
      if (result.state === "unpublished") {
        return problem(410, "unpublished", { ...GONE, freshUntil });
      }
      if (result.state === "linked") {
        // Preconditions and Range apply at the target (RFC 9110 §13.2.1): clients resend them.
        const fields: Field[] = [["Location", result.item.location], EMPTY, freshness];
        return { status: 307, fields, freshUntil };
      }
      const answer = select(request, representItem(result.item, storage, now), now);
      // If the publisher's clock was ahead, Last-Modified is the current time, and keeps changing.
      const isDateFixed = result.item.publishedAt <= now;
      return { ...answer, freshUntil: isDateFixed ? freshUntil : undefined };
    });
  }

  /** Decides on the outcome for a document about the server's own routes. */
  async function ownDocument(document: DocumentName, request: Request, now: number) {
    const { representDocument } = await documents?.() ?? {};
    if (representDocument === undefined) return problem(404, "no-such-route", NO_ROUTE);
    const context = { routes: ROUTES, config, now };
    return select(request, await representDocument(document, request, context), now);
  }

  /** Decides on the outcome for a representation. A HEAD ignores Range and opens no content. */
  function select(
    { method, headers }: Request,
    representation: Representation,
    now: number,
  ): Answer | Problem {
    const { length, validatorFields, contentFields } = representation;

    const status = evaluatePreconditions(headers, representation, now);
    if (status === 412) return problem(412, "precondition-failed", FAILED);
    if (status === 304) return { status, fields: [...validatorFields, freshness] };

    const range = method === "GET" ? requestedRange(headers, representation, now) : undefined;
    if (range === "unsatisfiable") {
      const fields: Field[] = [["Content-Range", `bytes */${length}`]];
      return problem(416, "range-not-satisfiable", {
        detail: `The content has ${length} bytes`,
        fields,
      });
    }
    return {
      status: range === undefined ? 200 : 206,
      fields: [...contentFields, ...lengthFields(length, range), ...validatorFields, freshness],
      content: representation.content(range),
    };
  }

  /** Logs the error, with an id that the client can quote. */
  function fail(error: unknown, { method }: Request, { route }: Target): Problem {
    if (error instanceof UnpublishedError) return problem(410, "unpublished", GONE);
    const id = crypto.randomUUID();
    const status = error instanceof ReplacedError ? 502 : error instanceof StorageError ? 503 : 500;
    log({ event: "error", id, status, method, route: route?.path, cause: describeError(error) });
    return failure(status, id);
  }

  const { generations } = storage;
  return createResponder({
    match: createMatcher(ROUTES),
    decide,
    fail,
    retirement,
    generations,
    now,
  });
}

/** Opens the catalogue and the content. Without an engine, the catalogue is kept in memory. */
async function openStorage({ engine, databaseUrl, content }: Config): Promise<MediaStorage> {
  const { openEngine } = await (ROOMS[engine]?.() ?? import("./lib/storage/memory/engine.ts"));
  const bucket = content.kind === "bucket" ? await ROOMS.bucket?.() : undefined;
  const opened = await openEngine(databaseUrl);
  if (content.kind === "none") return new MediaStorage(opened, NO_CONTENT);
  if (content.kind === "folder") return new MediaStorage(opened, new Files(content.path));
  if (bucket !== undefined) return new MediaStorage(opened, bucket.openContent(content, opened));
  throw new StorageError("bucket", "CONTENT is a bucket, but this server has no bucket driver");
}

/** Assembles the server, in the order given at the top. */
async function assemble(): Promise<App> {
  requireHonestHead(Deno.version.deno);
  const config = readConfig((name) => Deno.env.get(name));
  const media = await openStorage(config);
  if (config.content.kind !== "none") await media.prepare();
  const publishing = config.isDefaultStorage ? await ROOMS.samples?.() : undefined;
  const samples = await publishing?.publishSamples(media, ROUTES) ?? [];
  const now = Date.now;
  const log = lineLog(now);
  const routes = deprecatedPaths(ROUTES);
  const counting = await ROOMS.usage?.();
  const usage = await counting?.recordUsage({ ledger: media.ledger, config, routes, now, log });
  const storage = cached(media, config.cacheTtl);
  const handle = createHandler({ storage, config, now, log, meter: usage?.meter });
  const flush = async () => await usage?.flush();
  const close = async () => {
    await usage?.stop();
    await storage.close();
  };
  return { ...config, handle, log, samples, flush, close };
}

if (import.meta.main) {
  const [command, ...args] = Deno.args;
  if (command === undefined) await runServer(assemble);
  const commands = command === "media" ? await ROOMS.commands?.() : undefined;
  if (commands === undefined) {
    console.error(`media-head: expected no argument, or "media", got "${command}"`);
    Deno.exit(2);
  }
  Deno.exit(await commands.runMedia(args, { routes: ROUTES, openStorage, createHandler }));
}
