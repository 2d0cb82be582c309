/** Where storage is, for people. */

import { placeIn } from "../database/postgres_url.ts";
import type { Config } from "./config.ts";

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
