/** The lines that a server logs at its start. */

import { announcedBy } from "../lifecycle/notice.ts";
import type { Log } from "../log/log.ts";
import type { Recorder } from "../usage/record/recorder.ts";
import { type ProcessIdentity, sessionFacts } from "../usage/record/records.ts";
import type { Config } from "./config.ts";
import { warningsOf } from "./setting_warnings.ts";
import { placesOf } from "./storage_places.ts";
import { VERSION } from "./version.ts";

/** The settings that the lines depend on. */
type StartSettings = Pick<
  Config,
  | "database"
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
  { samples, recorder: { session, policies }, log }: {
    /** The paths of the samples that were published. */
    readonly samples: readonly string[];
    readonly recorder: Pick<Recorder, "session" | "policies">;
    readonly log: Log;
  },
): void {
  const now = Date.now();
  const { deno } = Deno.version;
  const routes = Object.fromEntries(
    Object.entries(policies)
      .map(([path, policy]) => [path, announcedBy(policy, now)]),
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
  for (const message of warningsOf({ ...config, policies }, now)) {
    log({ event: "warning", message });
  }
  const origin = config.publicUrl ?? `http://localhost:${port}`;
  for (const path of samples) console.log(`curl -I ${origin}${path}`);
}

/** Returns this process, with the name of its machine if that may be read. */
export function thisProcess(): ProcessIdentity {
  const { state } = Deno.permissions.querySync({ name: "sys", kind: "hostname" });
  const machine = state === "granted" ? Deno.hostname() : undefined;
  return { machine, pid: Deno.pid, started: Math.round(performance.timeOrigin) };
}
