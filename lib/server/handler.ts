/** The types of a handler: what it depends on, and what it returns. */

import type { Policies } from "./policies.ts";
import type { ItemStorage } from "../storage/storage.ts";
import type { Log } from "./log.ts";
import type { Counter, Meter } from "./meter.ts";
import type { Route } from "./route.ts";

/** Answers a request. Never rejects. */
export type Handler = (request: Request) => Promise<Answer>;

/** A response, and what sending it again depends on. */
export interface Answer {
  readonly response: Response;
  /**
   * When the phase ends or the fields change, in milliseconds since the epoch. Until then, and for
   * its generation, the same request gets the same response; 0 for never again.
   */
  readonly keepUntil: number;
  /** Counts each reuse, if such responses are counted. */
  readonly counter: Counter | undefined;
}

/** Where a handler gets its items, settings and time, and what it reports to. */
export interface HandlerOptions {
  /** Every route, in the order in which they are matched. */
  readonly routes: readonly Route[];
  readonly storage: ItemStorage;
  readonly config: HandlerConfig;
  /** Returns the time in milliseconds since the epoch. */
  readonly clock: () => number;
  readonly log: Log;
  /** Counts calls to deprecated routes. */
  readonly meter?: Meter | undefined;
}

/** The settings that a handler depends on; those of `Config` with the same names. */
export interface HandlerConfig extends Policies {
  readonly cacheMaxAge: number;
  readonly publicUrl?: string | undefined;
  readonly isOnDeploy?: boolean;
}
