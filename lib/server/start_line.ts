/** The line that a server logs at its start. */

import { formatInstant, momentAt, type Policy } from "../lifecycle/policy.ts";
import type { Config } from "./config.ts";

/**
 * Returns where catalogue and content are, without credentials: a URL of PostgreSQL may have a
 * password, even among its parameters.
 */
export function placesOf({ databaseUrl, content }: Pick<Config, "databaseUrl" | "content">) {
  const { host, pathname } = new URL(databaseUrl);
  return {
    catalogue: databaseUrl.startsWith("sqlite:") ? databaseUrl : `postgres://${host}${pathname}`,
    content: content.kind === "folder"
      ? content.path
      : content.kind === "none"
      ? "none: public URLs only"
      : `s3://${content.bucket}/${content.prefix}`,
  };
}

/**
 * Describes the retirement of a deprecated route at an instant (milliseconds since the epoch): the
 * phase, the dates and the next brownout.
 */
export function describePolicy(policy: Policy, now: number) {
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
