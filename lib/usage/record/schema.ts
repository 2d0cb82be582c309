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
  version: 11,
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
      ${json("policies")},
      unmounted ${text},
      may_serve_unrecorded ${integer} NOT NULL CHECK (may_serve_unrecorded IN (0, 1)),
      public_url ${text},
      contact ${text},
      retain_days ${integer} NOT NULL CHECK (${isCount("retain_days", 1)}),
      machine ${text},
      pid ${integer} NOT NULL,
      process_started ${integer} NOT NULL CHECK (${isInstant("process_started")}),
      began ${integer} NOT NULL CHECK (${isInstant("began")}),
      reported ${integer} NOT NULL CHECK (${isInstant("reported")} AND reported >= began),
      timeline ${text} NOT NULL,
      sequence ${integer} NOT NULL CHECK (${isCount("sequence", 0)}),
      ended ${text} CHECK (${isOneOf("ended", ENDS)})
    )${options};
    CREATE TABLE media_head_intent (
      id ${text} PRIMARY KEY CHECK (${isPrintable(dialect, "id", 64)}),
      session ${text} NOT NULL,
      sequence ${integer} NOT NULL CHECK (${isCount("sequence", 0)}),
      route ${text} NOT NULL,
      since ${integer} NOT NULL CHECK (${isInstant("since")}),
      until ${integer} NOT NULL CHECK (${isInstant("until")}),
      settled ${integer} CHECK (${isInstant("settled")})
    )${options};
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
