/** The tables of a catalogue. */

import {
  type Dialect,
  isCount,
  isInstant,
  isOneOf,
  isPrintable,
  type Schema,
} from "../../database/sql/schema.ts";
import { MAX_LOCATION, MAX_STATED } from "../item.ts";
import { ITEM_FACTS } from "./catalogue.ts";

export const CATALOGUE: Schema = {
  name: "catalogue",
  applicationId: 0x6d68_6361,
  version: 9,
  upgrade: "export it with the earlier release, then import that into a new database",
  tables: itemTable,
  columns: ({ text, integer }) => `version ${integer} NOT NULL DEFAULT 0, content ${text}`,
};

const areNull = (columns: readonly string[]) =>
  columns.map((column) => `${column} IS NULL`).join(" AND ");

function itemTable(dialect: Dialect): string {
  const { uuidKey, text, integer, options, hasOnly } = dialect;
  const isObject = `substr(location, 1, 5) = 's3://'`;
  return `
    CREATE TABLE media_head_item (
      token ${uuidKey("token")},
      kind ${text} NOT NULL CHECK (${isOneOf("kind", ["audio", "video"])}),
      type ${text} CHECK (${isPrintable(dialect, "type", MAX_STATED)}),
      length ${integer} CHECK (${isCount("length", 0)}),
      digest ${text} CHECK (length(digest) = 64 AND ${hasOnly("digest", "0-9a-f")}),
      published_at ${integer} CHECK (${isInstant("published_at")}),
      name ${text},
      language ${text} CHECK (length(language) > 0 AND ${hasOnly("language", "A-Za-z0-9-")}),
      unpublished_at ${integer} CHECK (${isInstant("unpublished_at")}),
      location ${text} CHECK (length(location) <= ${MAX_LOCATION} AND CASE
        WHEN ${isObject} THEN location LIKE 's3://_%/_%' AND substr(location, 6, 1) <> '/'
        ELSE (substr(location, 1, 8) = 'https://' OR substr(location, 1, 7) = 'http://')
          AND location LIKE '%://_%' AND ${hasOnly("location", "!-~")} END),
      validator ${text} CHECK (${isPrintable(dialect, "validator", MAX_STATED)}),
      CHECK (CASE
        WHEN unpublished_at IS NOT NULL THEN ${areNull(ITEM_FACTS)}
        WHEN published_at IS NULL THEN FALSE
        WHEN digest IS NULL
          THEN location IS NOT NULL AND NOT ${isObject} AND ${areNull(["name", "language"])}
        ELSE length IS NOT NULL AND type IS NOT NULL
          AND substr(type, 1, 6) IN ('audio/', 'video/') AND substr(type, 7, 1) NOT IN ('', ' ')
          AND CASE WHEN location IS NULL THEN validator IS NULL
            ELSE ${isObject} AND validator IS NOT NULL END
        END)
    )${options};
    CREATE INDEX media_head_item_by_digest ON media_head_item (digest) WHERE digest IS NOT NULL;
  `;
}
