/**
 * What `main.ts` is put together of: what the core asks of the optional rooms, and what it gives
 * them. The core needs none of them.
 */

import type { Policy } from "../lifecycle/policy.ts";
import type { BucketSettings, ContentStore } from "../storage/content.ts";
import type { Engine } from "../storage/engine.ts";
import type { Ledger } from "../storage/ledger.ts";
import type { MediaStorage } from "../storage/media_storage.ts";
import type { Storage } from "../storage/storage.ts";
import type { Config } from "./config.ts";
import type { Log } from "./log.ts";
import type { Meter } from "./meter.ts";
import type { Representation } from "./representation.ts";
import type { Handler } from "./responder.ts";
import type { DocumentName, Route } from "./route.ts";

/** What a handler works with. */
export interface Dependencies {
  /** Where items and their content come from. */
  readonly storage: Storage;
  /** The settings that it depends on. */
  readonly config: HandlerConfig;
  /** The clock: milliseconds since the epoch. */
  readonly now: () => number;
  /** Where events go. */
  readonly log: Log;
  /** Counts the calls of deprecated routes, when it is given. */
  readonly meter?: Meter | undefined;
  /** Makes the documents; without it their routes answer 404. */
  readonly documents?: DocumentRoom;
}

/** The settings that a handler depends on. */
export interface HandlerConfig {
  /** When and how the deprecated routes are retired. */
  readonly policy: Policy;
  /** Seconds of freshness in Cache-Control. */
  readonly cacheMaxAge: number;
  /** Whether this is Deno Deploy, which caches responses itself. */
  readonly isOnDeploy?: boolean;
}

/** What documents depend on besides the request. */
export interface DocumentOptions {
  /** Every route of the server. */
  readonly routes: readonly Route[];
  /** When and how the deprecated routes are retired. */
  readonly policy: Policy;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** What counting works with. */
export interface RecorderOptions {
  readonly ledger: Pick<Ledger, "add" | "recordHeartbeat" | "forget" | "usage">;
  readonly config: Pick<Config, "usageDays" | "isTelemetryOn" | "policy">;
  /** The paths of the deprecated routes. */
  readonly routes: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
}

/** The counting of one server. */
export interface UsageRecorder {
  readonly meter: Meter;
  /** Flushes what was counted so far. Never rejects: faults are logged, and the flush retried. */
  readonly flush: () => Promise<void>;
  /** Flushes the rest, and marks that the server stopped. */
  readonly stop: () => Promise<void>;
}

/** What the command line is given of the server. */
export interface Program {
  /** Every route of the server. */
  readonly routes: readonly Route[];
  readonly openStorage: (config: Config) => Promise<MediaStorage>;
  readonly createHandler: (dependencies: Dependencies) => Handler;
}

/** Loads what makes the retirement notice and the OpenAPI description. */
export type DocumentRoom = () => Promise<{
  representDocument(
    document: DocumentName,
    request: Request,
    options: DocumentOptions,
  ): Promise<Representation>;
}>;

/** Loads what opens a database. */
type EngineRoom = () => Promise<{ openEngine(url: string): Promise<Engine> }>;

/** The optional rooms: each loads when it is first needed, and may be left out. */
export interface Rooms {
  /** Databases that outlive the process. */
  readonly sqlite?: EngineRoom;
  readonly postgres?: EngineRoom;
  /** Content in an S3-compatible store. */
  readonly bucket?: () => Promise<{
    openContent(settings: BucketSettings, engine: Engine): ContentStore;
  }>;
  /** Counts who calls the deprecated routes. */
  readonly usage?: () => Promise<{
    recordUsage(options: RecorderOptions): Promise<UsageRecorder>;
  }>;
  /** Makes the retirement notice and the OpenAPI description. */
  readonly documents?: DocumentRoom;
  /** Publishes the samples, and gives the paths that a newcomer can try. */
  readonly samples?: () => Promise<{
    publishSamples(storage: MediaStorage, routes: readonly Route[]): Promise<string[]>;
  }>;
  /** The command line; gives the exit status. */
  readonly commands?: () => Promise<{
    runMedia(args: readonly string[], program: Program): Promise<number>;
  }>;
}
