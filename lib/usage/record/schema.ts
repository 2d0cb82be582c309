/** The tables of a ledger: see `ledger.ts`. */

import {
  type Dialect,
  isCount,
  isInstant,
  isOneOf,
  isPrintable,
  type Schema,
} from "../../database/sql/schema.ts";
import { ENDS, IMPACTS, USAGE_KEY } from "./records.ts";

export const LEDGER: Schema = {
  name: "ledger",
  applicationId: 0x6d68_6c65,
  version: 12,
  upgrade: "stop the servers, and move it away",
  tables: usageTables,
  columns: ({ integer }) => `started ${integer} CHECK (${isInstant("started")})`,
};

function usageTables(dialect: Dialect): string {
  const { text, integer, json, isDay, options } = dialect;
  // Names have no CHECK, because clients choose them: a name that could not be recorded would keep
  // all others from being recorded.
  return `
    CREATE TABLE media_head_usage (
      day ${text} CHECK (${isDay("day")}),
      route ${text} NOT NULL,
      method ${text} NOT NULL,
      phase ${text} NOT NULL,
      brownout ${text} NOT NULL,
      status ${text} NOT NULL,
      impact ${text} CHECK (${isOneOf("impact", IMPACTS)}),
      client ${text} NOT NULL,
      release ${text} NOT NULL,
      calls ${integer} NOT NULL CHECK (${isCount("calls", 1)}),
      last ${integer} NOT NULL CHECK (${isInstant("last")}),
      PRIMARY KEY (${USAGE_KEY.join(", ")})
    )${options};
    CREATE TABLE media_head_day (
      day ${integer} NOT NULL CHECK (day BETWEEN -100000000 AND 100000000),
      route ${text} NOT NULL,
      client ${text} NOT NULL,
      calls ${integer} NOT NULL CHECK (${isCount("calls", 1)}),
      PRIMARY KEY (day, route, client)
    )${options};
    CREATE TABLE media_head_session (
      id ${text} PRIMARY KEY CHECK (${isPrintable(dialect, "id", 64)}),
      opened ${text} NOT NULL CHECK (${isPrintable(dialect, "opened", 64)}),
      machine ${text},
      pid ${integer} NOT NULL,
      process_started ${integer} NOT NULL CHECK (${isInstant("process_started")}),
      ${json("policies")},
      on_demand ${integer} NOT NULL CHECK (on_demand IN (0, 1)),
      public_url ${text},
      contact ${text},
      retain_days ${integer} NOT NULL CHECK (${isCount("retain_days", 1)}),
      began ${integer} NOT NULL CHECK (${isInstant("began")}),
      reported ${integer} NOT NULL CHECK (${isInstant("reported")}),
      written ${integer} NOT NULL CHECK (${isInstant("written")}),
      sequence ${integer} NOT NULL CHECK (${isCount("sequence", 1)}),
      ended ${text} CHECK (${isOneOf("ended", ENDS)}),
      lost ${integer} CHECK (${isInstant("lost")})
    )${options};
    CREATE INDEX media_head_session_reported ON media_head_session (reported);
    CREATE INDEX media_head_session_opened ON media_head_session (opened);
    CREATE TABLE media_head_hold (
      id ${text} PRIMARY KEY CHECK (${isPrintable(dialect, "id", 64)}),
      route ${text},
      since ${integer} NOT NULL CHECK (${isInstant("since")}),
      until ${integer} NOT NULL CHECK (${isInstant("until")} AND until > since),
      released ${integer} CHECK (${isInstant("released")}),
      because ${text} NOT NULL CHECK (length(because) > 0)
    )${options};
  `;
}
