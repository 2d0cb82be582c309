/** The lines that a server logs at its start. */

import { placeIn, warningOf } from "../database/postgres_url.ts";
import { momentAt } from "../lifecycle/policy.ts";
import type { Log } from "../log/log.ts";
import { announcedBy } from "../lifecycle/notice.ts";
import type { Recorder } from "../usage/record/recorder.ts";
import { sessionFacts } from "../usage/record/session_name.ts";
import { thisProcess } from "../usage/record/deno_process.ts";
import type { Config } from "./config.ts";
import { VERSION } from "./version.ts";
import { SAMPLES_DEPRECATED_AT } from "./policy_config.ts";

/** The settings that the lines depend on. */
type StartSettings = Pick<
  Config,
  | "databaseUrl"
  | "content"
  | "publicUrl"
  | "policies"
  | "isDeprecationUnset"
  | "isTracingOn"
>;

/**
 * Logs the start of a server: its session and process, its address, what it announces, and
 * warnings. Prints how to request the samples.
 */
export function logStart(
  { hostname, port }: Deno.NetAddr,
  config: StartSettings,
  { samples, recorder: { session }, log }: {
    /** The paths of the samples that were published. */
    readonly samples: readonly string[];
    readonly recorder: Pick<Recorder, "session">;
    readonly log: Log;
  },
): void {
  const now = Date.now();
  const { deno } = Deno.version;
  const routes = Object.fromEntries(
    Object.entries(config.policies)
      .map(([path, policy]) => [path, announcedBy(policy, momentAt(policy, now))]),
  );
  const facts = sessionFacts(session, thisProcess());
  log({
    event: "start",
    version: VERSION,
    deno,
    ...facts,
    hostname,
    port,
    routes,
    ...placesOf(config),
  });
  for (const message of warningsOf(config, now)) log({ event: "warning", message });
  const origin = config.publicUrl ?? `http://localhost:${port}`;
  for (const path of samples) console.log(`curl -I ${origin}${path}`);
}

/** Returns warnings about settings that are valid, but hardly meant. */
export function warningsOf(
  { databaseUrl, policies, isDeprecationUnset, isTracingOn }: StartSettings,
  now: number,
): string[] {
  const warnings: string[] = [];
  const removed = Object.keys(policies).filter((path) => {
    const policy = policies[path];
    return policy !== undefined && momentAt(policy, now).phase === "removed";
  });
  if (removed.length > 0) {
    const routes = removed.join(" and ");
    warnings.push(
      `The sunset has passed, so these routes answer as removed: ${routes}. Delete them when ready`,
    );
  }
  if (isDeprecationUnset && Object.keys(policies).length > 0) {
    const date = `${SAMPLES_DEPRECATED_AT}, the date of the samples`;
    warnings.push(`DEPRECATED_AT is not set, so the old paths announce ${date}`);
  }
  if (isTracingOn) {
    const remedy = "set OTEL_DENO_TRACING=false to stop that";
    warnings.push(`Deno exports traces, with the tokens and queries of all requests: ${remedy}`);
  }
  const warning = databaseUrl.startsWith("sqlite:")
    ? undefined
    : warningOf(databaseUrl, "DATABASE_URL");
  return warning === undefined ? warnings : [...warnings, warning];
}

/**
 * Returns where catalogue and content are, without credentials: a URL of PostgreSQL may have a
 * password, even among its parameters.
 */
export function placesOf({ databaseUrl, content }: Pick<Config, "databaseUrl" | "content">) {
  return {
    catalogue: databaseUrl.startsWith("sqlite:") ? databaseUrl : placeIn(databaseUrl),
    content: content.kind === "folder"
      ? content.path
      : content.kind === "none"
      ? "none: public URLs only"
      : `s3://${content.bucket}/${content.prefix}`,
  };
}
