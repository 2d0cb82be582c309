/** Where storage is, for people. */

import type { Config } from "./config.ts";

/**
 * Returns where catalogue and content are, without credentials: a URL of PostgreSQL may have a
 * password, even among its parameters.
 */
export function placesOf({ database, content }: Pick<Config, "database" | "content">) {
  return {
    catalogue: database.name,
    content: content.kind === "folder"
      ? content.path
      : content.kind === "none"
      ? "none: public URLs only"
      : `s3://${content.bucket}/${content.prefix}`,
  };
}
