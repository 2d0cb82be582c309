/** The types of what a handler is given, and of what it makes of a request. */

import type { Outcome } from "../http/outcome.ts";
import type { Policy, RoutePolicies } from "../lifecycle/policy.ts";
import type { FaultLog } from "../log/log.ts";
import type { ItemStorage } from "../storage/storage.ts";
import type { Recorder } from "../usage/record/recorder.ts";
import type { MarkedResponse } from "./prepared_responses.ts";
import type { Route } from "./route.ts";

/** What the handler answers requests with. */
export interface HandlerOptions {
  /** Every route, in the order in which they are matched. */
  readonly routes: readonly Route[];
  /** Where items are looked up, and their content is opened. */
  readonly storage: ItemStorage;
  /** The settings that responses depend on. */
  readonly config: HandlerConfig;
  /** Returns the policy of each deprecated route at present, by its path: a hold may have changed it. */
  readonly policies: () => RoutePolicies;
  /** Returns the time in milliseconds since the epoch. */
  readonly clock: () => number;
  /** Logs what fails, under an id that the client gets. */
  readonly faults: FaultLog;
  /**
   * Counts calls to deprecated routes, knows what is wrong with their record, and waits for those in
   * flight when it stops.
   */
  readonly recorder?: Pick<Recorder, "meter" | "fault" | "arrive" | "leave"> | undefined;
}

/** The settings that responses depend on. They have the same names in `Config`. */
export interface HandlerConfig {
  readonly cacheMaxAge: number;
  /** The common policy, which the notice's top level announces. */
  readonly policy: Policy;
  /** The policy of each deprecated route as it is configured, by its path. */
  readonly policies: RoutePolicies;
  readonly publicUrl?: string | undefined;
  readonly contact?: string | undefined;
  readonly isOnDeploy?: boolean;
}

/** The result of handling a request, before it becomes a response. */
export interface MarkedOutcome extends Outcome {
  /**
   * Whether nothing replaces the item, even though its route has a successor. Then a deprecated route
   * announces none.
   */
  readonly hasNoSuccessor?: boolean | undefined;
  /**
   * Whether the same request has the same outcome until the generation of lookups or the phase
   * ends. An outcome without this mark is not reused.
   */
  readonly isReusable?: true | undefined;
  /** Whether the request was refused, in a brownout or after the removal. */
  readonly isRefused?: true | undefined;
}

/**
 * Answers a request that came at an instant, in milliseconds since the epoch, and counts the
 * response. Never rejects.
 */
export type Handler = (request: Request, now: number) => Promise<MarkedResponse>;
