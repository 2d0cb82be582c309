/**
 * What a server is about to announce, for the line that it logs at its start.
 */

import type { Config } from "./config.ts";
import { formatInstant, momentAt } from "../lifecycle/policy.ts";

/** What decides it. */
export interface Announced extends Pick<Config, "policy" | "databaseUrl" | "content"> {
  /** The paths of the deprecated routes. */
  readonly routes: readonly string[];
}

/**
 * Returns the members of the line: for each deprecated route, its phase, its dates and its next
 * brownout; and where catalogue and content are, without credentials.
 *
 * @param now Milliseconds since the epoch.
 */
export function announced({ policy, routes, databaseUrl, content }: Announced, now: number) {
  const { deprecatedAt, sunsetAt, brownouts } = policy;
  const brownout = brownouts.find(({ end }) => now < end);
  const retirement = {
    phase: momentAt(policy, now).phase,
    deprecation: formatInstant(deprecatedAt),
    sunset: sunsetAt === undefined ? "no sunset" : formatInstant(sunsetAt),
    brownout: brownout === undefined
      ? "no brownout"
      : `${formatInstant(brownout.start)}/${formatInstant(brownout.end)}`,
  };
  const { host, pathname } = new URL(databaseUrl);
  return {
    routes: Object.fromEntries(routes.map((route) => [route, retirement])),
    // A URL of PostgreSQL may have a password, even among its parameters.
    catalogue: databaseUrl.startsWith("sqlite:") ? databaseUrl : `postgres://${host}${pathname}`,
    content: content.kind === "folder"
      ? content.path
      : content.kind === "none"
      ? "none: public URLs only"
      : `s3://${content.bucket}/${content.prefix}`,
  };
}
