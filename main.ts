/**
 * media-head: keeps HEAD /audio/{token} and HEAD /video/{token} alive and honest until they are
 * removed. This file is the whole HTTP surface: every route, and every status a route answers.
 *
 * What starts, in order: the check of this Deno, the environment (lib/config.ts), storage
 * (lib/storage/), the samples where storage is the default and empty, the server (lib/server.ts).
 *
 * Permissions, and what for: --allow-net to listen, and to reach a KV Connect URL; --allow-env for
 * the variables of lib/config.ts; --allow-read and --allow-write for the catalogue and content.
 */

import { type Config, readConfig } from "./lib/config.ts";
import { type Answer, type Field, NO_STORE, textAnswer } from "./lib/http/answer.ts";
import { CORS_FIELDS, optionsAnswer } from "./lib/http/cors.ts";
import { evaluatePreconditions, requestedRange } from "./lib/http/preconditions.ts";
import { problem } from "./lib/http/problem.ts";
import { lengthFields, represent } from "./lib/http/representation.ts";
import { createResponder, type Handler } from "./lib/http/responder.ts";
import { createMatcher, type Route, type Target } from "./lib/http/route.ts";
import { deprecationFields } from "./lib/lifecycle/deprecation.ts";
import { describeError, lineLog, type Log } from "./lib/log.ts";
import { type App, createServer, requireHonestHead, type Server } from "./lib/server.ts";
import { CachedStorage } from "./lib/storage/cache.ts";
import { LocalStorage } from "./lib/storage/local.ts";
import type { PublishedItem, Storage } from "./lib/storage/storage.ts";
import { StorageError, UnpublishedError } from "./lib/storage/storage.ts";

const ITEM = ["GET", "HEAD", "OPTIONS"];

/** Every route. Case and trailing slashes matter. */
export const ROUTES: readonly Route[] = [
  { path: "/audio/:token", methods: ITEM, kinds: ["audio"], isDeprecated: true },
  { path: "/video/:token", methods: ITEM, kinds: ["video"], isDeprecated: true },
  { path: "/media/:token", methods: ITEM, kinds: ["audio", "video"] },
  { path: "/healthz", methods: ["GET", "HEAD"] },
];

/** What a handler works with. */
export interface Dependencies {
  readonly storage: Storage;
  readonly config: Pick<Config, "cacheMaxAge" | "deprecatedAt">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
}

const GONE = { detail: "This was unpublished, for good" };

/** Makes the handler of every request. */
export function createHandler({ storage, config, now, log }: Dependencies): Handler {
  /** Every outcome but failure, the first that applies. */
  async function decide(request: Request, { route, segment, token }: Target): Promise<Answer> {
    if (route === undefined) return problem(404, { detail: "There is no such route" });
    const methods = route.methods.join(", ");
    if (!route.methods.includes(request.method)) {
      return problem(405, { detail: `This route takes ${methods}`, fields: [["Allow", methods]] });
    }
    if (request.method === "OPTIONS") return optionsAnswer(methods);
    if (route.kinds === undefined) {
      await storage.check();
      return textAnswer(200, { type: "text/plain", text: "ok\n", fields: [NO_STORE] });
    }

    if (token === undefined) {
      return problem(400, { detail: `"${segment.slice(0, 64)}" is not a version 4 UUID` });
    }
    const finding = await storage.find(token);
    const decided = finding.state === "unknown" || !route.kinds.includes(finding.kind)
      ? problem(404, { detail: `No such ${route.kinds.join(" or ")} was ever published` })
      : finding.state === "unpublished"
      ? problem(410, GONE)
      : decideItem(request, finding.item);
    return { ...decided, freshUntil: finding.freshUntil };
  }

  /** The outcomes for a published item. GET and HEAD part only over Range, which is GET's alone. */
  function decideItem({ method, headers }: Request, item: PublishedItem): Answer {
    const representation = represent(item, now());
    const { validatorFields, contentFields } = representation;
    const cacheFields: Field[] = [["Cache-Control", `max-age=${config.cacheMaxAge}`]];

    const status = evaluatePreconditions(headers, representation, now());
    if (status === 412) return problem(412, { detail: "A precondition of the request failed" });
    if (status === 304) return { status, fields: [...validatorFields, ...cacheFields] };

    const range = method === "GET"
      ? requestedRange(headers, representation, { length: item.length, now: now() })
      : undefined;
    if (range === "unsatisfiable") {
      const fields: Field[] = [["Content-Range", `bytes */${item.length}`]];
      return problem(416, { detail: `The content has ${item.length} bytes`, fields });
    }
    return {
      status: range === undefined ? 200 : 206,
      fields: [...contentFields, ...lengthFields(item, range), ...validatorFields, ...cacheFields],
      content: () => storage.open(item, range),
    };
  }

  /** What went wrong is for the log; the client gets a name for it, to ask about. */
  function fail(error: unknown, { method }: Request, { route }: Target): Answer {
    if (error instanceof UnpublishedError) return problem(410, GONE);
    const id = crypto.randomUUID();
    const isStorage = error instanceof StorageError;
    const status = isStorage ? 503 : 500;
    log({ event: "error", id, status, method, route: route?.path, cause: describeError(error) });
    return problem(status, {
      detail: isStorage ? "Storage is unavailable; try again" : "The server failed",
      instance: `urn:uuid:${id}`,
      fields: isStorage ? [["Retry-After", "5"]] : [],
    });
  }

  /** What every answer of a route carries. */
  function fields({ route, token }: Target): Field[] {
    if (!route?.isDeprecated) return [...CORS_FIELDS];
    const successor = token && `/media/${token}`;
    return [...CORS_FIELDS, ...deprecationFields(config.deprecatedAt, successor)];
  }

  return createResponder({ match: createMatcher(ROUTES), decide, fail, fields, now });
}

/** Puts the server together, in the order told at the top. */
async function assemble(): Promise<App> {
  requireHonestHead(Deno.version.deno);
  const config = readConfig((name) => Deno.env.get(name));
  const local = await LocalStorage.open(config);
  const samples = config.isDefaultStorage
    ? await (await import("./lib/samples.ts")).publishSamples(local)
    : [];
  const storage = config.cacheTtl > 0
    ? new CachedStorage(local, { ttl: config.cacheTtl, now: Date.now })
    : local;
  const log = lineLog(Date.now);
  const handle = createHandler({ storage, config, now: Date.now, log });
  return { ...config, handle, log, samples, close: () => storage.close() };
}

/** For `deno serve`, which calls the same handler. */
const server: Server = createServer(assemble);
export default server;

if (import.meta.main) server.start();
