/**
 * The interfaces between the core and the optional rooms, for `main.ts` to assemble. The core needs
 * none of the rooms.
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

/** What a handler depends on. */
export interface Dependencies {
  /** Where items and their content come from. */
  readonly storage: Storage;
  /** The settings that it depends on. */
  readonly config: HandlerConfig;
  /** The clock: milliseconds since the epoch. */
  readonly now: () => number;
  /** Where events go. */
  readonly log: Log;
  /** Counts calls to deprecated routes. */
  readonly meter?: Meter | undefined;
  /** Generates the documents; without it, their routes answer 404. */
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
  /** The origin at which clients reach the server, for the documents. */
  readonly publicUrl?: string | undefined;
}

/** What documents depend on besides the request. */
export interface DocumentOptions {
  /** Every route of the server. */
  readonly routes: readonly Route[];
  /** The settings of the handler. */
  readonly config: Pick<HandlerConfig, "policy" | "publicUrl">;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** What recording usage depends on. */
export interface RecorderOptions {
  readonly ledger: Pick<Ledger, "add" | "recordHeartbeat" | "forget" | "usage">;
  readonly config: Pick<Config, "usageDays" | "isTelemetryOn" | "policy">;
  /** The paths of the deprecated routes. */
  readonly routes: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
}

/** The usage recorder of one server. */
export interface UsageRecorder {
  readonly meter: Meter;
  /** Flushes the counts so far. Never rejects: faults are logged, and the next flush retries. */
  readonly flush: () => Promise<void>;
  /** Flushes the rest, and marks the server as stopped. */
  readonly stop: () => Promise<void>;
}

/** The parts of the server that the command line uses. */
export interface Program {
  /** Every route of the server. */
  readonly routes: readonly Route[];
  readonly openStorage: (config: Config) => Promise<MediaStorage>;
  readonly createHandler: (dependencies: Dependencies) => Handler;
}

/** Loads the generator of the retirement notice and the OpenAPI description. */
export type DocumentRoom = () => Promise<{
  representDocument(
    document: DocumentName,
    request: Request,
    options: DocumentOptions,
  ): Promise<Representation>;
}>;

/** Loads a database engine. */
type EngineRoom = () => Promise<{ openEngine(url: string): Promise<Engine> }>;

/** The optional rooms. Each loads on first use, and may be omitted. */
export interface Rooms {
  /** Persistent databases. */
  readonly sqlite?: EngineRoom;
  readonly postgres?: EngineRoom;
  /** Content in an S3-compatible store. */
  readonly bucket?: () => Promise<{
    openContent(settings: BucketSettings, engine: Engine): ContentStore;
  }>;
  /** Counts calls to deprecated routes by client. */
  readonly usage?: () => Promise<{
    recordUsage(options: RecorderOptions): Promise<UsageRecorder>;
  }>;
  /** Generates the retirement notice and the OpenAPI description. */
  readonly documents?: DocumentRoom;
  /** Publishes the samples, and returns their paths. */
  readonly samples?: () => Promise<{
    publishSamples(storage: MediaStorage, routes: readonly Route[]): Promise<string[]>;
  }>;
  /** Runs the command line, and returns the exit status. */
  readonly commands?: () => Promise<{
    runMedia(args: readonly string[], program: Program): Promise<number>;
  }>;
}
