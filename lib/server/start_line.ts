/** The line that a server logs at its start. */

import { formatInstant, momentAt, type Policy } from "../lifecycle/policy.ts";
import type { Config } from "./config.ts";
import { type Policies, policyOf } from "./policies.ts";

export interface Announced extends Policies, Pick<Config, "databaseUrl" | "content"> {
  /** The paths of the deprecated routes. */
  readonly routes: readonly string[];
}

/**
 * Returns members of the line: the phase, the dates and the next brownout of each deprecated route,
 * and where catalogue and content are, without credentials.
 *
 * @param now Milliseconds since the epoch.
 */
export function startFacts(
  { routes, databaseUrl, content, ...policies }: Announced,
  now: number,
) {
  const { host, pathname } = new URL(databaseUrl);
  return {
    routes: Object.fromEntries(
      routes.map((path) => [path, retirementAt(policyOf(policies, path), now)]),
    ),
    // A URL of PostgreSQL may have a password, even among its parameters.
    catalogue: databaseUrl.startsWith("sqlite:") ? databaseUrl : `postgres://${host}${pathname}`,
    content: content.kind === "folder"
      ? content.path
      : content.kind === "none"
      ? "none: public URLs only"
      : `s3://${content.bucket}/${content.prefix}`,
  };
}

function retirementAt(policy: Policy, now: number) {
  const { deprecatedAt, sunsetAt, brownouts } = policy;
  const brownout = brownouts.find(({ end }) => now < end);
  return {
    phase: momentAt(policy, now).phase,
    deprecation: formatInstant(deprecatedAt),
    sunset: sunsetAt === undefined ? "no sunset" : formatInstant(sunsetAt),
    brownout: brownout === undefined
      ? "no brownout"
      : `${formatInstant(brownout.start)}/${formatInstant(brownout.end)}`,
  };
}
